//! Group counting on a GPU (docs/internals/methods.md §6; \[POD] §4.4.2, §5.3 and Alg. 7).
//!
//! Results are identical to those of the CPU, bit by bit. `docs/internals/gpu.md` describes the design, the memory formula and
//! the lower limits. The kernels are in `../kernels`.

mod batch_slot;
mod counting_route;
mod cuda_counter;
mod device;
mod driver;
mod kernel_tables;
mod nvrtc;
mod pair_query;
mod plan;
mod program;
mod resident_window;
mod row_source;
mod sliced_pairs;
mod stream_window;
mod usage;

#[cfg(any(test, feature = "emulator"))]
pub mod emulator;
#[cfg(test)]
mod tests;

pub use cuda_counter::{CudaCounter, DeviceBudget};
pub use device::{Device, DeviceError, DeviceLimits, DownloadTicket, LaunchShape, PoisonedDevice};
pub use driver::CudaDriver;
pub use program::{KERNELS, KernelResources, compile_resources};
pub use resident_window::ResidentWindow;
pub use stream_window::{StreamWindow, WindowArrival, WindowSnapshot};
pub use usage::DeviceUsage;
