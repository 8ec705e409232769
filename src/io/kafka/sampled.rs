//! The messages of a topic as it stands, for looking at: no group is joined, no offset committed.

use super::access::Asking;
use super::connection::{Cluster, KafkaFailure};
use super::failure::is_final_without_group;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::message::{Message, OwnedMessage};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A topic's committed messages, from the first one to those that are the last when it is opened. Partitions take turns as they come.
pub struct Sampled {
    cluster: Cluster,
    topic: String,
    consumer: Asking,
    /// By partition not read to its end yet, where that is.
    ends: BTreeMap<i32, i64>,
    patience: Duration,
}

impl Sampled {
    /// Opens `topic`. A broker may be silent for `patience`.
    ///
    /// # Errors
    /// When the cluster does not answer, or has no such topic.
    pub fn open(cluster: &Cluster, topic: &str, patience: Duration) -> Result<Self, KafkaFailure> {
        let partitions = cluster.partitions(&[topic], patience)?[0];
        let failed = |error| cluster.failure("cannot read the topic", error);
        let mut config = cluster.consumer("throng.sample");
        config.set("enable.partition.eof", "true");
        config.set("auto.offset.reset", "earliest");
        config.set("statistics.interval.ms", "0");
        let consumer = config.asking("cannot read the topic")?;
        let mut list = TopicPartitionList::new();
        let mut ends = BTreeMap::new();
        for partition in 0..partitions {
            let (begin, end) = consumer.fetch_watermarks(topic, partition, patience).map_err(failed)?;
            if begin < end {
                list.add_partition_offset(topic, partition, Offset::Beginning).map_err(failed)?;
                ends.insert(partition, end);
            }
        }
        consumer.assign(&list).map_err(failed)?;
        Ok(Self { cluster: cluster.clone(), topic: topic.to_owned(), consumer, ends, patience })
    }

    /// The next message; none at the end. What comes after the end as it was is passed over.
    ///
    /// # Errors
    /// When the broker is silent for too long.
    pub fn next_message(&mut self) -> Result<Option<OwnedMessage>, KafkaFailure> {
        let deadline = Instant::now() + self.patience;
        while !self.ends.is_empty() {
            match self.consumer.poll(Duration::from_millis(200)) {
                Some(Ok(message)) => {
                    let (partition, next) = (message.partition(), message.offset() + 1);
                    // What follows the end as it was is passed over, and the time runs.
                    if let Some(end) = self.ends.get(&partition).copied() {
                        if next >= end {
                            self.ends.remove(&partition);
                        }
                        if next <= end {
                            return Ok(Some(message.detach()));
                        }
                    }
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    self.ends.remove(&partition);
                }
                Some(Err(error)) if is_final_without_group(&error) => {
                    let right = format!("read topic {:?} (Read)", self.topic);
                    return Err(self.cluster.failure_of("cannot read the topic", right, error));
                }
                // Errors that the client retries by itself.
                Some(Err(_)) | None => {}
            }
            if Instant::now() > deadline {
                return Err(self.cluster.unanswered(self.patience));
            }
        }
        Ok(None)
    }
}
