//! Kernel sources, compiled by NVRTC on first use and cached by source and architecture.

use super::device::DeviceError;
use super::nvrtc;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::PathBuf;

const SOURCES: [(&str, &str); 8] = [
    ("device.cuh", include_str!("../kernels/device.cuh")),
    ("window.cuh", include_str!("../kernels/window.cuh")),
    ("small.cu", include_str!("../kernels/small.cu")),
    ("classes.cu", include_str!("../kernels/classes.cu")),
    ("summary.cu", include_str!("../kernels/summary.cu")),
    ("pairs.cu", include_str!("../kernels/pairs.cu")),
    ("slices.cu", include_str!("../kernels/slices.cu")),
    ("ring.cu", include_str!("../kernels/ring.cu")),
];

/// Names of all kernels.
pub const KERNELS: [&str; 17] = [
    "append",
    "count_slices",
    "dense_crowds",
    "dense_people",
    "dense_records",
    "expose_dense",
    "expose_sparse",
    "infer",
    "recode",
    "slice",
    "small_people",
    "small_records",
    "sparse_people",
    "sparse_records",
    "summarize",
    "summarize_crowds",
    "widen",
];

/// Compiler messages name the file and its line.
fn source() -> String {
    let part = |(name, text): &(&str, &str)| format!("#line 1 \"{name}\"\n{text}\n");
    SOURCES.iter().map(part).collect()
}

/// Compiled kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelImage {
    /// Machine code of one architecture.
    Cubin(Vec<u8>),
    /// Virtual machine code that the driver translates.
    Ptx(String),
}

/// Resources of one kernel, reported by the assembler.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct KernelResources {
    /// Kernel name.
    pub kernel: String,
    /// Registers per thread.
    pub registers: u32,
    /// Local memory per thread, in bytes.
    pub stack_bytes: u32,
    /// Register spills in bytes.
    pub spill_bytes: u32,
}

/// Compiles every kernel for an architecture such as `sm_90`; returns its resources.
///
/// # Errors
/// If NVRTC is missing, or the sources do not compile.
pub fn compile_resources(architecture: &str) -> Result<Vec<KernelResources>, DeviceError> {
    let compiled = nvrtc::compile(&source(), &options(architecture, true))
        .map_err(|error| error.into_device_error(architecture))?;
    let found = parse_resources(&compiled.log);
    let names: Vec<&str> = found.iter().map(|resources| resources.kernel.as_str()).collect();
    if names != KERNELS {
        let log = format!("the assembler reported {names:?}");
        return Err(DeviceError::Compile { architecture: architecture.to_owned(), log });
    }
    Ok(found)
}

fn options(architecture: &str, verbose: bool) -> Vec<String> {
    let mut options = vec![format!("--gpu-architecture={architecture}"), "--std=c++17".to_owned()];
    if verbose {
        options.push("--ptxas-options=-v".to_owned());
    }
    options
}

fn parse_resources(log: &str) -> Vec<KernelResources> {
    let mut found: Vec<KernelResources> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            found.push(KernelResources { kernel, registers: 0, stack_bytes: 0, spill_bytes: 0 });
        }
        let Some(last) = found.last_mut() else { continue };
        let before = |words: &str| -> u32 {
            let number =
                line.split_once(words).and_then(|(before, _)| before.split([' ', ',']).rfind(|w| !w.is_empty()));
            number.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        last.registers += before(" registers");
        last.stack_bytes += before(" bytes stack frame");
        last.spill_bytes += before(" bytes spill stores") + before(" bytes spill loads");
    }
    found.sort_by(|a, b| a.kernel.cmp(&b.kernel));
    found
}

