//! Seeks to the committed offsets after an abort, and past a replayed batch.

use super::open_batch::OpenBatch;
use crate::connection::{KafkaCluster, KafkaFailure};
use crate::subscription::SubscribedConsumer;
use rdkafka::consumer::Consumer;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList, TopicPartitionListElem};
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::stream::input_batch::{InputPartition, OffsetRanges};

const WATERMARK_TIMEOUT: Duration = Duration::from_secs(5);
const REPLAY_CHECK_INTERVAL: Duration = Duration::from_secs(10);

const SEEK_START_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) struct BatchReplay {
    pub(super) ranges: OffsetRanges,
    last_complete_check: Option<Instant>,
    /// A committed offset lies before the start: a replay would include other records.
    starts_too_early: bool,
}

impl BatchReplay {
    pub(super) fn new(ranges: OffsetRanges) -> Self {
        Self { ranges, last_complete_check: None, starts_too_early: false }
    }
}

/// Returns the part of `range` lost by a partition with offsets from `low` to below `end`. An end before a record
/// already read means a recreated topic, whose offsets hold other records.
fn lost_range(range: (i64, i64), low: i64, end: i64) -> Option<(i64, i64)> {
    let (front, back) = (low > range.0, end < range.1);
    let from = if front { range.0 } else { range.0.max(end) };
    let to = if back { range.1 } else { range.1.min(low) };
    (front || back).then_some((from, to))
}

pub(super) struct OffsetSeeker<'a> {
    pub(super) consumer: &'a SubscribedConsumer,
    pub(super) cluster: &'a KafkaCluster,
    pub(super) stop: &'a AtomicBool,
}

