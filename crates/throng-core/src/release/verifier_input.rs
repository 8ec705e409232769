//! Input of the verification.

use super::line_limits::LineLimit;
use super::protected_attributes::ProtectedTerms;
use crate::ledger::subject_ledger::LedgerView;
use crate::line_encoder::LineLayout;
use crate::values::codebook::{Code, Codebook};
use crate::values::subjects_by_value::SubjectsByValue;

/// Terms of a group.
pub struct GroupTerms {
    /// Attributes in line order.
    pub attributes: Vec<usize>,
    /// Marks class attributes.
    pub quasi: Vec<bool>,
    /// Marks attributes that need k subjects per value.
    pub sensitive: Vec<bool>,
    /// Line format.
    pub layout: LineLayout,
    /// Ledger digest of the quasi attributes.
    pub base: u128,
    /// Digest of each attribute outside the class, by schema position.
    pub sensitive_bases: Vec<u128>,
    /// Attributes with models for every class.
    pub protected: Vec<ProtectedTerms>,
    /// Ladder of a stream.
    pub narrowing: Option<NarrowingTerms>,
    /// Set if classes show ranges.
    pub ranges: bool,
    /// Line limit per subject.
    pub lines: LineLimit,
    /// Sensitive attributes shown outside this batch, for releases in parts ([`super::parts`]).
    pub shown_elsewhere: Vec<usize>,
    /// Subjects by sensitive value outside this batch, for releases in parts.
    pub holders_elsewhere: SubjectsByValue,
}

/// Input batch.
#[derive(Clone, Copy, Debug)]
pub struct VerifierInput<'a> {
    /// Subjects by row.
    pub subjects: &'a [u64],
    /// Raw codes by attribute and row.
    pub columns: &'a [Vec<Code>],
    /// Number of leading rows withheld from an earlier batch.
    pub waiting: usize,
    /// Batch number.
    pub sequence: u64,
    /// Age of the state, in milliseconds.
    pub age_ms: i64,
}

#[derive(Clone, Copy)]
pub(super) struct RecountContext<'a> {
    /// With the counting subjects.
    pub given: &'a VerifierInput<'a>,
    pub books: &'a [Codebook],
    /// At the age of the batch.
    pub ledger: LedgerView<'a>,
    pub k: usize,
    /// Attributes contained in several groups, ascending.
    pub shared: &'a [usize],
}

/// Ladder of a group.
#[derive(Clone, Debug)]
pub struct NarrowingTerms {
    /// Quasi attributes (schema positions).
    pub attributes: Vec<usize>,
    /// Nodes in ladder order: one level per attribute.
    pub nodes: Vec<Vec<u8>>,
}
