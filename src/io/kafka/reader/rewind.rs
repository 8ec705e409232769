//! Where the reader goes on reading: back to the committed offsets after an abort, and behind a batch that was repeated.

use super::filling::Filling;
use crate::io::input::{Place, Ranges};
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::feed::FeedConsumer;
use rdkafka::consumer::Consumer;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList, TopicPartitionListElem};
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a partition is asked where it begins and ends, and how often while a batch is waited for: what it is to be made of may go
/// meanwhile.
const GLANCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_secs(10);

/// How long a partition that has just come may take to begin.
const BEGINNING: Duration = Duration::from_secs(15);

/// A batch that is to be repeated.
pub(super) struct Replay {
    /// What it is made of.
    pub(super) ranges: Ranges,
    /// When the partitions last said that they have all of it.
    seen: Option<Instant>,
    /// The group stands before where it begins: other records would come with it.
    is_ahead: bool,
}

impl Replay {
    pub(super) fn new(ranges: Ranges) -> Self {
        Self { ranges, seen: None, is_ahead: false }
    }
}

/// What a partition that begins at `low` and ends before `end` does not have any more of a range. Records are removed from the front. An
/// end before one that has been read is of a topic that has been made anew, or has lost what it had: what comes at these offsets is
/// something else.
fn missing(range: (i64, i64), low: i64, end: i64) -> Option<(i64, i64)> {
    let (front, back) = (low > range.0, end < range.1);
    let from = if front { range.0 } else { range.0.max(end) };
    let to = if back { range.1 } else { range.1.min(low) };
    (front || back).then_some((from, to))
}

/// Moves the consumer of a reader to other offsets.
pub(super) struct Seeker<'a> {
    pub(super) consumer: &'a FeedConsumer,
    pub(super) cluster: &'a Cluster,
    /// Told to stop: nothing is asked of the cluster again.
    pub(super) stop: &'a AtomicBool,
}

