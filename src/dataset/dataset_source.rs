//! Input files of one data set, its memory limit, and the callbacks of a run.

use super::error::AnonymizeError;
use crate::start::run_findings::RunFinding;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use throng_core::lattice::search::LatticeSearchProgress;

/// Additional input files, memory limit and storage of one data set.
#[derive(Clone, Copy, Debug)]
pub struct DatasetSource<'a> {
    /// Further files, directories or patterns, read after `source.path` as one table.
    pub more: &'a [PathBuf],
    /// Limit of memory in bytes.
    pub memory: u64,
    /// Directory of the unnamed file for the codes; `None` keeps them in memory.
    pub temp: Option<&'a Path>,
    /// Maximum records per part of the release; `None` means as many as memory allows. Used only with a file.
    pub part: Option<usize>,
}

impl DatasetSource<'static> {
    /// Reads only `source.path` and keeps it in memory without a limit.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { more: &[], memory: u64::MAX, temp: None, part: None }
    }
}

/// Callback for the progress of the search.
pub type SearchCallback<'a> = &'a (dyn Fn(&LatticeSearchProgress) + Sync);

/// Callback for the progress of all other work; an error ends the run.
pub type StepCallback<'a> = &'a dyn Fn(AnonymizationStep) -> Result<(), AnonymizeError>;

/// Callbacks and stop flag of a run.
#[derive(Clone, Copy)]
pub struct RunCallbacks<'a> {
    /// Called from time to time with the progress of the search and the time left.
    pub watch: SearchCallback<'a>,
    /// Ends the search with the best policy found so far once it is true.
    pub stop: &'a AtomicBool,
    /// Called with findings about the data, before the search.
    pub note: &'a dyn Fn(&RunFinding),
    /// Called with the progress of all other work; may end the run.
    pub step: StepCallback<'a>,
}

/// Current step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names document the counts")]
pub enum AnonymizationStep {
    /// Reads records.
    Reading { records: u64 },
    /// Reads the records again to count classes or subjects.
    Counting { records: u64, of: u64 },
    /// Starts or restarts the search.
    Searching,
    /// Divides released records into parts.
    Dividing { records: u64, of: u64 },
    /// Builds and verifies parts of the release.
    Verifying { part: u64, of: u64 },
    /// Writes verified lines.
    Writing { lines: u64, of: u64 },
}
