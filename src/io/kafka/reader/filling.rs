//! The batch that is being read.

use crate::io::input::{InputBatch, Place};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// What has been read and not handed over.
pub(super) struct Filling {
    pub(super) batch: InputBatch,
    /// Tombstones by partition, so that a lost partition takes its own along.
    pub(super) tombstones: BTreeMap<Place, u64>,
    /// Partitions read past the range to be replayed: what is missing of it has been deleted meanwhile.
    pub(super) passed: BTreeSet<Place>,
    /// When the subjects of the batch were last counted.
    pub(super) counted: Instant,
}

impl Filling {
    pub(super) fn new(width: usize, epoch: u64) -> Self {
        Self {
            batch: InputBatch::new(width, epoch),
            tombstones: BTreeMap::new(),
            passed: BTreeSet::new(),
            counted: Instant::now(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batch.ranges.is_empty()
    }

    pub(super) fn forget(&mut self, place: Place) {
        let tombstones = self.tombstones.remove(&place).unwrap_or(0);
        self.batch.forget_partition(place.0, place.1, tombstones);
    }
}
