//! What verification is told: the terms of each group, what is asked of a batch, and the batch itself.

use super::protected::ProtectedTerms;
use super::repetition::LineLimit;
use throng_core::ledger::per_subject::LedgerAt;
use throng_core::values::codebook::{Code, Codebook};
use throng_core::values::holders::Holders;
use throng_formats::LineLayout;

/// What the verifier knows of a group.
pub struct GroupTerms {
    /// Attributes in the order of the line.
    pub attributes: Vec<usize>,
    /// Which of `attributes` form the class.
    pub quasi: Vec<bool>,
    /// Which of `attributes` need support by themselves.
    pub sensitive: Vec<bool>,
    /// How its lines are written and read back.
    pub layout: LineLayout,
    /// Digest that names the quasi attribute set in the ledger.
    pub base: u128,
    /// Digest that names each attribute standing beside a class, by position in the schema.
    pub sensitive_bases: Vec<u128>,
    /// Sensitive attributes whose classes must satisfy models.
    pub protected: Vec<ProtectedTerms>,
    /// The ladder of a stream, where no class may be narrowed below k by whoever knows it.
    pub narrowing: Option<NarrowingTerms>,
    /// Classes show ranges, and nobody of one may be in a finer one.
    pub ranges: bool,
    /// How many lines of one subject may leave.
    pub lines: LineLimit,
    /// Sensitive attributes of which lines beside this batch show values: where all lines of the batch hide them, that tells these lines
    /// from the others. Empty but where a release is verified in parts ([`super::parts`]).
    pub shown_beside: Vec<usize>,
    /// People of lines beside this batch, by the sensitive value that they have. Empty but where a release is verified in parts.
    pub holders_beside: Holders,
}

/// The batch that the lines are of.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Whose each row is.
    pub subjects: &'a [u64],
    /// The rows' own codes, by attribute and row.
    pub columns: &'a [Vec<Code>],
    /// Rows from the first that have waited since an earlier batch.
    pub waiting: usize,
    /// Number of the batch.
    pub sequence: u64,
    /// Age of the state with the batch, milliseconds.
    pub age_ms: i64,
}

/// A batch, and what its lines are counted by.
#[derive(Clone, Copy)]
pub(super) struct Basis<'a> {
    /// The batch, with the subjects that count.
    pub given: &'a Given<'a>,
    /// Codebooks by attribute.
    pub books: &'a [Codebook],
    /// The ledger at the age of the batch.
    pub ledger: LedgerAt<'a>,
    /// Distinct subjects that every class needs.
    pub k: usize,
    /// Attributes that stand in several groups, ascending.
    pub shared: &'a [usize],
}

/// What the verifier knows of the ladder of a group.
#[derive(Clone, Debug)]
pub struct NarrowingTerms {
    /// The quasi attributes, by position in the schema.
    pub attributes: Vec<usize>,
    /// The nodes in the order in which records try them: a level for each attribute.
    pub nodes: Vec<Vec<u8>>,
}
