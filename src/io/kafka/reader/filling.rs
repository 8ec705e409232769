//! The batch that is being read.

use crate::io::input::{InputBatch, Place};
use crate::io::subject_share::SubjectShare;
use std::collections::BTreeSet;

/// What has been read and not handed over.
pub(super) struct Filling {
    pub(super) batch: InputBatch,
    pub(super) share: SubjectShare,
    /// Partitions read past the range to be replayed: what is missing of it has been deleted meanwhile.
    pub(super) passed: BTreeSet<Place>,
}

impl Filling {
    pub(super) fn new(width: usize, epoch: u64, share: SubjectShare) -> Self {
        Self { batch: InputBatch::new(width, epoch), share, passed: BTreeSet::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batch.ranges.is_empty()
    }

    pub(super) fn forget(&mut self, place: Place) {
        self.share.forget(place);
        self.passed.remove(&place);
        self.batch.forget_partition(place);
    }
}
