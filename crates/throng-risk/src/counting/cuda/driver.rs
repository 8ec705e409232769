//! A CUDA device through its driver, which is loaded when it is first asked for.
//!
//! This file and `nvrtc.rs` hold the unsafe code for the device: calls into two libraries. Everything on the device goes
//! through one stream, in order; nothing waits for the device but [`Device::collect`].

#![allow(unsafe_code, reason = "calls into the CUDA driver, each with its reason")]

use super::device::{Device, DeviceError, Limits, Shape, Ticket};
use super::program::{self, Image, KERNELS};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaModule, CudaStream, DriverError, LaunchConfig, PinnedHostSlice,
    PushKernelArg, result,
};
use cudarc::nvrtc::Ptx;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Threads of a block.
const THREADS: u32 = 256;

/// Uploads on their way at once; one more waits for the first.
const ON_THEIR_WAY: usize = 8;

/// The smallest pinned block, in bytes.
const SMALLEST_BLOCK: usize = 1 << 16;

/// The first CUDA device of this machine.
pub struct Driver {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    functions: BTreeMap<&'static str, CudaFunction>,
    limits: Limits,
    host: Mutex<Host>,
}

/// Pinned memory of the host.
#[derive(Default)]
struct Host {
    /// Oldest use first.
    spare: Vec<Pinned>,
    requested: BTreeMap<u64, (Pinned, usize)>,
    tickets: u64,
}

struct Pinned {
    block: PinnedHostSlice<u8>,
    /// After the last copy from or to it.
    done: CudaEvent,
}

fn failed(call: &'static str) -> impl Fn(DriverError) -> DeviceError {
    move |error| DeviceError::Failed { call, reason: error.to_string() }
}

impl Driver {
    /// Opens the first device and loads the kernels, compiled for it where that was not done before.
    ///
    /// # Errors
    /// Without a driver, a device or kernels for it.
    pub fn open() -> Result<Arc<dyn Device>, DeviceError> {
        let absent = |reason: String| DeviceError::Absent { reason };
        // SAFETY: loads a library by its well-known names and calls nothing in it but its initializers.
        if !unsafe { sys::is_culib_present() } {
            return Err(absent("the driver's library (libcuda) is not on this machine".to_owned()));
        }
        let context = CudaContext::new(0).map_err(|error| absent(error.to_string()))?;
        let stream = context.new_stream().map_err(failed("cuStreamCreate"))?;
        let limits = limits(&context)?;
        let module = load(&context, limits.capability)?;
        let functions = KERNELS
            .iter()
            .map(|name| Ok((*name, module.load_function(name).map_err(failed("cuModuleGetFunction"))?)))
            .collect::<Result<_, DeviceError>>()?;
        Ok(Arc::new(Self { context, stream, functions, limits, host: Mutex::new(Host::default()) }))
    }

    /// The same device for the whole process, opened once.
    pub fn shared() -> Result<Arc<dyn Device>, DeviceError> {
        static DEVICE: OnceLock<Result<Arc<dyn Device>, DeviceError>> = OnceLock::new();
        DEVICE.get_or_init(Self::open).clone()
    }

    fn host(&self) -> MutexGuard<'_, Host> {
        self.host.lock().expect("no copy panics with the lock")
    }

    fn bind(&self) -> Result<(), DeviceError> {
        self.context.bind_to_thread().map_err(failed("cuCtxSetCurrent"))
    }

    /// A pinned block that nothing uses any more.
    fn pinned(&self, host: &mut Host, bytes: usize) -> Result<Pinned, DeviceError> {
        let large = |pinned: &Pinned| pinned.block.len() >= bytes;
        let mut ready = None;
        for (at, pinned) in host.spare.iter().enumerate() {
            if large(pinned) && pinned.done.try_is_complete().map_err(failed("cuEventQuery"))? {
                ready = Some(at);
                break;
            }
        }
        if ready.is_none() && host.spare.len() >= ON_THEIR_WAY {
            host.spare[0].done.synchronize().map_err(failed("cuEventSynchronize"))?;
            if large(&host.spare[0]) {
                ready = Some(0);
            } else {
                drop(host.spare.remove(0));
            }
        }
        if let Some(at) = ready {
            return Ok(host.spare.remove(at));
        }
        let size = bytes.next_power_of_two().max(SMALLEST_BLOCK);
        // SAFETY: the block holds bytes, which are valid whatever they are; none is read before it is written.
        let block = unsafe { self.context.alloc_pinned_with_flags(size, 0) }.map_err(failed("cuMemHostAlloc"))?;
        let done = self.context.new_event(None).map_err(failed("cuEventCreate"))?;
        Ok(Pinned { block, done })
    }
}

