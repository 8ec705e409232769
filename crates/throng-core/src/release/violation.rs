//! Reasons for refusals.

/// Reason for a refused batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum Violation {
    #[error("a class has fewer than k subjects")]
    ClassBelowK,
    #[error("a class has fewer than k subjects whose raw values cannot be excluded")]
    Narrowed,
    #[error("a cell does not cover the value of a record in its class")]
    NotInRange,
    #[error("a subject of a class of ranges would fit another class")]
    Overlap,
    #[error("a sensitive value has fewer than k subjects")]
    SensitiveBelowK,
    #[error("a class does not satisfy the models of a sensitive attribute")]
    Model,
    #[error("a sensitive cell that is not exact reveals a person or a value")]
    RevealingCell,
    #[error("a protected sensitive cell is generalized, or is of a record without a subject")]
    ProtectedCell,
    #[error("a subject exceeds max_classes_per_subject")]
    Budget,
    #[error("a line does not match the layout of its group")]
    UnreadableLine,
    #[error("a cell is not a known text of its attribute")]
    UnknownCell,
    #[error("a line has only suppressed cells in its class")]
    EmptyClass,
    #[error("a subject has more lines in a group than allowed")]
    TooManyLines,
    #[error("the lines are not sorted")]
    Unsorted,
    #[error("a row has two lines in one group, or is not in the batch")]
    WrongRow,
    #[error("the batch has fewer than k subjects")]
    FewSubjects,
    #[error(
        "two fragments of a row show different shared cells or levels, or a fragment released once per window shows shared cells"
    )]
    SharedCells,
    #[error("a shared value has fewer than k subjects in the batch")]
    SharedBelowK,
    #[error("counting links two groups for fewer than k subjects")]
    ForcedPair,
    /// Also occurs with a correct treatment.
    #[error("the check whether counting links the groups {0:?} for fewer than k subjects timed out")]
    CountingUnfinished([usize; 2]),
    #[error("a cell has the form of an identifier")]
    Identifier,
    #[error("the numbers of groups of the proposal and of the plan differ")]
    WrongGroups,
}

/// Refusal of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("verification refused the batch (group {group:?}): {violation}")]
pub struct BatchRefusal {
    /// Group at fault; none for the whole batch.
    pub group: Option<usize>,
    /// Violated claim of [`super::verify`].
    pub violation: Violation,
}

/// Reason for a refused data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum DataSetRefusal {
    #[error(
        "verification refused the release: {0} does not hold in a class; nothing was written (where rare sensitive values were suppressed, give them a coarser spelling in the input)"
    )]
    Model(&'static str),
    #[error(
        "verification refused the release: {0} does not hold in a class; nothing was written (where a hierarchy leads to `*` below its root, give that cell a name: `*` covers all people)"
    )]
    Population(&'static str),
    #[error("verification refused the release: {0}; nothing was written")]
    Aggregate(&'static str),
    #[error(
        "verification refused the counterfeits: {0}; nothing was written (this is a bug: remove anonymize.ceiling.lines until it is fixed)"
    )]
    Counterfeit(&'static str),
}
