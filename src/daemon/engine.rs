//! The engine processes one batch from raw tokens to a committed release, and keeps all state between batches.
//!
//! State changes only after the batch is released. An aborted batch leaves the engine unchanged, except for
//! dictionary entries, which do not affect the output.
//!
//! | module | content |
//! |---|---|
//! | `core` | the parts of the engine and its interface for the daemon |
//! | `settings`, `assemble`, `prime`, `resume` | construction of an engine from a configuration and a state directory |
//! | `steps` | one type per step of a batch |
//! | `encode_ahead`, `gather`, `profile_joins`, `contribution_limit`, `held_records` | steps before the treatment |
//! | `treatment`, `verifier_terms` | treatment and verification of a batch |
//! | `series_stream` | cohort statistics, published in addition to the fragments |
//! | `model`, `memory` | learned statistics and their eviction |
//! | `planning`, `search` | searches for the next plan and for evidence on the plan in force, on separate threads |
//! | `batch_report`, `audit` | reports, metrics and the audit record of a batch |
//! | `changelog` | state that moves with its partition |
//! | `live_erasure` | erasure of subjects while the daemon runs |
//! | `clock` | the time of a state |

pub mod assemble;
pub mod audit;
mod batch_report;
mod changelog;
pub mod clock;
mod contribution_limit;
mod core;
mod encode_ahead;
mod gather;
mod held_records;
mod live_erasure;
mod memory;
mod model;
mod planning;
mod prime;
mod profile_joins;
mod resume;
mod search;
mod series_exchange;
mod series_stream;
mod settings;
mod steps;
mod treatment;
pub mod verifier_terms;

pub use core::{BatchError, Engine};
pub use encode_ahead::{NextBatchSource, POLL_INTERVAL, QueuedBatch};
pub use gather::SettlementReason;
pub use series_exchange::IdleSources;
