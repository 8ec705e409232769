//! Read of a complete topic and its later messages, without a group.

use super::connection::{KafkaCluster, KafkaFailure, QueryClient};
use super::failure::is_final_without_group;
use rdkafka::Message;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::metadata::Metadata;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::time::Duration;

const START_QUERY_TIMEOUT: Duration = Duration::from_secs(30);
const LAG_QUERY_TIMEOUT: Duration = Duration::from_secs(2);
const MESSAGE_POLL_TIMEOUT: Duration = Duration::from_millis(100);

struct ReadPosition {
    next: i64,
    end: i64,
    at_end: bool,
    whole: bool,
}

/// Topic and start offsets.
#[derive(Clone, Debug)]
pub struct TopicReadRequest {
    /// Name of the topic.
    pub topic: String,
    /// Group id, which is never joined.
    pub group: &'static str,
    /// Failed action, in errors.
    pub what: &'static str,
    /// Next offsets of known partitions.
    pub from: BTreeMap<i32, i64>,
}

/// Reader of a complete topic.
pub struct WholeTopic {
    consumer: QueryClient,
    cluster: KafkaCluster,
    reading: TopicReadRequest,
    places: BTreeMap<i32, ReadPosition>,
    /// Partitions that lost unread messages.
    missed: Vec<i32>,
    begun: Vec<(i32, i64)>,
}

