//! CUDA device through its driver library, loaded on first use. All calls use one stream.

#![allow(unsafe_code, reason = "calls into the CUDA driver, each with its reason")]

use super::device::{Device, DeviceError, DeviceLimits, DownloadTicket, LaunchShape};
use super::program::{self, KERNELS, KernelImage};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaModule, CudaStream, DriverError, LaunchConfig, PinnedHostSlice,
    PushKernelArg, result,
};
use cudarc::nvrtc::Ptx;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

const BLOCK_THREADS: u32 = 256;

const MAX_PENDING_UPLOADS: usize = 8;

const MIN_PINNED_BYTES: usize = 1 << 16;

/// First CUDA device of this machine.
pub struct CudaDriver {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    functions: BTreeMap<&'static str, CudaFunction>,
    limits: DeviceLimits,
    host: Mutex<PinnedMemoryPool>,
}

#[derive(Default)]
struct PinnedMemoryPool {
    /// Least recently used first.
    spare: Vec<PinnedBlock>,
    requested: BTreeMap<u64, (PinnedBlock, usize)>,
    tickets: u64,
}

struct PinnedBlock {
    block: PinnedHostSlice<u8>,
    copy_done: CudaEvent,
}

fn driver_error(call: &'static str) -> impl Fn(DriverError) -> DeviceError {
    move |error| DeviceError::Failed { call, reason: error.to_string() }
}

impl CudaDriver {
    /// Opens the first device and loads the kernels, compiled unless cached.
    ///
    /// # Errors
    /// If the driver, the device or its kernels are missing.
    pub fn open() -> Result<Arc<dyn Device>, DeviceError> {
        let absent = |reason: String| DeviceError::Absent { reason };
        // SAFETY: loads a well-known library and runs only its initializers.
        if !unsafe { sys::is_culib_present() } {
            return Err(absent("the driver library (libcuda) is not installed".to_owned()));
        }
        let context = CudaContext::new(0).map_err(|error| absent(error.to_string()))?;
        let stream = context.new_stream().map_err(driver_error("cuStreamCreate"))?;
        let limits = limits(&context)?;
        let module = load_kernels(&context, limits.capability)?;
        let functions = KERNELS
            .iter()
            .map(|name| Ok((*name, module.load_function(name).map_err(driver_error("cuModuleGetFunction"))?)))
            .collect::<Result<_, DeviceError>>()?;
        Ok(Arc::new(Self { context, stream, functions, limits, host: Mutex::new(PinnedMemoryPool::default()) }))
    }

    /// Returns the shared device, opened once.
    pub fn shared() -> Result<Arc<dyn Device>, DeviceError> {
        static DEVICE: OnceLock<Result<Arc<dyn Device>, DeviceError>> = OnceLock::new();
        DEVICE.get_or_init(Self::open).clone()
    }

    fn host(&self) -> MutexGuard<'_, PinnedMemoryPool> {
        self.host.lock().expect("no copy panics with the lock")
    }

    fn bind(&self) -> Result<(), DeviceError> {
        self.context.bind_to_thread().map_err(driver_error("cuCtxSetCurrent"))
    }

    fn take_pinned_block(&self, host: &mut PinnedMemoryPool, bytes: usize) -> Result<PinnedBlock, DeviceError> {
        let large = |pinned: &PinnedBlock| pinned.block.len() >= bytes;
        let mut ready = None;
        for (at, pinned) in host.spare.iter().enumerate() {
            if large(pinned) && pinned.copy_done.try_is_complete().map_err(driver_error("cuEventQuery"))? {
                ready = Some(at);
                break;
            }
        }
        if ready.is_none() && host.spare.len() >= MAX_PENDING_UPLOADS {
            host.spare[0].copy_done.synchronize().map_err(driver_error("cuEventSynchronize"))?;
            if large(&host.spare[0]) {
                ready = Some(0);
            } else {
                drop(host.spare.remove(0));
            }
        }
        if let Some(at) = ready {
            return Ok(host.spare.remove(at));
        }
        let size = bytes.next_power_of_two().max(MIN_PINNED_BYTES);
        // SAFETY: any byte value is valid, and bytes are written before they are read.
        let block = unsafe { self.context.alloc_pinned_with_flags(size, 0) }.map_err(driver_error("cuMemHostAlloc"))?;
        let done = self.context.new_event(None).map_err(driver_error("cuEventCreate"))?;
        Ok(PinnedBlock { block, copy_done: done })
    }
}

