//! Input of the verification: the terms of each group, and the batch.

use super::line_limits::LineLimit;
use super::protected_attributes::ProtectedTerms;
use crate::ledger::subject_ledger::LedgerView;
use crate::line_encoder::LineLayout;
use crate::values::codebook::{Code, Codebook};
use crate::values::subjects_by_value::SubjectsByValue;

/// Terms of a group that the verifier checks.
pub struct GroupTerms {
    /// Attributes in the order of the line.
    pub attributes: Vec<usize>,
    /// Marks the `attributes` that form the class.
    pub quasi: Vec<bool>,
    /// Marks the `attributes` that need k subjects per value.
    pub sensitive: Vec<bool>,
    /// Format in which the lines are written and read back.
    pub layout: LineLayout,
    /// Digest that names the quasi attribute set in the ledger.
    pub base: u128,
    /// Digest that names each attribute outside the class, by position in the schema.
    pub sensitive_bases: Vec<u128>,
    /// Sensitive attributes with models that every class must satisfy.
    pub protected: Vec<ProtectedTerms>,
    /// The ladder of a stream, used to check narrowing.
    pub narrowing: Option<NarrowingTerms>,
    /// Classes show ranges, and no subject of one class may fit in a finer one.
    pub ranges: bool,
    /// Limit on the released lines of one subject.
    pub lines: LineLimit,
    /// Sensitive attributes that lines outside this batch show. Hiding such an attribute in all lines of the batch
    /// distinguishes them. Empty unless a release is verified in parts ([`super::parts`]).
    pub shown_elsewhere: Vec<usize>,
    /// Subjects of lines outside this batch, by sensitive value. Empty unless a release is verified in parts.
    pub holders_elsewhere: SubjectsByValue,
}

/// The batch that the lines belong to.
#[derive(Clone, Copy, Debug)]
pub struct VerifierInput<'a> {
    /// Subject of each row.
    pub subjects: &'a [u64],
    /// Raw codes of the rows, by attribute and row.
    pub columns: &'a [Vec<Code>],
    /// Leading rows that were withheld from an earlier batch.
    pub waiting: usize,
    /// Number of the batch.
    pub sequence: u64,
    /// Age of the state with the batch, milliseconds.
    pub age_ms: i64,
}

/// A batch and the values that its lines are counted by.
#[derive(Clone, Copy)]
pub(super) struct RecountContext<'a> {
    /// The batch, with the counting subjects.
    pub given: &'a VerifierInput<'a>,
    /// Codebooks by attribute.
    pub books: &'a [Codebook],
    /// The ledger at the age of the batch.
    pub ledger: LedgerView<'a>,
    /// Distinct subjects that every class needs.
    pub k: usize,
    /// Attributes contained in several groups, ascending.
    pub shared: &'a [usize],
}

/// Ladder of a group, as known to the verifier.
#[derive(Clone, Debug)]
pub struct NarrowingTerms {
    /// The quasi attributes, by position in the schema.
    pub attributes: Vec<usize>,
    /// The nodes in the order in which records try them: one level per attribute.
    pub nodes: Vec<Vec<u8>>,
}