fn limits(context: &Arc<CudaContext>) -> Result<Limits, DeviceError> {
    let attribute = |attribute| {
        let value = context.attribute(attribute).map_err(failed("cuDeviceGetAttribute"))?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    let (free_bytes, memory_bytes) = context.mem_get_info().map_err(failed("cuMemGetInfo"))?;
    Ok(Limits {
        name: context.name().map_err(failed("cuDeviceGetName"))?,
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        threads: THREADS,
        shared_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        memory_bytes: memory_bytes as u64,
        free_bytes: free_bytes as u64,
        clock_hertz: 1000 * u64::from(attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?),
    })
}

/// The kernels, from the cache where there are some that the driver takes.
fn load(context: &Arc<CudaContext>, capability: (u32, u32)) -> Result<Arc<CudaModule>, DeviceError> {
    let module = |image| {
        let image = match image {
            Image::Cubin(bytes) => Ptx::from_binary(bytes),
            Image::Ptx(text) => Ptx::from_src(text),
        };
        context.load_module(image).map_err(failed("cuModuleLoadData"))
    };
    match module(program::image(capability)?) {
        Ok(module) => Ok(module),
        Err(_) => {
            program::forget(capability);
            module(program::image(capability)?)
        }
    }
}

impl Device for Driver {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DeviceError> {
        self.bind()?;
        let size = bytes as usize;
        let taken = if self.context.has_async_alloc() {
            // SAFETY: the memory is written before it is read: every region is filled or uploaded first.
            unsafe { result::malloc_async(self.stream.cu_stream(), size) }
        } else {
            // SAFETY: as above.
            unsafe { result::malloc_sync(size) }
        };
        taken.map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => DeviceError::OutOfMemory { bytes },
            _ => failed("cuMemAlloc")(error),
        })
    }

    fn free(&self, address: u64) {
        let freed = self.bind().and_then(|()| {
            if self.context.has_async_alloc() {
                // SAFETY: `Memory` frees what `allocate` gave, once, on the stream that used it.
                unsafe { result::free_async(address, self.stream.cu_stream()) }.map_err(failed("cuMemFree"))
            } else {
                self.stream.synchronize().map_err(failed("cuStreamSynchronize"))?;
                // SAFETY: as above, and nothing on the stream uses it any more.
                unsafe { result::free_sync(address) }.map_err(failed("cuMemFree"))
            }
        });
        if let Err(error) = freed {
            tracing::debug!(%error, "device memory could not be given back");
        }
    }

    fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.bind()?;
        let mut host = self.host();
        let mut pinned = self.pinned(&mut host, bytes.len())?;
        let block = pinned.block.as_mut_slice().map_err(failed("cuEventSynchronize"))?;
        block[..bytes.len()].copy_from_slice(bytes);
        // SAFETY: the block is pinned and stays in `spare`, unused, until the event after this copy is complete; the
        // callers of this room upload only into memory that they hold.
        let copied = unsafe { result::memcpy_htod_async(to, &block[..bytes.len()], self.stream.cu_stream()) };
        let recorded = copied.and_then(|()| pinned.done.record(&self.stream));
        host.spare.push(pinned);
        recorded.map_err(failed("cuMemcpyHtoDAsync"))
    }

    fn fill(&self, at: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.bind()?;
        // SAFETY: the callers of this room fill only memory that they hold, and any byte is valid in it.
        let filled = unsafe { result::memset_d8_async(at, value, bytes as usize, self.stream.cu_stream()) };
        filled.map_err(failed("cuMemsetD8Async"))
    }

    fn launch(&self, kernel: &'static str, shape: Shape, arguments: &[u64]) -> Result<(), DeviceError> {
        self.bind()?;
        let function = self.functions.get(kernel).ok_or_else(|| DeviceError::Failed {
            call: "cuLaunchKernel",
            reason: format!("there is no kernel {kernel}"),
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
        // SAFETY: the kernels and their arguments are those of this room. The emulation runs the same launches with
        // every buffer ended by a page that may not be touched. A four-byte parameter reads the low half of its argument
        // (little-endian).
        unsafe { launch.launch(shape) }.map(|_| ()).map_err(failed("cuLaunchKernel"))
    }

    fn request(&self, from: u64, bytes: usize) -> Result<Ticket, DeviceError> {
        self.bind()?;
        let mut host = self.host();
        let mut pinned = self.pinned(&mut host, bytes.max(1))?;
        let block = pinned.block.as_mut_slice().map_err(failed("cuEventSynchronize"))?;
        // SAFETY: the block is pinned and is neither read nor dropped before the event after this copy is complete.
        let copied = unsafe { result::memcpy_dtoh_async(&mut block[..bytes], from, self.stream.cu_stream()) };
        copied.and_then(|()| pinned.done.record(&self.stream)).map_err(failed("cuMemcpyDtoHAsync"))?;
        host.tickets += 1;
        let number = host.tickets;
        host.requested.insert(number, (pinned, bytes));
        Ok(Ticket(number))
    }

    fn collect(&self, ticket: Ticket) -> Result<Vec<u8>, DeviceError> {
        self.bind()?;
        let requested = self.host().requested.remove(&ticket.0);
        let Some((pinned, bytes)) = requested else {
            return Err(DeviceError::Failed { call: "collect", reason: "nothing was requested".to_owned() });
        };
        let waited = pinned.done.synchronize();
        let copy = pinned.block.as_slice().map(|block| block[..bytes].to_vec());
        self.host().spare.push(pinned);
        waited.and(copy).map_err(failed("cuEventSynchronize"))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Pinned blocks may still be in use.
        if let Err(error) = self.stream.synchronize() {
            tracing::debug!(%error, "the device was lost before its end");
        }
    }
}
