//! The engine processes one batch from raw tokens to a committed release, and keeps all state between batches. An
//! aborted batch changes no state except dictionary entries, which do not affect the output.
//!
//! `build` constructs the engine; `gather`, `release` and `report` process a batch; `learn` makes plans; `durable`
//! holds state that moves with its partition.

pub mod build;
mod core;
pub mod durable;
mod gather;
mod learn;
pub mod release;
pub mod report;

pub use core::{BatchError, Engine};
pub use gather::encode_ahead::{NextBatchSource, POLL_INTERVAL, QueuedBatch};
pub use release::series_exchange::IdleSources;
