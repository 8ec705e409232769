//! `throng selftest gpu` and `throng bench gpu`: compare GPU and CPU. Only [`device`] distinguishes a CUDA device from
//! the emulated one of tests.

mod bench;
mod device;
mod device_check;
mod selftest;

pub use bench::{BenchArgs, bench};
pub use selftest::{SelftestArgs, selftest};
