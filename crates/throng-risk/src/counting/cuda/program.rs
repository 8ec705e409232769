//! The kernels' sources, and what they compile to: by NVRTC at first use, kept by source and architecture.

use super::device::DeviceError;
use super::nvrtc;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::PathBuf;

/// The files of the program, in the order of their use.
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

/// Every kernel of the program.
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

/// One translation unit; messages name the file and its line.
fn source() -> String {
    let part = |(name, text): &(&str, &str)| format!("#line 1 \"{name}\"\n{text}\n");
    SOURCES.iter().map(part).collect()
}

/// What the driver loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Image {
    /// Machine code of one architecture.
    Cubin(Vec<u8>),
    /// Virtual machine code that the driver translates.
    Ptx(String),
}

/// The resources that one kernel takes, as the assembler says.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Resources {
    /// Its name.
    pub kernel: String,
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of local memory a thread.
    pub stack_bytes: u32,
    /// Bytes of registers spilled and read back.
    pub spill_bytes: u32,
}

/// Compiles every kernel for an architecture such as `sm_90`, and says what each takes.
///
/// # Errors
/// Without NVRTC, or where the sources do not compile: with the compiler's log.
pub fn resources(architecture: &str) -> Result<Vec<Resources>, DeviceError> {
    let compiled = nvrtc::compile(&source(), &options(architecture, true)).map_err(|error| error.of(architecture))?;
    let found = parsed(&compiled.log);
    let names: Vec<&str> = found.iter().map(|resources| resources.kernel.as_str()).collect();
    if names != KERNELS {
        let log = format!("the assembler spoke of {names:?}");
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

/// The assembler's words about each kernel, sorted by its name.
fn parsed(log: &str) -> Vec<Resources> {
    let mut found: Vec<Resources> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            found.push(Resources { kernel, registers: 0, stack_bytes: 0, spill_bytes: 0 });
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

/// The program for a device of this capability: from the cache, else compiled and kept there.
pub(super) fn image(capability: (u32, u32)) -> Result<Image, DeviceError> {
    let architecture = format!("sm_{}{}", capability.0, capability.1);
    let source = source();
    let kept = kept_at(&source, &architecture);
    if let Some(Ok(bytes)) = kept.as_ref().map(std::fs::read) {
        return Ok(Image::Cubin(bytes));
    }
    let image = compile(&source, capability, &architecture)?;
    if let (Some(path), Image::Cubin(bytes)) = (&kept, &image)
        && let Err(error) = keep(path, bytes)
    {
        tracing::debug!(%error, "compiled kernels could not be kept");
    }
    Ok(image)
}

/// Forgets the cached program of a device, where the driver does not take it.
pub(super) fn forget(capability: (u32, u32)) {
    let path = kept_at(&source(), &format!("sm_{}{}", capability.0, capability.1));
    if let Some(Err(error)) = path.map(std::fs::remove_file) {
        tracing::debug!(%error, "the kept kernels could not be removed");
    }
}

fn compile(source: &str, capability: (u32, u32), architecture: &str) -> Result<Image, DeviceError> {
    let own = capability.0 * 10 + capability.1;
    let known = nvrtc::architectures().map_err(|error| error.of(architecture))?;
    if known.contains(&own) {
        let compiled = nvrtc::compile(source, &options(architecture, false)).map_err(|error| error.of(architecture))?;
        return Ok(Image::Cubin(compiled.cubin));
    }
    // A device younger than the compiler: the driver translates the nearest virtual architecture.
    let Some(nearest) = known.into_iter().filter(|known| *known < own).max() else {
        let log = "this NVRTC knows only younger architectures".to_owned();
        return Err(DeviceError::Compile { architecture: architecture.to_owned(), log });
    };
    let nearest = format!("compute_{nearest}");
    let compiled = nvrtc::compile(source, &options(&nearest, false)).map_err(|error| error.of(&nearest))?;
    Ok(Image::Ptx(compiled.ptx))
}

/// Where the compiled program is kept: `throng/kernels` in the user's cache.
fn kept_at(source: &str, architecture: &str) -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let cache = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")))?;
    let mut name = String::new();
    for byte in &Sha256::digest(source.as_bytes())[..16] {
        write!(name, "{byte:02x}").ok()?;
    }
    Some(cache.join("throng/kernels").join(format!("{name}-{architecture}.cubin")))
}

/// Another process sees the whole file or none.
fn keep(path: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
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
    fn what_the_assembler_says_is_read() {
        let log = "ptxas info    : Compiling entry function 'widen' for 'sm_90'\n\
                   ptxas info    : Function properties for widen\n\
                   ptxas         .     16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n\
                   ptxas info    : Used 12 registers, used 0 barriers, 64 bytes cumulative stack size\n\
                   ptxas info    : Compiling entry function 'append' for 'sm_90'\n\
                   ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                   ptxas info    : Used 18 registers, used 0 barriers\n";
        let of = |kernel: &str, registers, stack_bytes, spill_bytes| Resources {
            kernel: kernel.to_owned(),
            registers,
            stack_bytes,
            spill_bytes,
        };
        assert_eq!(parsed(log), [of("append", 18, 0, 0), of("widen", 12, 16, 12)]);
    }

    #[test]
    fn every_kernel_of_the_sources_is_named() {
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
