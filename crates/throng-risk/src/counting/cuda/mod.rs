//! Group counting on a GPU, bit by bit as on the CPU (docs/internals/gpu.md, docs/internals/methods.md §6; \[POD]
//! §4.4.2, §5.3 and Alg. 7).

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