impl Seeker<'_> {
    /// A message that slipped past the pause is read again later.
    pub(super) fn step_back(&self, message: &BorrowedMessage<'_>) -> Result<(), KafkaFailure> {
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
            // Whoever has the partition now reads the message.
            Err(e) if ours => Err(self.cluster.failure("cannot step back to a message", e)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Goes back to the committed offsets of everything assigned. False when these are not where the ranges to be
    /// replayed begin: the partition was somebody else's meanwhile.
    pub(super) fn rewind(&self, replay: Option<&Ranges>) -> Result<bool, KafkaFailure> {
        let mut where_it_began = true;
        self.seek_all("cannot go back to the committed offsets", |place, committed| {
            let from = replay.and_then(|ranges| ranges.get(&place?)).map(|range| range.0);
            where_it_began &= from.zip(committed).is_none_or(|(from, committed)| from == committed);
            // Where nothing is committed yet, it is the first batch of all.
            committed.or(from)
        })?;
        Ok(where_it_began)
    }

    /// Starts paused partitions at the committed offsets.
    pub(super) fn start(&self, places: &BTreeSet<Place>) -> Result<(), KafkaFailure> {
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
        // In this order: a resume makes the client ignore the answer to a seek that is under way.
        self.consumer.resume(&started).map_err(failed)?;
        self.seek(what, &started, |_, committed| committed)
    }

    /// Continues behind the replayed ranges; whatever was read past them meanwhile is read again.
    pub(super) fn resume_after(&self, ranges: &Ranges) -> Result<(), KafkaFailure> {
        self.seek_all("cannot continue behind a repeated batch", |place, committed| {
            place.and_then(|place| ranges.get(&place)).map(|range| range.1).or(committed)
        })
    }

    /// Seeks every assigned partition that is not paused for its state: the others are sought when they start.
    fn seek_all(
        &self,
        what: &'static str,
        to: impl FnMut(Option<Place>, Option<i64>) -> Option<i64>,
    ) -> Result<(), KafkaFailure> {
        let assignment = self.consumer.assignment().map_err(|e| self.cluster.failure(what, e))?;
        self.seek(what, &self.consumer.context().restored_of(&assignment), to)
    }

    /// Seeks partitions, or fails: reading on from elsewhere would lose records. `to` gives the offset by the one that the
    /// group has committed; without one a partition is read from its beginning.
    fn seek(
        &self,
        what: &'static str,
        list: &TopicPartitionList,
        mut to: impl FnMut(Option<Place>, Option<i64>) -> Option<i64>,
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
        let deadline = Instant::now() + BEGINNING;
        loop {
            let sought = self.consumer.seek_partitions(target.clone(), Duration::from_secs(30)).map_err(failed)?;
            match sought.elements().iter().try_for_each(TopicPartitionListElem::error) {
                // A partition that has just come has not started yet: its first offset is still asked for.
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

    /// Whether the ranges to be replayed have been read, and can be.
    pub(super) fn replayed(&self, replay: &mut Replay, filling: &Filling) -> Replayed {
        let ranges = &replay.ranges;
        let impossible = || Replayed::Impossible(Ranges::new());
        let Ok(assignment) = self.consumer.assignment() else { return Replayed::Going };
        if assignment.count() == 0 {
            return Replayed::Going;
        }
        let assigned: HashSet<Place> = self.consumer.context().places(&assignment).into_iter().collect();
        if ranges.keys().any(|place| !assigned.contains(place)) {
            return impossible();
        }
        if ranges.keys().any(|place| self.consumer.context().paused.contains(*place)) {
            return Replayed::Going;
        }
        if self.consumer.context().take_changed() {
            (replay.seen, replay.is_ahead) = (None, false);
            // The first look at this assignment: has anyone moved on past where the batch began?
            let Ok(committed) = self.committed(&self.consumer.context().restored_of(&assignment)) else {
                return impossible();
            };
            for element in committed.elements() {
                let place = self.consumer.context().place_of(element.topic(), element.partition());
                let Some(range) = place.and_then(|p| ranges.get(&p)) else { continue };
                match element.offset() {
                    Offset::Offset(n) if n > range.0 => return impossible(),
                    Offset::Offset(n) => replay.is_ahead |= n < range.0,
                    _ => {}
                }
            }
        }
        let read = |place: &Place| filling.batch.ranges.get(place);
        let complete = ranges
            .iter()
            .all(|(place, range)| read(place).is_some_and(|r| r.1 >= range.1) || filling.passed.contains(place));
        // What begins late may have lost its beginning since the last look.
        let is_late = || ranges.iter().any(|(place, range)| read(place).is_none_or(|r| r.0 > range.0));
        let is_sure = replay.seen.is_some_and(|seen| seen.elapsed() < AGAIN);
        if !is_sure || complete && is_late() {
            let Some(gone) = self.gone(ranges) else { return Replayed::Going };
            if replay.is_ahead || !gone.is_empty() {
                return Replayed::Impossible(gone);
            }
            replay.seen = Some(Instant::now());
        }
        match complete {
            false => Replayed::Going,
            true if filling.is_empty() => impossible(),
            true => Replayed::Complete,
        }
    }

    /// What the partitions do not have any more of some ranges; none where one of them does not tell.
    fn gone(&self, ranges: &Ranges) -> Option<Ranges> {
        let mut gone = Ranges::new();
        for (place, range) in ranges {
            let topic = self.consumer.context().topics.get(usize::from(place.0))?;
            let (low, end) = self.consumer.fetch_watermarks(topic, place.1, GLANCE).ok()?;
            gone.extend(missing(*range, low, end).map(|missing| (*place, missing)));
        }
        Some(gone)
    }
}

/// What has become of a repetition.
pub(super) enum Replayed {
    Going,
    Complete,
    /// It cannot be made again, where that is so because these records are gone.
    Impossible(Ranges),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_of_a_range_is_known_by_where_the_partition_begins_and_ends() {
        let range = (10, 20);
        assert_eq!(missing(range, 0, 20), None, "all is there");
        assert_eq!(missing(range, 10, 90), None, "all is there");
        assert_eq!(missing(range, 11, 90), Some((10, 11)), "the first record has been removed");
        assert_eq!(missing(range, 20, 20), Some((10, 20)), "the partition has been emptied");
        assert_eq!(missing(range, 50, 90), Some((10, 20)), "and has gone on");
        assert_eq!(missing(range, 0, 19), Some((19, 20)), "the last record has been lost");
        assert_eq!(missing(range, 0, 0), Some((10, 20)), "the topic has been made anew");
        assert_eq!(missing(range, 15, 17), Some((10, 20)), "both");
    }
}
