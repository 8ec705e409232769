//! Assigned partitions that are paused until their state is restored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use throng_core::stream::input_batch::InputPartition;

/// Paused partitions. The rebalance callbacks add and remove them, the daemon restores them, and the reader starts
/// them.
#[derive(Debug, Default)]
pub struct PausedPartitions(Mutex<BTreeMap<InputPartition, bool>>);

impl PausedPartitions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<InputPartition, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds partitions that were just assigned.
    pub(super) fn add(&self, places: &[InputPartition]) {
        self.lock().extend(places.iter().map(|place| (*place, false)));
    }

    /// Removes revoked partitions. A restore that finished earlier is discarded.
    pub(super) fn remove(&self, places: &[InputPartition]) {
        self.lock().retain(|place, _| !places.contains(place));
    }

    /// Returns true if a partition is not started yet.
    pub(super) fn contains(&self, place: InputPartition) -> bool {
        self.lock().contains_key(&place)
    }

    /// Marks partitions as restored, for the reader to start them.
    pub fn mark_restored(&self, places: &BTreeSet<InputPartition>) {
        self.lock().iter_mut().filter(|(place, _)| places.contains(place)).for_each(|(_, restored)| *restored = true);
    }

    /// Removes and returns the restored partitions.
    pub(super) fn take_restored(&self) -> BTreeSet<InputPartition> {
        self.lock().extract_if(.., |_, restored| *restored).map(|(place, _)| place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restore_before_revocation_starts_no_partition() {
        let paused = PausedPartitions::default();
        paused.add(&[(0, 0), (0, 1)]);
        paused.mark_restored(&[(0, 0), (0, 1), (0, 2)].into());
        paused.remove(&[(0, 0)]);
        paused.add(&[(0, 0)]);
        assert_eq!(paused.take_restored(), [(0, 1)].into());
        assert!(paused.contains((0, 0)) && !paused.contains((0, 1)));
        assert!(paused.take_restored().is_empty());
    }
}
