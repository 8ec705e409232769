//! The engine processes one batch from raw tokens to a committed release, and keeps all state between batches.
//!
//! State changes only after the batch is released. An aborted batch leaves the engine unchanged, except for
//! dictionary entries, which do not affect the output.
//!
//! | module | content |
//! |---|---|
//! | `core` | the parts of the engine and its interface for the daemon |
//! | `build` | construction of an engine from a configuration and a state directory |
//! | `gather` | first steps of a batch: encoding, joins, held records, contribution limits |
//! | `release` | one type per step of a batch, its treatment and verification, cohort statistics |
//! | `learn` | learned statistics and their eviction; searches for plans and evidence on separate threads |
//! | `report` | reports, metrics and the audit record of a batch |
//! | `durable` | state that moves with its partition, erasure of subjects |

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
