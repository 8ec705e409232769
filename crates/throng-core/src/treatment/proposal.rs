//! Proposed release, before verification.

use crate::values::codebook::CellId;
use std::ops::Range;

/// Reason why a record is not released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreleasedReason {
    /// No supported node.
    NoSupport,
    /// Too few subjects in the batch or its releasable part.
    TooFewSubjects,
    /// No fragment left by the counting guard.
    CountingGuard,
}

/// Identical fragments, in output order.
#[derive(Clone, Debug)]
pub struct LineRun {
    /// Encoded line, in the group's arena.
    pub line: Range<usize>,
    /// Range of the group's `rows` with this line.
    pub rows: Range<usize>,
}

/// Fragments of one group, sorted by bytes.
#[derive(Clone, Debug, Default)]
pub struct ProposedGroup {
    /// Bytes of all lines.
    pub arena: Vec<u8>,
    /// Rows of all runs.
    pub rows: Vec<u32>,
    /// Distinct lines, sorted by bytes.
    pub runs: Vec<LineRun>,
    /// Rows that count for no subject in this group. Empty: none.
    pub muted: Vec<bool>,
}

/// Treated batch.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    /// Groups, in the plan's order.
    pub groups: Vec<ProposedGroup>,
    /// Cell by attribute and row; suppressed if not released.
    pub cells: Vec<Vec<CellId>>,
    /// Reason by row; `None` for released and held rows.
    pub unreleased: Vec<Option<UnreleasedReason>>,
    /// Rows to try again with the next batch.
    pub held: Vec<u32>,
    /// Fragments withdrawn by the counting guard.
    pub guarded_fragments: u64,
    /// Suppressed protected cells in released fragments.
    pub withheld_cells: u64,
    /// Summed Loss and number of present quasi-identifier cells, without held rows.
    pub loss: (f64, u64),
    /// Exact cells among these.
    pub exact_cells: u64,
}
