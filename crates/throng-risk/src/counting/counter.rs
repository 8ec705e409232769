//! What is asked of a backend, and its answers.

use super::attribute_set::AttributeSet;

/// The equivalence classes of one attribute set at one k.
///
/// The support of a class is its number of distinct subjects where the table has subjects, and of records otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCount {
    /// Support of the smallest class; 0 in a table without rows.
    pub smallest: u64,
    /// Classes.
    pub classes: u64,
    /// Classes whose support is below k.
    pub classes_below: u64,
    /// Records in those classes.
    pub records_below: u64,
    /// Subjects with at least one record in those classes; the records where the table has no subjects.
    pub subjects_below: u64,
}

impl GroupCount {
    /// Is the set a quasi-identifier at k: has some class support in [1, k − 1]?
    pub fn is_qid(&self) -> bool {
        self.classes_below > 0
    }
}

/// Why a backend could not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum ComputeError {
    /// An attribute set names a column that the table does not have.
    #[error("attribute {attribute} of a set is not in the table of {width} columns: ask with numbers below its width")]
    UnknownAttribute { attribute: usize, width: usize },
    /// The device failed or is out of memory.
    #[error("the {backend} backend failed: {reason}")]
    Backend { backend: &'static str, reason: String },
    /// The table lies in a file, which failed.
    #[error("the table cannot be read back from its temporary file ({reason}): check the disk (--temp)")]
    Codes { reason: String },
}

/// Counts the equivalence classes of attribute sets over one resident table.
///
/// Answers are exact and do not depend on the backend, the number of threads or the order of the batch.
pub trait GroupCounter: Sync {
    /// Sets that keep the backend busy in one call.
    fn at_once(&self) -> usize {
        256
    }

    /// One count a set, in the order of `sets`. Sets that share all but their largest attribute share work, so a batch
    /// should hold many of them.
    fn count(&self, sets: &[AttributeSet], k: u32) -> Result<Vec<GroupCount>, ComputeError>;

    /// Is each set a QID at k? Says no more than [`Self::count`] and may be far cheaper. `None` where `stop` was true
    /// before the answer was certain.
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

    /// The rows, ascending, in classes of `set` whose support is below k.
    fn records_below(&self, set: &AttributeSet, k: u32) -> Result<Vec<u32>, ComputeError>;

    /// The first of [`Self::records_below`].
    fn first_below(&self, set: &AttributeSet, k: u32) -> Result<Option<u32>, ComputeError> {
        Ok(self.records_below(set, k)?.first().copied())
    }
}
