//! The engine: one batch from raw tokens to a committed release, and everything that it remembers.
//!
//! Nothing that is remembered changes before the batch has left: an aborted batch leaves the engine as it was (but for
//! dictionary entries, on which no output depends).
//!
//! | module | content |
//! |---|---|
//! | `core` | the engine's parts, and what the daemon asks of it |
//! | `settings`, `assemble`, `prime`, `resume` | from a configuration and a state directory to an engine |
//! | `steps` | the steps of a batch, each a type |
//! | `encode_ahead`, `gather`, `joins`, `contribution_limit`, `held` | what comes before the treatment |
//! | `treatment`, `verifier_terms` | treatment and verification of a batch |
//! | `series_stream` | statistics of cohorts beside the fragments |
//! | `model`, `memory` | what is learned and forgotten |
//! | `planning`, `search` | the next plan, and evidence for the one in force, sought on threads of their own |
//! | `account`, `audit` | reports, metrics and the audit record of a batch |
//! | `changelog` | state that moves with its partition |
//! | `erasing` | erasure of people while the daemon runs |
//! | `clock` | the time of a state |

mod account;
pub mod assemble;
pub mod audit;
mod changelog;
pub mod clock;
mod contribution_limit;
mod core;
mod encode_ahead;
mod erasing;
mod gather;
mod held;
mod joins;
mod memory;
mod model;
mod planning;
mod prime;
mod resume;
mod search;
mod series_exchange;
mod series_stream;
mod settings;
mod steps;
mod treatment;
pub mod verifier_terms;

pub use core::{BatchError, Engine};
pub use encode_ahead::{POLL_INTERVAL, Turn, Upcoming};
pub use gather::Settling;
pub use series_exchange::IdleSources;