pub(super) fn load_or_compile(capability: (u32, u32)) -> Result<KernelImage, DeviceError> {
    let architecture = format!("sm_{}{}", capability.0, capability.1);
    let source = source();
    let kept = cached_program_path(&source, &architecture);
    if let Some(Ok(bytes)) = kept.as_ref().map(std::fs::read) {
        return Ok(KernelImage::Cubin(bytes));
    }
    let image = compile(&source, capability, &architecture)?;
    if let (Some(path), KernelImage::Cubin(bytes)) = (&kept, &image)
        && let Err(error) = write_cached_program(path, bytes)
    {
        tracing::debug!(%error, "compiled kernels could not be cached");
    }
    Ok(image)
}

pub(super) fn remove_cached_program(capability: (u32, u32)) {
    let path = cached_program_path(&source(), &format!("sm_{}{}", capability.0, capability.1));
    if let Some(Err(error)) = path.map(std::fs::remove_file) {
        tracing::debug!(%error, "cached kernels could not be removed");
    }
}

fn compile(source: &str, capability: (u32, u32), architecture: &str) -> Result<KernelImage, DeviceError> {
    let own = capability.0 * 10 + capability.1;
    let known = nvrtc::architectures().map_err(|error| error.into_device_error(architecture))?;
    if known.contains(&own) {
        let compiled = nvrtc::compile(source, &options(architecture, false))
            .map_err(|error| error.into_device_error(architecture))?;
        return Ok(KernelImage::Cubin(compiled.cubin));
    }
    // The driver translates the nearest virtual architecture for a newer device.
    let Some(nearest) = known.into_iter().filter(|known| *known < own).max() else {
        let log = "this NVRTC supports only newer architectures".to_owned();
        return Err(DeviceError::Compile { architecture: architecture.to_owned(), log });
    };
    let nearest = format!("compute_{nearest}");
    let compiled =
        nvrtc::compile(source, &options(&nearest, false)).map_err(|error| error.into_device_error(&nearest))?;
    Ok(KernelImage::Ptx(compiled.ptx))
}

fn cached_program_path(source: &str, architecture: &str) -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let cache = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")))?;
    let mut name = String::new();
    for byte in &Sha256::digest(source.as_bytes())[..16] {
        write!(name, "{byte:02x}").ok()?;
    }
    Some(cache.join("throng/kernels").join(format!("{name}-{architecture}.cubin")))
}

/// Atomic for other processes.
fn write_cached_program(path: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().ok_or(std::io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(folder)?;
    let part = path.with_extension(format!("{}.part", std::process::id()));
    std::fs::write(&part, bytes)?;
    std::fs::rename(part, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assembler_log_is_parsed_per_kernel() {
        let log = "ptxas info    : Compiling entry function 'widen' for 'sm_90'\n\
                   ptxas info    : Function properties for widen\n\
                   ptxas         .     16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n\
                   ptxas info    : Used 12 registers, used 0 barriers, 64 bytes cumulative stack size\n\
                   ptxas info    : Compiling entry function 'append' for 'sm_90'\n\
                   ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                   ptxas info    : Used 18 registers, used 0 barriers\n";
        let of = |kernel: &str, registers, stack_bytes, spill_bytes| KernelResources {
            kernel: kernel.to_owned(),
            registers,
            stack_bytes,
            spill_bytes,
        };
        assert_eq!(parse_resources(log), [of("append", 18, 0, 0), of("widen", 12, 16, 12)]);
    }

    #[test]
    fn kernel_list_matches_sources() {
        let source = source();
        let text = source.replace("#define KERNEL ", "");
        let plain = text.match_indices("KERNEL ").map(|(at, mark)| &text[at + mark.len()..]);
        let of_macro = ["\nCLASSES(", "\nEXPOSE("]
            .into_iter()
            .flat_map(|mark| text.match_indices(mark).map(|(at, mark)| &text[at + mark.len()..]).collect::<Vec<_>>());
        let name = |text: &str| text.split(['(', ',']).next().unwrap_or_default().to_owned();
        let mut found: Vec<String> = plain.chain(of_macro).map(name).filter(|name| name != "NAME").collect();
        found.sort();
        assert_eq!(found, KERNELS);
    }
}
