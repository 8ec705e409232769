//! What is asked of an audit.

use std::time::Duration;

use super::report::Singletons;
use crate::counting::Wanted;
use crate::risk::qid::{Progress, Strategy};

/// The search's part of a time budget; the rest is for measuring what it found.
pub(super) const SEARCH_SHARE: f64 = 0.8;

/// What is asked of a table.
#[derive(Clone, Debug)]
pub struct AuditQuestion {
    /// The input, as reports name it.
    pub input: String,
    /// At least 2.
    pub k: u32,
    /// What is done with rare single values.
    pub singletons: Singletons,
    /// How the search goes.
    pub strategy: Strategy,
    /// Threads, at least one.
    pub threads: usize,
    /// What counts.
    pub backend: Wanted,
    /// Time for search and measuring together.
    pub budget: Option<Duration>,
    /// Bytes that the search may hold beside the table; of a table in files, all that counting, witnesses and search may hold.
    pub memory: Option<u64>,
    /// Records to list by their score; 0 for no list.
    pub rows: usize,
    /// What reading took, for the report.
    pub read_seconds: f64,
}

/// What the audit is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The search, and how far it is.
    Searching(Progress),
    /// Sets looked at, and how many of this kind there are.
    Measuring(usize, usize),
}
