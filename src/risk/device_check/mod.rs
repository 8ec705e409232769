//! Whether a device counts as the CPU does, and how fast: what `throng selftest gpu` and `throng bench gpu` run.
//!
//! Everything here is the same for a CUDA device and for the emulated one of the tests.

mod bench;
mod cases;
mod peer;
mod selftest;
mod tables;

pub use bench::{BenchQuestion, Measured, OnCpu, bench};
pub use cases::Case;
pub use peer::{OnPeer, PeerError};
pub use selftest::{Check, SelftestError, selftest};
