//! Where the reader goes on reading: back to the committed offsets after an abort, and behind a batch that was repeated.

use super::filling::Filling;
use crate::io::input::{Place, Ranges};
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::feed::FeedConsumer;
use rdkafka::consumer::Consumer;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
        let place = self.consumer.context().places_of(message.topic(), message.partition());
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
        let failed = |e| self.cluster.failure("cannot go back to the committed offsets", e);
        let assignment = self.consumer.assignment().map_err(failed)?;
        if assignment.count() == 0 {
            return Ok(true);
        }
        let committed = self.committed(&assignment)?;
        let mut target = TopicPartitionList::new();
        let mut where_it_began = true;
        for element in committed.elements() {
            let place = self.consumer.context().places_of(element.topic(), element.partition());
            let range = replay.and_then(|r| place.and_then(|p| r.get(&p)));
            let offset = match (element.offset(), range) {
                (Offset::Offset(n), range) => {
                    where_it_began &= range.is_none_or(|r| r.0 == n);
                    Offset::Offset(n)
                }
                // Nothing is committed yet: the first batch of all.
                (_, Some(range)) => Offset::Offset(range.0),
                (_, None) => Offset::Beginning,
            };
            target.add_partition_offset(element.topic(), element.partition(), offset).map_err(failed)?;
        }
        self.seek(target)?;
        Ok(where_it_began)
    }

    /// Seeks every partition of `target`, or fails: reading on from elsewhere would lose records.
    fn seek(&self, target: TopicPartitionList) -> Result<(), KafkaFailure> {
        let failed = |e| self.cluster.failure("cannot go back to where a batch began", e);
        let sought = self.consumer.seek_partitions(target, Duration::from_secs(30)).map_err(failed)?;
        sought.elements().iter().try_for_each(|element| element.error().map_err(failed))
    }

    fn committed(&self, assignment: &TopicPartitionList) -> Result<TopicPartitionList, KafkaFailure> {
        let mut attempts = 0;
        loop {
            match self.consumer.committed_offsets(assignment.clone(), Duration::from_secs(10)) {
                Ok(list) => return Ok(list),
                Err(_) if attempts < 30 && !self.stop.load(Ordering::Acquire) => attempts += 1,
                Err(e) => return Err(self.cluster.failure("cannot read the committed offsets", e)),
            }
        }
    }

    /// Whether the ranges to be replayed have been read.
    pub(super) fn replayed(&self, ranges: &Ranges, filling: &Filling) -> Replayed {
        let Ok(assignment) = self.consumer.assignment() else { return Replayed::Going };
        if assignment.count() == 0 {
            return Replayed::Going;
        }
        let assigned: HashSet<Place> = self.consumer.context().places(&assignment).into_iter().collect();
        if ranges.keys().any(|place| !assigned.contains(place)) {
            return Replayed::Impossible;
        }
        if self.consumer.context().take_changed() {
            // The first look at this assignment: has anyone moved on past where the batch began?
            let Ok(committed) = self.committed(&assignment) else { return Replayed::Impossible };
            for element in committed.elements() {
                let place = self.consumer.context().places_of(element.topic(), element.partition());
                let Some(range) = place.and_then(|p| ranges.get(&p)) else { continue };
                if matches!(element.offset(), Offset::Offset(n) if n != range.0) {
                    return Replayed::Impossible;
                }
            }
        }
        let complete = ranges.iter().all(|(place, range)| {
            filling.batch.ranges.get(place).is_some_and(|read| read.1 >= range.1) || filling.passed.contains(place)
        });
        match complete {
            false => Replayed::Going,
            true if filling.is_empty() => Replayed::Impossible,
            true => Replayed::Complete,
        }
    }

    /// Continues behind the replayed ranges; whatever was read past them meanwhile is read again.
    pub(super) fn resume_after(&self, ranges: &Ranges) -> Result<(), KafkaFailure> {
        let failed = |e| self.cluster.failure("cannot continue behind a repeated batch", e);
        let assignment = self.consumer.assignment().map_err(failed)?;
        let committed = self.committed(&assignment)?;
        let mut target = TopicPartitionList::new();
        for element in committed.elements() {
            let place = self.consumer.context().places_of(element.topic(), element.partition());
            let offset = match (place.and_then(|p| ranges.get(&p)), element.offset()) {
                (Some(range), _) => Offset::Offset(range.1),
                (None, Offset::Offset(n)) => Offset::Offset(n),
                (None, _) => Offset::Beginning,
            };
            target.add_partition_offset(element.topic(), element.partition(), offset).map_err(failed)?;
        }
        self.seek(target)
    }
}

/// What has become of a repetition.
pub(super) enum Replayed {
    Going,
    Complete,
    Impossible,
}
