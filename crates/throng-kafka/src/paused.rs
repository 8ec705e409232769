//! Assigned partitions that are paused until their state is restored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use throng_core::stream::input_batch::InputPartition;

/// Partitions paused until their restore.
#[derive(Debug, Default)]
pub struct PausedPartitions(Mutex<BTreeMap<InputPartition, bool>>);

impl PausedPartitions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<InputPartition, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, places: &[InputPartition]) {
        self.lock().extend(places.iter().map(|place| (*place, false)));
    }

    /// Discards an earlier restore.
    pub(super) fn remove(&self, places: &[InputPartition]) {
        self.lock().retain(|place, _| !places.contains(place));
    }

    pub(super) fn contains(&self, place: InputPartition) -> bool {
        self.lock().contains_key(&place)
    }

    /// Marks partitions as restored, for the reader to start them.
    pub fn mark_restored(&self, places: &BTreeSet<InputPartition>) {
        self.lock().iter_mut().filter(|(place, _)| places.contains(place)).for_each(|(_, restored)| *restored = true);
    }

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
