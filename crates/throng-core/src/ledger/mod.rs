//! Per-subject history across batches: release log, tenure and class budgets.

pub mod erased_keys;
pub mod ledger_delta;
pub mod release_log;
pub mod subject_ledger;
pub mod supporters;

/// Number of parts in which the ledger is written to disk.
pub const SHARDS: usize = 64;
