//! Input, memory limit and callbacks of a run.

use super::error::AnonymizeError;
use crate::start::run_findings::RunFinding;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use throng_core::lattice::search::LatticeSearchProgress;

/// Further input, memory limit and storage.
#[derive(Clone, Copy, Debug)]
pub struct DatasetSource<'a> {
    /// Files, directories or patterns after `source.path`.
    pub more: &'a [PathBuf],
    /// Memory limit in bytes.
    pub memory: u64,
    /// Directory of the unnamed file; `None`: memory.
    pub temp: Option<&'a Path>,
    /// Maximum records per part in a file; `None`: as memory allows.
    pub part: Option<usize>,
}

impl DatasetSource<'static> {
    /// Reads only `source.path`, without a limit.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { more: &[], memory: u64::MAX, temp: None, part: None }
    }
}

/// Receives the progress of the search.
pub type SearchCallback<'a> = &'a (dyn Fn(&LatticeSearchProgress) + Sync);

/// Receives other progress; an error ends the run.
pub type StepCallback<'a> = &'a dyn Fn(AnonymizationStep) -> Result<(), AnonymizeError>;

/// Callbacks and stop flag.
#[derive(Clone, Copy)]
pub struct RunCallbacks<'a> {
    /// Receives search progress and time left.
    pub watch: SearchCallback<'a>,
    /// Ends the search with the best policy so far.
    pub stop: &'a AtomicBool,
    /// Receives findings before the search.
    pub note: &'a dyn Fn(&RunFinding),
    /// Receives other progress; may end the run.
    pub step: StepCallback<'a>,
}

/// Step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names document the counts")]
pub enum AnonymizationStep {
    /// Reads records.
    Reading { records: u64 },
    /// Counts classes or subjects.
    Counting { records: u64, of: u64 },
    /// Starts or restarts the search.
    Searching,
    /// Divides records into parts.
    Dividing { records: u64, of: u64 },
    /// Builds and verifies parts.
    Verifying { part: u64, of: u64 },
    /// Writes verified lines.
    Writing { lines: u64, of: u64 },
}
