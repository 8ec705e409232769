//! Proposed release of the treatment. It is released only after verification.

use crate::values::codebook::CellId;
use std::ops::Range;

/// Reason why a record is not released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreleasedReason {
    /// No node of any ladder has support for it.
    NoSupport,
    /// The batch, or the part of it that could be released, has fewer than k distinct subjects.
    TooFewSubjects,
    /// It has no fragment left after the counting guard.
    CountingGuard,
}

/// Identical fragments, in output order.
#[derive(Clone, Debug)]
pub struct LineRun {
    /// Encoded line, in the group's arena.
    pub line: Range<usize>,
    /// Rows that share the line, as a range of the group's `rows`; the line is released once per row.
    pub rows: Range<usize>,
}

/// Fragments of one group, sorted by their encoded bytes.
#[derive(Clone, Debug, Default)]
pub struct ProposedGroup {
    /// Bytes of all lines, concatenated.
    pub arena: Vec<u8>,
    /// Rows of all runs, concatenated.
    pub rows: Vec<u32>,
    /// Distinct lines with their rows, sorted by their bytes.
    pub runs: Vec<LineRun>,
    /// By row of the batch: set if it counts for no subject in this group. Empty if all rows count.
    pub muted: Vec<bool>,
}

/// Treated batch.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    /// One entry per group of the plan, in the plan's order.
    pub groups: Vec<ProposedGroup>,
    /// Released cell by attribute and row; suppressed where nothing is released.
    pub cells: Vec<Vec<CellId>>,
    /// Reason why a row is not released at all; `None` for released and held rows.
    pub unreleased: Vec<Option<UnreleasedReason>>,
    /// Rows to try again with the next batch.
    pub held: Vec<u32>,
    /// Number of fragments that the counting guard withdrew.
    pub guarded_fragments: u64,
    /// Number of suppressed cells of protected attributes in released fragments.
    pub withheld_cells: u64,
    /// Sum of the Loss over the present quasi-identifier cells of rows that are not held, and their number.
    pub loss: (f64, u64),
    /// Number of exact cells among these.
    pub exact_cells: u64,
}
