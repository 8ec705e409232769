//! Messages that other instances have handed on, in a batch that is being read.

use super::filling::Filling;
use super::followed::Followed;
use crate::io::kafka::feed::FeedConsumer;
use crate::io::residue::{Door, Marks};
use crate::records::raw::Coordinate;
use crate::telemetry::RejectionReason;
use rdkafka::consumer::Consumer;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::topic_partition_list::TopicPartitionList;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How long the offset of a partition is asked for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The topic in which instances hand each other records.
pub struct Handing {
    /// Its number among the topics that are read: the last.
    pub topic: u16,
    /// Opens what it holds.
    pub door: Door,
}

impl Handing {
    /// Learns what had been taken up of the partition of `message` before it came, where that is not known yet. False where it cannot be
    /// learnt now.
    pub(super) fn knows(
        &self,
        message: &BorrowedMessage<'_>,
        consumer: &FeedConsumer,
        followed: &mut Followed,
    ) -> bool {
        let place = (self.topic, message.partition());
        if followed.marks(place).is_some() {
            return true;
        }
        let mut wanted = TopicPartitionList::new();
        wanted.add_partition(message.topic(), message.partition());
        let Ok(found) = consumer.committed_offsets(wanted, PATIENCE) else { return false };
        let Some(element) = found.find_partition(message.topic(), message.partition()) else { return false };
        if element.error().is_err() {
            return false;
        }
        // The client's reading of words that are no text is a panic; none of ours are.
        let marks = catch_unwind(AssertUnwindSafe(|| Marks::from_words(element.metadata()))).unwrap_or_default();
        followed.know(place, marks);
        true
    }

    /// Takes up what the message at `coordinate` says.
    pub(super) fn take_up(
        &self,
        value: &[u8],
        coordinate: Coordinate,
        filling: &mut Filling,
        followed: &mut Followed,
    ) -> Result<(), RejectionReason> {
        let mut unknown = Marks::default();
        let marks = followed.marks((self.topic, coordinate.partition)).unwrap_or(&mut unknown);
        filling.batch.residue.push(self.door.open(value, coordinate, marks)?);
        Ok(())
    }

    /// Notes beside a closed batch what has been taken up with it.
    pub(super) fn note(&self, filling: &mut Filling, followed: &mut Followed) {
        for place in filling.batch.ranges.keys().filter(|(topic, _)| *topic == self.topic) {
            if let Some(marks) = followed.marks(*place) {
                filling.batch.words.insert(*place, marks.to_words());
            }
        }
    }
}
