//! A topic that is read whole, from its beginning (or from where somebody has read it to) up to where its end was at the start, and
//! then on as it grows; by no group.

use super::connection::{Asking, Cluster, KafkaFailure};
use super::failure::is_final_without_group;
use rdkafka::Message;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::metadata::Metadata;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a broker may take to answer a question of the start, and one between two messages.
const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(100);

/// How far one partition has been read.
struct Place {
    /// The next offset.
    next: i64,
    /// Where its end was at the start.
    end: i64,
    /// Its end has been met since a message came.
    at_end: bool,
    /// It has been read to `end`.
    whole: bool,
}

/// What is read, and by whom.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The topic.
    pub topic: String,
    /// The name of a group that nobody joins.
    pub group: &'static str,
    /// What cannot be done where it cannot be read.
    pub what: &'static str,
    /// The next offset of partitions that have been read before; the others are read from their beginning.
    pub from: BTreeMap<i32, i64>,
}

/// A topic that is read whole.
pub struct WholeTopic {
    consumer: Asking,
    cluster: Cluster,
    reading: Reading,
    places: BTreeMap<i32, Place>,
    /// Partitions of which messages were gone before anybody had read them.
    missed: Vec<i32>,
    /// Partitions that had no place before, and where they begin.
    begun: Vec<(i32, i64)>,
}

impl WholeTopic {
    /// The topic; none where it `is_over` before a broker has answered.
    pub fn open(cluster: &Cluster, reading: Reading, is_over: &dyn Fn() -> bool) -> Result<Option<Self>, KafkaFailure> {
        let mut config = cluster.consumer(reading.group);
        config.set("enable.partition.eof", "true");
        config.set("auto.offset.reset", "earliest");
        config.set("statistics.interval.ms", "0");
        let consumer = config.asking(reading.what)?;
        let partitions = loop {
            if is_over() {
                return Ok(None);
            }
            match cluster.partitions(&[reading.topic.as_str()], GLANCE) {
                Err(failure) if failure.passes() => {}
                answer => break answer?[0],
            }
        };
        let cluster = cluster.clone();
        let mut whole =
            Self { consumer, cluster, reading, places: BTreeMap::new(), missed: Vec::new(), begun: Vec::new() };
        (0..partitions).try_for_each(|partition| whole.find(partition, PATIENCE))?;
        whole.assign()?;
        Ok(Some(whole))
    }

    /// Finds where a partition begins, or goes on.
    fn find(&mut self, partition: i32, patience: Duration) -> Result<(), KafkaFailure> {
        let Reading { topic, what, from, .. } = &self.reading;
        let marks = self.consumer.fetch_watermarks(topic, partition, patience);
        let (low, end) = marks.map_err(|e| self.cluster.failure(what, e))?;
        let read = from.get(&partition).copied();
        // Whoever has places of others would have one of this, had it been there: what is gone of it has come and gone since.
        if read.map_or(!from.is_empty() && low > 0, |next| next < low) {
            self.missed.push(partition);
        }
        // Beyond its end nobody has read: it is another topic of that name, and begins anew.
        let next = read.filter(|next| (low..=end).contains(next)).unwrap_or(low);
        if read.is_none() {
            self.begun.push((partition, next));
        }
        self.places.insert(partition, Place { next, end, at_end: false, whole: end <= next });
        Ok(())
    }

    /// Reads all partitions that have been found, each from its place.
    fn assign(&self) -> Result<(), KafkaFailure> {
        let failed = |e| self.cluster.failure(self.reading.what, e);
        let mut list = TopicPartitionList::new();
        for (partition, place) in &self.places {
            list.add_partition_offset(&self.reading.topic, *partition, Offset::Offset(place.next)).map_err(failed)?;
        }
        self.consumer.assign(&list).map_err(failed)
    }

    /// Waits a moment for the next message, and shows it. True where it was there at the start.
    ///
    /// # Errors
    /// Those that the client cannot recover from by itself: it may not read the topic, for example.
    pub fn poll(&mut self, visit: impl FnOnce(&BorrowedMessage<'_>)) -> Result<bool, KafkaFailure> {
        match self.consumer.poll(POLL) {
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
            // Errors that the client retries by itself.
            Some(Err(_)) | None => {}
        }
        Ok(false)
    }

    /// Partitions of which messages were gone before they had been read, each once.
    pub fn take_missed(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.missed)
    }

    /// Partitions that nobody had a place in before, and the offsets where they begin, each once.
    pub fn take_begun(&mut self) -> Vec<(i32, i64)> {
        std::mem::take(&mut self.begun)
    }

    /// Whether everything has been read that was there at the start.
    pub fn is_whole(&self) -> bool {
        self.places.values().all(|place| place.whole)
    }

    /// Records behind the end; none where the broker does not tell. Partitions that have come are read from now on.
    pub fn look(&mut self) -> Result<Option<u64>, KafkaFailure> {
        let known = i32::try_from(self.places.len()).unwrap_or(i32::MAX);
        let metadata = self.consumer.fetch_metadata(Some(&self.reading.topic), GLANCE).ok();
        let topics = metadata.iter().flat_map(Metadata::topics);
        let partitions = topics.map(|topic| i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX)).max();
        // One that has no leader yet is looked for again.
        let come =
            (known..partitions.unwrap_or(known)).take_while(|partition| self.find(*partition, GLANCE).is_ok()).count();
        if come > 0 {
            self.assign()?;
        }
        let mut lag = 0;
        for (partition, place) in self.places.iter_mut().filter(|(_, place)| !place.at_end) {
            let Ok((low, end)) = self.consumer.fetch_watermarks(&self.reading.topic, *partition, GLANCE) else {
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

    /// Who may see a topic and not read it waits for ever where that goes unheard.
    #[test]
    fn a_topic_that_must_not_be_read_is_an_error_and_what_passes_is_none() {
        let broker = MockCluster::new(1).expect("librdkafka's mock cluster");
        broker.create_topic("profiles", 1, 1).expect("a topic");
        let cluster = Cluster::new(&broker.bootstrap_servers(), BTreeMap::new());
        let open = || {
            let (group, what) = ("throng.tests.reader", "cannot read the profiles");
            let reading = Reading { topic: "profiles".to_owned(), group, what, from: BTreeMap::new() };
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
