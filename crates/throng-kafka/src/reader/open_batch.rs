//! Batch that is being filled.

use std::collections::BTreeSet;
use throng_core::stream::input_batch::{InputBatch, InputPartition};
use throng_core::stream::subject_share::SubjectShare;

pub(super) struct OpenBatch {
    pub(super) batch: InputBatch,
    pub(super) share: SubjectShare,
    /// Partitions read past their replay range, which has lost records.
    pub(super) passed: BTreeSet<InputPartition>,
}

impl OpenBatch {
    pub(super) fn new(width: usize, epoch: u64, share: SubjectShare) -> Self {
        Self { batch: InputBatch::new(width, epoch), share, passed: BTreeSet::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batch.ranges.is_empty()
    }

    pub(super) fn forget(&mut self, place: InputPartition) {
        self.share.forget(place);
        self.passed.remove(&place);
        self.batch.forget_partition(place);
    }
}
