//! How far a data set is, beside its search.

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "counts of what their names say")]
pub enum Step {
    /// Records are read.
    Reading { records: u64 },
    /// Records are gone through once more, for their classes or their people.
    Counting { records: u64, of: u64 },
    /// Parts of the release are made and verified.
    Verifying { part: u64, of: u64 },
    /// Verified lines are written.
    Writing { lines: u64, of: u64 },
}
