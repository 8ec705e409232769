//! The messages of a topic as it stands, for looking at: no group is joined, no offset committed.

use super::connection::{Cluster, KafkaFailure};
use super::whole::{Reading, WholeTopic};
use rdkafka::message::OwnedMessage;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A topic's committed messages, from the first one to those that are the last when it is opened. Partitions take turns as they come.
pub struct Sampled {
    cluster: Cluster,
    topic: WholeTopic,
    patience: Duration,
}

impl Sampled {
    /// Opens `topic`. A broker may be silent for `patience`.
    pub fn open(cluster: &Cluster, topic: &str, patience: Duration) -> Result<Self, KafkaFailure> {
        let deadline = Instant::now() + patience;
        let (group, what) = ("throng.sample", "cannot read the topic");
        let reading = Reading { topic: topic.to_owned(), group, what, from: BTreeMap::new() };
        let opened = WholeTopic::open(cluster, reading, &|| Instant::now() > deadline)?;
        let topic = opened.ok_or_else(|| cluster.unanswered(patience))?;
        Ok(Self { cluster: cluster.clone(), topic, patience })
    }

    /// The next message; none at the end. Messages behind the end as it was are passed over.
    pub fn next_message(&mut self) -> Result<Option<OwnedMessage>, KafkaFailure> {
        let deadline = Instant::now() + self.patience;
        while !self.topic.is_whole() {
            let mut found = None;
            let was_there = self.topic.poll(|message| found = Some(message.detach()))?;
            if was_there && found.is_some() {
                return Ok(found);
            }
            if Instant::now() > deadline {
                return Err(self.cluster.unanswered(self.patience));
            }
        }
        Ok(None)
    }
}
