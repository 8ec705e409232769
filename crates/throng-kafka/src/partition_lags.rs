//! Lag of the assigned partitions: from the committed offset to the end of the partition.
//!
//! The lag of librdkafka ignores offsets that a producer commits in its transactions.

use rdkafka::statistics::Partition;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use throng_core::stream::input_batch::InputPartition;
use throng_core::stream::release_sink::InputPositions;

/// Lag by assigned partition, in records; `None` if unknown.
pub type LagByPartition = BTreeMap<InputPartition, Option<u64>>;

/// Lags of the assigned partitions. The lock is held for a few map operations only, because callbacks take it.
#[derive(Debug, Default)]
pub struct PartitionLags(Mutex<BTreeMap<InputPartition, PartitionOffsets>>);

#[derive(Clone, Copy, Debug, Default)]
struct PartitionOffsets {
    /// Offset that this process committed last.
    committed: Option<i64>,
    /// Offsets of the last statistics of an active partition.
    reported: Option<ReportedOffsets>,
}

#[derive(Clone, Copy, Debug)]
struct ReportedOffsets {
    /// Committed offset at the assignment; negative without one.
    committed: i64,
    begin: i64,
    end: i64,
}

impl PartitionOffsets {
    fn lag(self) -> Option<u64> {
        let ReportedOffsets { committed, begin, end } = self.reported?;
        let next = self.committed.unwrap_or(committed).max(begin);
        if next < 0 || end < 0 {
            return None;
        }
        match u64::try_from(end - next) {
            Ok(lag) => Some(lag),
            // Statistics are up to a second older than a commit.
            Err(_) if self.committed.is_some() => Some(0),
            // The end was read before the assignment.
            Err(_) => None,
        }
    }
}

impl PartitionLags {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<InputPartition, PartitionOffsets>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn assign(&self, places: &[InputPartition]) {
        self.lock().extend(places.iter().map(|place| (*place, PartitionOffsets::default())));
    }

    pub(super) fn revoke(&self, places: &[InputPartition]) {
        self.lock().retain(|place, _| !places.contains(place));
    }

    pub(super) fn revoke_all(&self) {
        self.lock().clear();
    }

    /// Ignores partitions that are not assigned: statistics may be older than a revocation.
    pub(super) fn update<'a>(&self, statistics: impl Iterator<Item = (InputPartition, &'a Partition)>) {
        let mut partitions = self.lock();
        for (place, partition) in statistics {
            if let Some(offsets) = partitions.get_mut(&place) {
                offsets.reported = (partition.fetch_state == "active").then_some(ReportedOffsets {
                    committed: partition.committed_offset,
                    begin: partition.lo_offset,
                    end: partition.ls_offset,
                });
            }
        }
    }

    /// Records the offsets after a commit.
    pub fn note_committed(&self, positions: &InputPositions) {
        for (place, offsets) in self.lock().iter_mut() {
            offsets.committed = positions.get(place).copied().or(offsets.committed);
        }
    }

    /// Returns the lag of each assigned partition.
    pub fn by_partition(&self) -> LagByPartition {
        self.lock().iter().map(|(place, offsets)| (*place, offsets.lag())).collect()
    }

    /// Returns the sum of the known lags; `None` if none is known.
    pub fn total(&self) -> Option<u64> {
        self.lock().values().filter_map(|offsets| offsets.lag()).reduce(|a, b| a + b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(committed_offset: i64, lo_offset: i64, ls_offset: i64) -> Partition {
        Partition { fetch_state: "active".to_owned(), committed_offset, lo_offset, ls_offset, ..Partition::default() }
    }

    fn update(lags: &PartitionLags, statistics: &[(InputPartition, Partition)]) {
        lags.update(statistics.iter().map(|(place, reported)| (*place, reported)));
    }

    #[test]
    fn commit_of_this_process_replaces_the_offset_at_the_assignment() {
        let lags = PartitionLags::default();
        lags.assign(&[(0, 0), (0, 1)]);
        assert_eq!((lags.total(), lags.by_partition()), (None, [((0, 0), None), ((0, 1), None)].into()));
        // The second partition has no committed offset: the group begins with its first record.
        update(&lags, &[((0, 0), reported(40, 10, 100)), ((0, 1), reported(-1001, 5, 25))]);
        assert_eq!((lags.total(), lags.by_partition()), (Some(80), [((0, 0), Some(60)), ((0, 1), Some(20))].into()));
        lags.note_committed(&[((0, 0), 101), ((0, 2), 7)].into());
        assert_eq!(lags.by_partition(), [((0, 0), Some(0)), ((0, 1), Some(20))].into());
        update(&lags, &[((0, 0), reported(40, 10, 130))]);
        assert_eq!(lags.by_partition()[&(0, 0)], Some(29));
    }

    #[test]
    fn deleted_records_do_not_count() {
        let lags = PartitionLags::default();
        lags.assign(&[(0, 0)]);
        update(&lags, &[((0, 0), reported(40, 70, 100))]);
        assert_eq!(lags.total(), Some(30));
    }

    #[test]
    fn lag_is_unknown_until_the_partition_is_fetched() {
        let lags = PartitionLags::default();
        lags.assign(&[(0, 0)]);
        update(&lags, &[((0, 0), reported(40, -1001, -1001))]);
        assert_eq!(lags.total(), None);
        // The end of an earlier assignment.
        update(&lags, &[((0, 0), reported(40, 0, 30))]);
        assert_eq!(lags.total(), None);
        let waiting = Partition { fetch_state: "offset-query".to_owned(), ..reported(40, 0, 50) };
        update(&lags, &[((0, 0), waiting)]);
        assert_eq!(lags.total(), None);
    }

    #[test]
    fn revoked_partition_has_no_lag_and_returns_without_its_old_offset() {
        let lags = PartitionLags::default();
        lags.assign(&[(0, 0), (1, 0)]);
        lags.note_committed(&[((0, 0), 90)].into());
        lags.revoke(&[(0, 0)]);
        update(&lags, &[((0, 0), reported(40, 0, 100)), ((1, 0), reported(1, 0, 3))]);
        assert_eq!(lags.by_partition(), [((1, 0), Some(2))].into());
        lags.assign(&[(0, 0)]);
        update(&lags, &[((0, 0), reported(40, 0, 100))]);
        assert_eq!(lags.by_partition(), [((0, 0), Some(60)), ((1, 0), Some(2))].into());
        lags.revoke_all();
        assert!(lags.by_partition().is_empty() && lags.total().is_none());
    }
}
