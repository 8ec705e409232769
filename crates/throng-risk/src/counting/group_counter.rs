//! Interface of a counting backend, and its results.

use super::attribute_set::AttributeSet;

/// Equivalence classes of one attribute set at one k.
///
/// The support of a class is its number of distinct subjects, or of records if the table has no subjects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSummary {
    /// Support of the smallest class; 0 in a table without rows.
    pub smallest: u64,
    /// Number of classes.
    pub classes: u64,
    /// Classes with support below k.
    pub classes_below: u64,
    /// Records in classes below k.
    pub records_below: u64,
    /// Subjects with at least one record in classes below k; equal to the records if the table has no subjects.
    pub subjects_below: u64,
}

impl ClassSummary {
    /// Returns true if the set is a quasi-identifier at k: some class has a support in [1, k − 1].
    pub fn is_qid(&self) -> bool {
        self.classes_below > 0
    }
}

/// Counting failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum ComputeError {
    /// An attribute set names a column that the table does not have.
    #[error("attribute {attribute} of a set is not in the table of {width} columns: use numbers below its width")]
    UnknownAttribute { attribute: usize, width: usize },
    /// The device failed or is out of memory.
    #[error("the {backend} backend failed: {reason}")]
    Backend { backend: &'static str, reason: String },
    /// The temporary file of the table could not be read.
    #[error("the table cannot be read back from its temporary file ({reason}): check the disk (--temp)")]
    Codes { reason: String },
}

/// Counts the equivalence classes of attribute sets over one resident table.
///
/// Results are exact. They do not depend on the backend, the number of threads or the order of the batch.
pub trait GroupCounter: Sync {
    /// Returns the number of sets per call that keeps the backend busy.
    fn preferred_batch_size(&self) -> usize {
        256
    }

    /// Returns one count per set, in the order of `sets`. Sets that share all but their largest attribute share work,
    /// so a batch should contain many of them.
    fn count(&self, sets: &[AttributeSet], k: u32) -> Result<Vec<ClassSummary>, ComputeError>;

    /// Decides for each set if it is a QID at k. This gives less information than [`Self::count`] and may be much
    /// cheaper. `None` if `stop` returned true before the result was certain.
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

    /// Returns the rows, ascending, in classes of `set` with support below k.
    fn records_below(&self, set: &AttributeSet, k: u32) -> Result<Vec<u32>, ComputeError>;

    /// Returns the first row of [`Self::records_below`].
    fn first_below(&self, set: &AttributeSet, k: u32) -> Result<Option<u32>, ComputeError> {
        Ok(self.records_below(set, k)?.first().copied())
    }
}