impl WholeTopic {
    /// Opens the topic; `None` if `is_over` ended the wait.
    pub fn open(
        cluster: &KafkaCluster,
        reading: TopicReadRequest,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, KafkaFailure> {
        let mut config = cluster.consumer(reading.group);
        config.set("enable.partition.eof", "true");
        config.set("auto.offset.reset", "earliest");
        config.set("statistics.interval.ms", "0");
        let consumer = config.query_client(reading.what)?;
        let partitions = loop {
            if is_over() {
                return Ok(None);
            }
            match cluster.partitions(&[reading.topic.as_str()], LAG_QUERY_TIMEOUT) {
                Err(failure) if failure.may_pass_later() => {}
                answer => break answer?[0],
            }
        };
        let cluster = cluster.clone();
        let mut whole =
            Self { consumer, cluster, reading, places: BTreeMap::new(), missed: Vec::new(), begun: Vec::new() };
        (0..partitions).try_for_each(|partition| whole.locate_partition(partition, START_QUERY_TIMEOUT))?;
        whole.assign()?;
        Ok(Some(whole))
    }

    fn locate_partition(&mut self, partition: i32, patience: Duration) -> Result<(), KafkaFailure> {
        let TopicReadRequest { topic, what, from, .. } = &self.reading;
        let marks = self.consumer.fetch_watermarks(topic, partition, patience);
        let (low, end) = marks.map_err(|e| self.cluster.failure(what, e))?;
        let read = from.get(&partition).copied();
        // Stored offsets of others exist, so the partition is new and has already lost messages.
        if read.map_or(!from.is_empty() && low > 0, |next| next < low) {
            self.missed.push(partition);
        }
        // An offset beyond the end belongs to an earlier topic of this name.
        let next = read.filter(|next| (low..=end).contains(next)).unwrap_or(low);
        if read.is_none() {
            self.begun.push((partition, next));
        }
        self.places.insert(partition, ReadPosition { next, end, at_end: false, whole: end <= next });
        Ok(())
    }

    fn assign(&self) -> Result<(), KafkaFailure> {
        let failed = |e| self.cluster.failure(self.reading.what, e);
        let mut list = TopicPartitionList::new();
        for (partition, place) in &self.places {
            list.add_partition_offset(&self.reading.topic, *partition, Offset::Offset(place.next)).map_err(failed)?;
        }
        self.consumer.assign(&list).map_err(failed)
    }

    /// Waits briefly for the next message; true if it existed at the opening.
    ///
    /// # Errors
    /// Permanent errors of the client.
    pub fn poll(&mut self, visit: impl FnOnce(&BorrowedMessage<'_>)) -> Result<bool, KafkaFailure> {
        match self.consumer.poll(MESSAGE_POLL_TIMEOUT) {
            Some(Ok(message)) => {
                visit(&message);
                if let Some(place) = self.places.get_mut(&message.partition()) {
                    (place.next, place.at_end) = (message.offset() + 1, false);
                    place.whole |= place.next >= place.end;
                    return Ok(place.next <= place.end);
                }
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                if let Some(place) = self.places.get_mut(&partition) {
                    (place.at_end, place.whole) = (true, true);
                }
            }
            Some(Err(error)) if is_final_without_group(&error) => {
                let right = format!("read topic {:?} (Read)", self.reading.topic);
                return Err(self.cluster.failure_of(self.reading.what, right, error));
            }
            // The client retries other errors.
            Some(Err(_)) | None => {}
        }
        Ok(false)
    }

    /// Returns the partitions that lost unread messages, each once.
    pub fn take_lossy_partitions(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.missed)
    }

    /// Returns new partitions with their first offsets, each once.
    pub fn take_new_partitions(&mut self) -> Vec<(i32, i64)> {
        std::mem::take(&mut self.begun)
    }

    /// Returns true once all initial messages have been read.
    pub fn has_reached_initial_end(&self) -> bool {
        self.places.values().all(|place| place.whole)
    }

    /// Describes a read that got no message for `patience`: the first partition with unread initial messages.
    pub fn stalled_failure(&self, patience: Duration) -> KafkaFailure {
        if let Some(refused) = self.cluster.current_refusal() {
            return refused;
        }
        let Some((&partition, place)) = self.places.iter().find(|(_, place)| !place.whole) else {
            return self.cluster.no_answer_failure(patience);
        };
        let (brokers, topic) = (self.cluster.brokers(), self.reading.topic.clone());
        let (offset, end, seconds) = (place.next, place.end, patience.as_secs());
        KafkaFailure::ReadStalled { brokers, topic, partition, offset, end, seconds }
    }

    /// Returns the number of unread records, if known; starts added partitions.
    pub fn measure_lag(&mut self) -> Result<Option<u64>, KafkaFailure> {
        let known = i32::try_from(self.places.len()).unwrap_or(i32::MAX);
        let metadata = self.consumer.fetch_metadata(Some(&self.reading.topic), LAG_QUERY_TIMEOUT).ok();
        let topics = metadata.iter().flat_map(Metadata::topics);
        let partitions = topics.map(|topic| i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX)).max();
        let come = (known..partitions.unwrap_or(known))
            .take_while(|partition| self.locate_partition(*partition, LAG_QUERY_TIMEOUT).is_ok())
            .count();
        if come > 0 {
            self.assign()?;
        }
        let mut lag = 0;
        for (partition, place) in self.places.iter_mut().filter(|(_, place)| !place.at_end) {
            let Ok((low, end)) = self.consumer.fetch_watermarks(&self.reading.topic, *partition, LAG_QUERY_TIMEOUT)
            else {
                return Ok(None);
            };
            if place.next < low {
                place.next = low;
                if !self.missed.contains(partition) {
                    self.missed.push(*partition);
                }
            }
            lag += end - place.next;
        }
        Ok(u64::try_from(lag).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::bindings::rd_kafka_resp_err_t as Refusal;
    use rdkafka::mocking::MockCluster;
    use rdkafka::types::RDKafkaApiKey;
    use std::time::Instant;

    #[test]
    fn denied_topic_fails_and_temporary_error_is_retried() {
        let broker = MockCluster::new(1).expect("librdkafka's mock cluster");
        broker.create_topic("profiles", 1, 1).expect("a topic");
        let cluster = KafkaCluster::new(&broker.bootstrap_servers(), BTreeMap::new());
        let open = || {
            let (group, what) = ("throng.tests.reader", "cannot read the profiles");
            let reading = TopicReadRequest { topic: "profiles".to_owned(), group, what, from: BTreeMap::new() };
            WholeTopic::open(&cluster, reading, &|| false).expect("it opens").expect("an answer")
        };
        let outcome = |topic: &mut WholeTopic, patience: Duration| {
            let deadline = Instant::now() + patience;
            while Instant::now() < deadline {
                topic.poll(|_| {})?;
            }
            Ok(())
        };
        let passing = [Refusal::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION; 2];
        broker.request_errors(RDKafkaApiKey::Fetch, &passing);
        let passed: Result<(), KafkaFailure> = outcome(&mut open(), Duration::from_secs(3));
        passed.expect("the client tries again");
        let refusals = [Refusal::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED; 50];
        broker.request_errors(RDKafkaApiKey::Fetch, &refusals);
        let refused = outcome(&mut open(), Duration::from_secs(30)).expect_err("it may not be read").to_string();
        assert!(refused.contains("no right to read topic \"profiles\""), "{refused}");
    }
}
