//! The ledger: what is remembered of each subject across batches.
//!
//! | file | what it holds |
//! |---|---|
//! | [`per_subject`] | the ledger, and what of it counts at one moment |
//! | [`said`] | the release log: one line per subject, group and window |
//! | [`supporters`] | tenure, and how many classes each subject supports |
//! | [`delta`] | what one batch adds |
//! | [`erased_keys`] | keys of people who are to be erased |

pub mod delta;
pub mod erased_keys;
pub mod per_subject;
pub mod said;
pub mod supporters;

/// The ledger is written to disk in this many parts, one after another.
pub const SHARDS: usize = 64;
