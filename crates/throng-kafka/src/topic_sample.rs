//! Messages of a topic for inspection, without a group or commits.

use super::connection::{KafkaCluster, KafkaFailure};
use super::whole_topic::{TopicReadRequest, WholeTopic};
use rdkafka::message::OwnedMessage;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Committed messages of a topic up to its initial end.
pub struct TopicSample {
    topic: WholeTopic,
    patience: Duration,
}

impl TopicSample {
    /// Opens `topic`; waits at most `patience` for a broker.
    pub fn open(cluster: &KafkaCluster, topic: &str, patience: Duration) -> Result<Self, KafkaFailure> {
        // The wait below keeps no reason, such as a missing leader.
        cluster.partitions(&[topic], patience)?;
        let deadline = Instant::now() + patience;
        let (group, what) = ("throng.sample", "cannot read the topic");
        let reading = TopicReadRequest { topic: topic.to_owned(), group, what, from: BTreeMap::new() };
        let opened = WholeTopic::open(cluster, reading, &|| Instant::now() > deadline)?;
        let topic = opened.ok_or_else(|| cluster.no_answer_failure(patience))?;
        Ok(Self { topic, patience })
    }

    /// Returns the next message; `None` at the end.
    ///
    /// # Errors
    /// [`KafkaFailure::ReadStalled`] if no message arrives in time, and permanent errors of the client.
    pub fn next_message(&mut self) -> Result<Option<OwnedMessage>, KafkaFailure> {
        let deadline = Instant::now() + self.patience;
        while !self.topic.has_reached_initial_end() {
            let mut found = None;
            let was_there = self.topic.poll(|message| found = Some(message.detach()))?;
            if was_there && found.is_some() {
                return Ok(found);
            }
            if Instant::now() > deadline {
                return Err(self.topic.stalled_failure(self.patience));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::ClientConfig;
    use rdkafka::bindings::rd_kafka_resp_err_t as Refusal;
    use rdkafka::mocking::MockCluster;
    use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
    use rdkafka::types::RDKafkaApiKey;

    #[test]
    fn stalled_read_names_the_awaited_offset() {
        let broker = MockCluster::new(1).expect("librdkafka's mock cluster");
        broker.create_topic("records", 1, 1).expect("a topic");
        let brokers = broker.bootstrap_servers();
        let producer: BaseProducer =
            ClientConfig::new().set("bootstrap.servers", &brokers).create().expect("a producer");
        assert!(producer.send(BaseRecord::<(), str>::to("records").payload("{}")).is_ok(), "the queue is empty");
        producer.flush(Duration::from_secs(30)).expect("the broker takes the record");
        let cluster = KafkaCluster::new(&brokers, BTreeMap::new());
        let refusals = [Refusal::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION; 1000];
        broker.request_errors(RDKafkaApiKey::Fetch, &refusals);
        let mut sample = TopicSample::open(&cluster, "records", Duration::from_secs(2)).expect("the broker answers");
        let failure = sample.next_message().expect_err("nothing is fetched");
        assert!(matches!(failure, KafkaFailure::ReadStalled { partition: 0, offset: 0, end: 1, .. }), "{failure:?}");
        assert!(!failure.is_usage() && failure.to_string().contains("open transaction"), "{failure}");
        broker.clear_request_errors(RDKafkaApiKey::Fetch);
        let mut sample = TopicSample::open(&cluster, "records", Duration::from_secs(30)).expect("the broker answers");
        assert!(sample.next_message().is_ok_and(|message| message.is_some()), "the record is read");
        assert!(sample.next_message().is_ok_and(|message| message.is_none()), "the topic ends");
    }
}