fn limits(context: &Arc<CudaContext>) -> Result<DeviceLimits, DeviceError> {
    let attribute = |attribute| {
        let value = context.attribute(attribute).map_err(driver_error("cuDeviceGetAttribute"))?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    let (free_bytes, memory_bytes) = context.mem_get_info().map_err(driver_error("cuMemGetInfo"))?;
    Ok(DeviceLimits {
        name: context.name().map_err(driver_error("cuDeviceGetName"))?,
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        threads: BLOCK_THREADS,
        shared_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        memory_bytes: memory_bytes as u64,
        free_bytes: free_bytes as u64,
        clock_hertz: 1000 * u64::from(attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?),
    })
}

fn load_kernels(context: &Arc<CudaContext>, capability: (u32, u32)) -> Result<Arc<CudaModule>, DeviceError> {
    let module = |image| {
        let image = match image {
            KernelImage::Cubin(bytes) => Ptx::from_binary(bytes),
            KernelImage::Ptx(text) => Ptx::from_src(text),
        };
        context.load_module(image).map_err(driver_error("cuModuleLoadData"))
    };
    match module(program::load_or_compile(capability)?) {
        Ok(module) => Ok(module),
        Err(_) => {
            program::remove_cached_program(capability);
            module(program::load_or_compile(capability)?)
        }
    }
}

impl Device for CudaDriver {
    fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DeviceError> {
        self.bind()?;
        let size = bytes as usize;
        let taken = if self.context.has_async_alloc() {
            // SAFETY: every region is filled or uploaded before it is read.
            unsafe { result::malloc_async(self.stream.cu_stream(), size) }
        } else {
            // SAFETY: as above.
            unsafe { result::malloc_sync(size) }
        };
        taken.map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => DeviceError::OutOfMemory { bytes },
            _ => driver_error("cuMemAlloc")(error),
        })
    }

    fn free(&self, address: u64) {
        let freed = self.bind().and_then(|()| {
            if self.context.has_async_alloc() {
                // SAFETY: `DeviceMemory` frees each allocation once, on the stream that used it.
                unsafe { result::free_async(address, self.stream.cu_stream()) }.map_err(driver_error("cuMemFree"))
            } else {
                self.stream.synchronize().map_err(driver_error("cuStreamSynchronize"))?;
                // SAFETY: as above; the stream no longer uses it.
                unsafe { result::free_sync(address) }.map_err(driver_error("cuMemFree"))
            }
        });
        if let Err(error) = freed {
            tracing::debug!(%error, "device memory could not be freed");
        }
    }

    fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.bind()?;
        let mut host = self.host();
        let mut pinned = self.take_pinned_block(&mut host, bytes.len())?;
        let block = pinned.block.as_mut_slice().map_err(driver_error("cuEventSynchronize"))?;
        block[..bytes.len()].copy_from_slice(bytes);
        // SAFETY: the block is pinned and unused in `spare` until the event after this copy. Callers upload only into
        // owned memory.
        let copied = unsafe { result::memcpy_htod_async(to, &block[..bytes.len()], self.stream.cu_stream()) };
        let recorded = copied.and_then(|()| pinned.copy_done.record(&self.stream));
        host.spare.push(pinned);
        recorded.map_err(driver_error("cuMemcpyHtoDAsync"))
    }

    fn fill(&self, at: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.bind()?;
        // SAFETY: callers fill only owned memory, in which any byte value is valid.
        let filled = unsafe { result::memset_d8_async(at, value, bytes as usize, self.stream.cu_stream()) };
        filled.map_err(driver_error("cuMemsetD8Async"))
    }

    fn launch(&self, kernel: &'static str, shape: LaunchShape, arguments: &[u64]) -> Result<(), DeviceError> {
        self.bind()?;
        let function = self.functions.get(kernel).ok_or_else(|| DeviceError::Failed {
            call: "cuLaunchKernel",
            reason: format!("unknown kernel {kernel}"),
        })?;
        let mut launch = self.stream.launch_builder(function);
        for argument in arguments {
            launch.arg(argument);
        }
        let shape = LaunchConfig {
            grid_dim: (shape.columns, shape.rows, 1),
            block_dim: (shape.threads, 1, 1),
            shared_mem_bytes: shape.shared_bytes,
        };
        // SAFETY: kernels and arguments come from this module; the emulation runs the same launches with guard pages. A
        // four-byte parameter reads the low half of its argument (little-endian).
        unsafe { launch.launch(shape) }.map(|_| ()).map_err(driver_error("cuLaunchKernel"))
    }

    fn request(&self, from: u64, bytes: usize) -> Result<DownloadTicket, DeviceError> {
        self.bind()?;
        let mut host = self.host();
        let mut pinned = self.take_pinned_block(&mut host, bytes.max(1))?;
        let block = pinned.block.as_mut_slice().map_err(driver_error("cuEventSynchronize"))?;
        // SAFETY: the block is pinned, and neither read nor dropped before the event after this copy.
        let copied = unsafe { result::memcpy_dtoh_async(&mut block[..bytes], from, self.stream.cu_stream()) };
        copied.and_then(|()| pinned.copy_done.record(&self.stream)).map_err(driver_error("cuMemcpyDtoHAsync"))?;
        host.tickets += 1;
        let number = host.tickets;
        host.requested.insert(number, (pinned, bytes));
        Ok(DownloadTicket(number))
    }

    fn collect(&self, ticket: DownloadTicket) -> Result<Vec<u8>, DeviceError> {
        self.bind()?;
        let requested = self.host().requested.remove(&ticket.0);
        let Some((pinned, bytes)) = requested else {
            return Err(DeviceError::Failed { call: "collect", reason: "nothing was requested".to_owned() });
        };
        let waited = pinned.copy_done.synchronize();
        let copy = pinned.block.as_slice().map(|block| block[..bytes].to_vec());
        self.host().spare.push(pinned);
        waited.and(copy).map_err(driver_error("cuEventSynchronize"))
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        if let Err(error) = self.stream.synchronize() {
            tracing::debug!(%error, "device lost before shutdown");
        }
    }
}
