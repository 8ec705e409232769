//! NVRTC, the kernel compiler, loaded on first use.

#![allow(unsafe_code, reason = "calls into NVRTC, each with its reason")]

use super::device::DeviceError;
use cudarc::nvrtc::{result, sys};
use std::ffi::{CStr, CString, c_char};

pub(super) struct CompiledKernels {
    pub(super) cubin: Vec<u8>,
    pub(super) ptx: String,
    pub(super) log: String,
}

pub(super) enum NvrtcError {
    Absent,
    Failed(String),
}

impl NvrtcError {
    pub(super) fn into_device_error(self, architecture: &str) -> DeviceError {
        match self {
            Self::Absent => DeviceError::Absent {
                reason: "the compiler library (libnvrtc) is not installed: install CUDA NVRTC, or add its folder to \
                         LD_LIBRARY_PATH"
                    .to_owned(),
            },
            Self::Failed(log) => DeviceError::Compile { architecture: architecture.to_owned(), log },
        }
    }
}

fn check_library() -> Result<(), NvrtcError> {
    // SAFETY: loads a well-known library and runs only its initializers.
    if unsafe { sys::is_culib_present() } { Ok(()) } else { Err(NvrtcError::Absent) }
}

fn compiler_error(call: &str) -> impl Fn(result::NvrtcError) -> NvrtcError {
    move |error| NvrtcError::Failed(format!("{call}: {error}"))
}

pub(super) fn architectures() -> Result<Vec<u32>, NvrtcError> {
    check_library()?;
    let mut count = 0;
    // SAFETY: writes one integer.
    unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut count) }
        .result()
        .map_err(compiler_error("nvrtcGetNumSupportedArchs"))?;
    let mut found = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: writes the number of integers just returned.
    unsafe { sys::nvrtcGetSupportedArchs(found.as_mut_ptr()) }
        .result()
        .map_err(compiler_error("nvrtcGetSupportedArchs"))?;
    Ok(found.into_iter().filter_map(|architecture| u32::try_from(architecture).ok()).collect())
}

/// A virtual architecture produces no cubin.
pub(super) fn compile(source: &str, options: &[String]) -> Result<CompiledKernels, NvrtcError> {
    check_library()?;
    let source = CString::new(source).map_err(|error| NvrtcError::Failed(error.to_string()))?;
    let program = result::create_program(&source, Some(c"throng.cu")).map_err(compiler_error("nvrtcCreateProgram"))?;
    // SAFETY: the program was just created and is destroyed after its last use; the source outlives it.
    let compiled = unsafe { result::compile_program(program, options) };
    // SAFETY: as above.
    let log = unsafe { result::get_program_log(program) }.map(|log| text(&log)).unwrap_or_default();
    let taken = compiled
        .map_err(|error| NvrtcError::Failed(format!("{error}\n{log}")))
        .and_then(|()| Ok((cubin(program)?, ptx(program)?)));
    // SAFETY: as above; not used afterwards.
    unsafe { result::destroy_program(program) }.map_err(compiler_error("nvrtcDestroyProgram"))?;
    let (cubin, ptx) = taken?;
    Ok(CompiledKernels { cubin, ptx, log })
}

fn cubin(program: sys::nvrtcProgram) -> Result<Vec<u8>, NvrtcError> {
    let mut size = 0;
    // SAFETY: the program is compiled; writes one integer.
    unsafe { sys::nvrtcGetCUBINSize(program, &raw mut size) }.result().map_err(compiler_error("nvrtcGetCUBINSize"))?;
    let mut bytes = vec![0_u8; size];
    if size > 0 {
        // SAFETY: the program is compiled; writes the number of bytes just returned.
        unsafe { sys::nvrtcGetCUBIN(program, bytes.as_mut_ptr().cast()) }
            .result()
            .map_err(compiler_error("nvrtcGetCUBIN"))?;
    }
    Ok(bytes)
}

fn ptx(program: sys::nvrtcProgram) -> Result<String, NvrtcError> {
    // SAFETY: the program is compiled.
    unsafe { result::get_ptx(program) }.map(|ptx| text(&ptx)).map_err(compiler_error("nvrtcGetPTX"))
}

fn text(characters: &[c_char]) -> String {
    let bytes: Vec<u8> = characters.iter().map(|c| c.to_le_bytes()[0]).collect();
    CStr::from_bytes_until_nul(&bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}
