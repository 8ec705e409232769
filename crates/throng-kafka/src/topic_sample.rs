//! Messages of a topic for inspection, without a group or commits.

use super::connection::{KafkaCluster, KafkaFailure};
use super::whole_topic::{TopicReadRequest, WholeTopic};
use rdkafka::message::OwnedMessage;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Committed messages of a topic up to its initial end.
pub struct TopicSample {
    cluster: KafkaCluster,
    topic: WholeTopic,
    patience: Duration,
}

impl TopicSample {
    /// Opens `topic`; waits at most `patience` for a broker.
    pub fn open(cluster: &KafkaCluster, topic: &str, patience: Duration) -> Result<Self, KafkaFailure> {
        let deadline = Instant::now() + patience;
        let (group, what) = ("throng.sample", "cannot read the topic");
        let reading = TopicReadRequest { topic: topic.to_owned(), group, what, from: BTreeMap::new() };
        let opened = WholeTopic::open(cluster, reading, &|| Instant::now() > deadline)?;
        let topic = opened.ok_or_else(|| cluster.no_answer_failure(patience))?;
        Ok(Self { cluster: cluster.clone(), topic, patience })
    }

    /// Returns the next message; `None` at the end.
    pub fn next_message(&mut self) -> Result<Option<OwnedMessage>, KafkaFailure> {
        let deadline = Instant::now() + self.patience;
        while !self.topic.has_reached_initial_end() {
            let mut found = None;
            let was_there = self.topic.poll(|message| found = Some(message.detach()))?;
            if was_there && found.is_some() {
                return Ok(found);
            }
            if Instant::now() > deadline {
                return Err(self.cluster.no_answer_failure(self.patience));
            }
        }
        Ok(None)
    }
}
