//! What the treatment proposes to release. It may be wrong: nothing of it leaves before it has been verified.

use std::ops::Range;
use throng_core::values::codebook::CellId;

/// Why a record is not released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreleased {
    /// No node of any ladder gave it support.
    NoSupport,
    /// The batch had fewer than `min_subjects` subjects.
    Quiet,
    /// Counting would have joined its fragments to those of another group.
    Guard,
}

/// Identical fragments, in the order in which they leave.
#[derive(Clone, Debug)]
pub struct Run {
    /// The encoded line, in the group's arena.
    pub line: Range<usize>,
    /// The rows that it stands for, one line each, in the group's `rows`.
    pub rows: Range<usize>,
}

/// The fragments of one group, sorted by their encoded bytes.
#[derive(Clone, Debug, Default)]
pub struct ProposedGroup {
    /// The bytes of all lines, one after the other.
    pub arena: Vec<u8>,
    /// The rows of all runs, one after the other.
    pub rows: Vec<u32>,
    /// Distinct lines with their rows, sorted by their bytes.
    pub runs: Vec<Run>,
    /// Rows of the batch that count for nobody in this group, by row; empty where all do.
    pub muted: Vec<bool>,
}

/// A treated batch.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    /// One for each group of the plan, in its order.
    pub groups: Vec<ProposedGroup>,
    /// The cell that leaves, by attribute and row; suppressed where nothing does.
    pub cells: Vec<Vec<CellId>>,
    /// Why a row does not leave at all; `None` for released and held rows.
    pub unreleased: Vec<Option<Unreleased>>,
    /// Rows to be tried again with the next batch.
    pub held: Vec<u32>,
    /// Fragments withdrawn because counting would have joined them to another group's.
    pub guarded_fragments: u64,
    /// Cells of attributes under a privacy model that are suppressed in fragments that leave.
    pub withheld_cells: u64,
    /// Sum of the Loss of the present quasi cells of the rows that are settled, and their number.
    pub loss: (f64, u64),
    /// Quasi cells that leave exactly, among the present ones that are settled.
    pub exact_cells: u64,
}
