//! Group counting on a GPU (docs/methods.md §6; [POD] §4.4.2, §5.3 and Alg. 7).
//!
//! [`CudaCounter`] asks a [`Device`] and says the same as the CPU, bit by bit. `docs/gpu.md` has the design, the memory
//! formula and the floors; the kernels are in `../kernels`.

mod batch;
mod counter;
mod device;
mod driver;
mod kept;
mod nvrtc;
mod pairs;
mod plan;
mod program;
mod route;
mod slices;
mod source;
mod tables;
mod usage;
mod window;

#[cfg(any(test, feature = "emulator"))]
pub mod emulator;
#[cfg(test)]
mod tests;

pub use counter::{Budget, CudaCounter};
pub use device::{Device, DeviceError, Limits, Poisoned, Shape, Ticket};
pub use driver::Driver;
pub use kept::{Arrival, KeptWindow, Snapshot};
pub use program::{KERNELS, Resources, resources};
pub use usage::Used;
pub use window::ResidentWindow;
