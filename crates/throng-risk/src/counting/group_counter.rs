//! Counting interface.

use super::attribute_set::AttributeSet;

/// Equivalence classes of one attribute set at one k.
///
/// Support counts distinct subjects, or records if there are no subjects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSummary {
    /// Smallest support; 0 without rows.
    pub smallest: u64,
    /// Number of classes.
    pub classes: u64,
    /// Classes with support below k.
    pub classes_below: u64,
    /// Records in classes below k.
    pub records_below: u64,
    /// Subjects (or records) in classes below k.
    pub subjects_below: u64,
}

impl ClassSummary {
    /// Returns true if the set is a QID at k.
    pub fn is_qid(&self) -> bool {
        self.classes_below > 0
    }
}

/// Counting failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum ComputeError {
    /// Unknown column.
    #[error("attribute {attribute} of a set is not in the table of {width} columns: use numbers below its width")]
    UnknownAttribute { attribute: usize, width: usize },
    /// Device failure, or lack of its memory.
    #[error("the {backend} backend failed: {reason}")]
    Backend { backend: &'static str, reason: String },
    /// Unreadable temporary file.
    #[error("the table cannot be read back from its temporary file ({reason}): check the disk (--temp)")]
    Codes { reason: String },
}

/// Counts equivalence classes of attribute sets over one table.
///
/// Results are exact, independent of backend, threads and batch order.
pub trait GroupCounter: Sync {
    /// Number of sets that keeps the backend busy.
    fn preferred_batch_size(&self) -> usize {
        256
    }

    /// Returns one count per set, in order; sets that share all but the largest attribute share work.
    fn count(&self, sets: &[AttributeSet], k: u32) -> Result<Vec<ClassSummary>, ComputeError>;

    /// Decides for each set if it is a QID at k, often faster than [`Self::count`].
    ///
    /// `None` if `stop` returned true first.
    fn judge(
        &self,
        sets: &[AttributeSet],
        k: u32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Option<bool>>, ComputeError> {
        let mut verdicts = Vec::with_capacity(sets.len());
        for batch in sets.chunks(256) {
            if stop() {
                break;
            }
            verdicts.extend(self.count(batch, k)?.iter().map(|count| Some(count.is_qid())));
        }
        verdicts.resize(sets.len(), None);
        Ok(verdicts)
    }

    /// Returns the rows in classes below k, ascending.
    fn records_below(&self, set: &AttributeSet, k: u32) -> Result<Vec<u32>, ComputeError>;

    /// Returns the first such row.
    fn first_below(&self, set: &AttributeSet, k: u32) -> Result<Option<u32>, ComputeError> {
        Ok(self.records_below(set, k)?.first().copied())
    }
}