impl OffsetSeeker<'_> {
    pub(super) fn seek_back_to(&self, message: &BorrowedMessage<'_>) -> Result<(), KafkaFailure> {
        let sought = self.consumer.seek(
            message.topic(),
            message.partition(),
            Offset::Offset(message.offset()),
            Duration::from_secs(10),
        );
        let place = self.consumer.context().place_of(message.topic(), message.partition());
        let ours = self
            .consumer
            .assignment()
            .is_ok_and(|a| place.is_some_and(|p| self.consumer.context().places(&a).contains(&p)));
        match sought {
            // The new owner reads the message.
            Err(e) if ours => Err(self.cluster.failure("cannot seek back to a message", e)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns false if another member has committed past the start of a range in `replay`.
    pub(super) fn rewind(&self, replay: Option<&OffsetRanges>) -> Result<bool, KafkaFailure> {
        let mut where_it_began = true;
        self.seek_all("cannot seek back to the committed offsets", |place, committed| {
            let from = replay.and_then(|ranges| ranges.get(&place?)).map(|range| range.0);
            where_it_began &= from.zip(committed).is_none_or(|(from, committed)| from == committed);
            // Without a committed offset, this is the first batch.
            committed.or(from)
        })?;
        Ok(where_it_began)
    }

    pub(super) fn start(&self, places: &BTreeSet<InputPartition>) -> Result<(), KafkaFailure> {
        if places.is_empty() {
            return Ok(());
        }
        let what = "cannot start at the committed offsets";
        let failed = |e| self.cluster.failure(what, e);
        let mut started = TopicPartitionList::new();
        for element in self.consumer.assignment().map_err(failed)?.elements() {
            let place = self.consumer.context().place_of(element.topic(), element.partition());
            if place.is_some_and(|place| places.contains(&place)) {
                started.add_partition(element.topic(), element.partition());
            }
        }
        // Resume first: it makes the client ignore the answer to a pending seek.
        self.consumer.resume(&started).map_err(failed)?;
        self.seek(what, &started, |_, committed| committed)
    }

    pub(super) fn resume_after(&self, ranges: &OffsetRanges) -> Result<(), KafkaFailure> {
        self.seek_all("cannot continue after a repeated batch", |place, committed| {
            place.and_then(|place| ranges.get(&place)).map(|range| range.1).or(committed)
        })
    }

    fn seek_all(
        &self,
        what: &'static str,
        to: impl FnMut(Option<InputPartition>, Option<i64>) -> Option<i64>,
    ) -> Result<(), KafkaFailure> {
        let assignment = self.consumer.assignment().map_err(|e| self.cluster.failure(what, e))?;
        self.seek(what, &self.consumer.context().restored_of(&assignment), to)
    }

    /// `to` maps a committed offset to the target; `None` is the beginning. A failed seek would lose records.
    fn seek(
        &self,
        what: &'static str,
        list: &TopicPartitionList,
        mut to: impl FnMut(Option<InputPartition>, Option<i64>) -> Option<i64>,
    ) -> Result<(), KafkaFailure> {
        let failed = |e| self.cluster.failure(what, e);
        if list.count() == 0 {
            return Ok(());
        }
        let mut target = TopicPartitionList::new();
        for element in self.committed(list)?.elements() {
            let (topic, partition) = (element.topic(), element.partition());
            let committed = if let Offset::Offset(offset) = element.offset() { Some(offset) } else { None };
            let offset = to(self.consumer.context().place_of(topic, partition), committed);
            let offset = offset.map_or(Offset::Beginning, Offset::Offset);
            target.add_partition_offset(topic, partition, offset).map_err(failed)?;
        }
        let deadline = Instant::now() + SEEK_START_TIMEOUT;
        loop {
            let sought = self.consumer.seek_partitions(target.clone(), Duration::from_secs(30)).map_err(failed)?;
            match sought.elements().iter().try_for_each(TopicPartitionListElem::error) {
                // A new partition refuses a seek until the client knows its first offset.
                Err(error)
                    if error.rdkafka_error_code() == Some(RDKafkaErrorCode::State)
                        && Instant::now() < deadline
                        && !self.stop.load(Ordering::Acquire) =>
                {
                    std::thread::sleep(Duration::from_millis(50));
                }
                sought => return sought.map_err(failed),
            }
        }
    }

    fn committed(&self, assignment: &TopicPartitionList) -> Result<TopicPartitionList, KafkaFailure> {
        let mut attempts = 0;
        loop {
            match self.consumer.committed_offsets(assignment.clone(), Duration::from_secs(10)) {
                Ok(list) => return Ok(list),
                Err(_) if attempts < 30 && !self.stop.load(Ordering::Acquire) => {
                    attempts += 1;
                    std::thread::sleep(Duration::from_millis(200));
                }
                Err(e) => return Err(self.cluster.failure("cannot read the committed offsets", e)),
            }
        }
    }

    pub(super) fn check_replay(&self, replay: &mut BatchReplay, filling: &OpenBatch) -> ReplayProgress {
        let ranges = &replay.ranges;
        let impossible = || ReplayProgress::Impossible(OffsetRanges::new());
        let Ok(assignment) = self.consumer.assignment() else { return ReplayProgress::ReplayPending };
        if assignment.count() == 0 {
            return ReplayProgress::ReplayPending;
        }
        let assigned: HashSet<InputPartition> = self.consumer.context().places(&assignment).into_iter().collect();
        if ranges.keys().any(|place| !assigned.contains(place)) {
            return impossible();
        }
        if ranges.keys().any(|place| self.consumer.context().paused.contains(*place)) {
            return ReplayProgress::ReplayPending;
        }
        if self.consumer.context().take_changed() {
            (replay.last_complete_check, replay.starts_too_early) = (None, false);
            // First check: another member may have committed past the start of the batch.
            let Ok(committed) = self.committed(&self.consumer.context().restored_of(&assignment)) else {
                return impossible();
            };
            for element in committed.elements() {
                let place = self.consumer.context().place_of(element.topic(), element.partition());
                let Some(range) = place.and_then(|p| ranges.get(&p)) else { continue };
                match element.offset() {
                    Offset::Offset(n) if n > range.0 => return impossible(),
                    Offset::Offset(n) => replay.starts_too_early |= n < range.0,
                    _ => {}
                }
            }
        }
        let read = |place: &InputPartition| filling.batch.ranges.get(place);
        let complete = ranges
            .iter()
            .all(|(place, range)| read(place).is_some_and(|r| r.1 >= range.1) || filling.passed.contains(place));
        // A range read from a later offset may have lost its first records since the last check.
        let is_late = || ranges.iter().any(|(place, range)| read(place).is_none_or(|r| r.0 > range.0));
        let is_sure = replay.last_complete_check.is_some_and(|seen| seen.elapsed() < REPLAY_CHECK_INTERVAL);
        if !is_sure || complete && is_late() {
            let Some(gone) = self.find_lost_records(ranges) else { return ReplayProgress::ReplayPending };
            if replay.starts_too_early || !gone.is_empty() {
                return ReplayProgress::Impossible(gone);
            }
            replay.last_complete_check = Some(Instant::now());
        }
        match complete {
            false => ReplayProgress::ReplayPending,
            true if filling.is_empty() => impossible(),
            true => ReplayProgress::Complete,
        }
    }

    fn find_lost_records(&self, ranges: &OffsetRanges) -> Option<OffsetRanges> {
        let mut gone = OffsetRanges::new();
        for (place, range) in ranges {
            let topic = self.consumer.context().topics.get(usize::from(place.0))?;
            let (low, end) = self.consumer.fetch_watermarks(topic, place.1, WATERMARK_TIMEOUT).ok()?;
            gone.extend(lost_range(*range, low, end).map(|missing| (*place, missing)));
        }
        Some(gone)
    }
}

pub(super) enum ReplayProgress {
    ReplayPending,
    Complete,
    /// Holds the lost records; empty for other reasons.
    Impossible(OffsetRanges),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_range_follows_from_partition_start_and_end() {
        let range = (10, 20);
        assert_eq!(lost_range(range, 0, 20), None, "all is there");
        assert_eq!(lost_range(range, 10, 90), None, "all is there");
        assert_eq!(lost_range(range, 11, 90), Some((10, 11)), "the first record has been removed");
        assert_eq!(lost_range(range, 20, 20), Some((10, 20)), "the partition has been emptied");
        assert_eq!(lost_range(range, 50, 90), Some((10, 20)), "and has gone on");
        assert_eq!(lost_range(range, 0, 19), Some((19, 20)), "the last record has been lost");
        assert_eq!(lost_range(range, 0, 0), Some((10, 20)), "the topic has been made anew");
        assert_eq!(lost_range(range, 15, 17), Some((10, 20)), "both");
    }
}
