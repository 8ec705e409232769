//! `throng selftest gpu` and `throng bench gpu`: compare the GPU with the CPU, for correctness and for speed.
//!
//! No other module above `counting` names the GPU. All files but [`device`] treat a CUDA device and the emulated
//! device of the tests alike.
//!
//! | file | content |
//! |---|---|
//! | `selftest` | the command `throng selftest gpu` |
//! | `check` | random tables, and the comparison of the device with the CPU |
//! | `bench` | the command `throng bench gpu` |
//! | `device` | opening and describing the device |

mod bench;
mod device;
mod device_check;
mod selftest;

pub use bench::{BenchArgs, bench};
pub use selftest::{SelftestArgs, selftest};
