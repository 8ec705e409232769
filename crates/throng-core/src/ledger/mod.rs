//! Per-subject history across batches.
//!
//! | file | contents |
//! |---|---|
//! | [`subject_ledger`] | the ledger, and its view at one point in time |
//! | [`release_log`] | the release log: one line per subject, group and window |
//! | [`supporters`] | tenure, and the classes that each subject supports |
//! | [`ledger_delta`] | changes of one batch |
//! | [`erased_keys`] | keys of subjects that are to be erased |

pub mod erased_keys;
pub mod ledger_delta;
pub mod release_log;
pub mod subject_ledger;
pub mod supporters;

/// Number of parts in which the ledger is written to disk, one after another.
pub const SHARDS: usize = 64;
