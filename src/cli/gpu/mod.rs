//! `throng selftest gpu` and `throng bench gpu`: whether a GPU counts as the CPU does, and how fast.
//!
//! The only place above `counting` that knows the GPU by name: it is what these two commands are about. All but [`device`]
//! is the same for a CUDA device and for the emulated one of the tests.
//!
//! | file | what it holds |
//! |---|---|
//! | `selftest` | the command `throng selftest gpu` |
//! | `check` | random tables, and the device against the CPU on them |
//! | `bench` | the command `throng bench gpu` |
//! | `device` | how the device is opened and described |

mod bench;
mod check;
mod device;
mod selftest;

pub use bench::{BenchArgs, bench};
pub use selftest::{SelftestArgs, selftest};
