//! The marker: proof, inside the batch's own transaction, that the batch left.
//!
//! The compacted topic `throng.commits` maps a transactional id to the number of its last committed batch. Offsets
//! cannot tell: another instance may have committed past a batch of ours that was aborted.

use super::connection::{Asking, Cluster, KafkaFailure, Settings};
use super::failure::is_final_without_group;
use rdkafka::Message;
use rdkafka::consumer::Consumer;
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What the last committed batch of a transactional id says of itself; zeros where none was committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The number of the batch.
    pub sequence: u64,
    /// [`Envelope::attempt`](crate::release::sink::Envelope::attempt) of the attempt that was committed.
    pub attempt: u64,
}

impl Marker {
    /// The marker as it is written to its topic.
    pub fn body(self) -> String {
        let Self { sequence, attempt } = self;
        format!("{{\"sequence\":{sequence},\"attempt\":{attempt}}}")
    }

    fn of(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }
}

/// The group that is named, and never joined: what is asked here is asked by no member.
const READER: &str = "throng.commits.reader";

/// What cannot be done, in errors.
const WHAT: &str = "cannot read the commit markers";

/// How long another instance's open transaction may hide a marker of ours: the time-out of a transaction and some more.
const UNDECIDED: Duration = Duration::from_secs(90);

/// The marker of the last batch that `transactional_id` committed.
///
/// Call it after `init_transactions`, which settles whatever an older self had open. A reader of committed records is
/// shown nothing behind the first open transaction, whoever has it open; so the end that it sees may come before our last
/// marker. Where that marker is, a reader of everything tells, and the other one is waited for until it has seen it.
///
/// # Errors
/// When the topic cannot be read to its end within `patience`, or our last marker is not decided in time.
pub fn last_committed(
    cluster: &Cluster,
    topic: &str,
    transactional_id: &str,
    partitions: i32,
    patience: Duration,
) -> Result<Marker, KafkaFailure> {
    let ours = |message: &BorrowedMessage<'_>| message.key() == Some(transactional_id.as_bytes());
    let everything = reader(cluster, topic, partitions, "read_uncommitted")?;
    let mut decided_at: BTreeMap<i32, i64> = BTreeMap::new();
    walk(cluster, &everything, partitions, patience, |message| {
        if ours(message) {
            decided_at.insert(message.partition(), message.offset());
        }
    })?;
    // To a client of committed records the end is the beginning of the first open transaction.
    let watcher = cluster.consumer(READER).asking(WHAT)?;
    let deadline = Instant::now() + UNDECIDED;
    for (partition, offset) in decided_at {
        while watcher.fetch_watermarks(topic, partition, patience).map_or(0, |(_, end)| end) <= offset {
            if Instant::now() > deadline {
                return Err(KafkaFailure::Undecided { topic: topic.to_owned(), seconds: UNDECIDED.as_secs() });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    // Only now: a reader that was there before has met the earlier end already.
    let committed = reader(cluster, topic, partitions, "read_committed")?;
    let mut last = Marker::default();
    walk(cluster, &committed, partitions, patience, |message| {
        if ours(message) {
            // A partition is read in order, and ours are all in one.
            if let Some(marker) = message.payload().and_then(Marker::of).filter(|m| m.sequence >= last.sequence) {
                last = marker;
            }
        }
    })?;
    Ok(last)
}

/// Whether a transactional id that begins with `prefix` has committed a batch.
pub fn has_any(
    cluster: &Cluster,
    topic: &str,
    prefix: &str,
    partitions: i32,
    patience: Duration,
) -> Result<bool, KafkaFailure> {
    let mut found = false;
    let committed = reader(cluster, topic, partitions, "read_committed")?;
    walk(cluster, &committed, partitions, patience, |message| {
        found |= message.key().is_some_and(|key| key.starts_with(prefix.as_bytes()));
    })?;
    Ok(found)
}

/// Tells whether anybody else writes markers under our transactional id.
///
/// A new producer takes the id from whoever has it, also from a copy of this state that has been started since. What that
/// one has committed is decided, and in the topic, once `init_transactions` has returned; so a look at the markers between
/// that and the first record is what the check of a start is, without reading the whole topic.
pub struct Watch {
    cluster: Cluster,
    topic: String,
    transactional_id: String,
    reader: Asking,
    /// Where the next look begins, by partition.
    next: BTreeMap<i32, i64>,
}

impl Watch {
    /// Begins at the end of the topic. Call it after `init_transactions`, and read [`last_committed`] after it.
    pub fn begin(
        cluster: &Cluster,
        topic: &str,
        transactional_id: &str,
        patience: Duration,
    ) -> Result<Self, KafkaFailure> {
        let partitions = cluster.partitions(&[topic], patience)?[0];
        let failed = |e| cluster.failure(WHAT, e);
        let reader = config(cluster, "read_uncommitted").asking(WHAT)?;
        let mut next = BTreeMap::new();
        for partition in 0..partitions {
            let (_, end) = reader.fetch_watermarks(topic, partition, patience).map_err(failed)?;
            next.insert(partition, end);
        }
        let (cluster, topic) = (cluster.clone(), topic.to_owned());
        Ok(Self { cluster, topic, transactional_id: transactional_id.to_owned(), reader, next })
    }

    /// The markers under our id that were written since the last look, those of aborted attempts among them.
    ///
    /// # Errors
    /// When the topic cannot be read to its end within `patience`; the next look shows the same markers again.
    pub fn look(&mut self, patience: Duration) -> Result<Vec<Marker>, KafkaFailure> {
        let failed = |e| self.cluster.failure(WHAT, e);
        let mut list = TopicPartitionList::new();
        for (&partition, &offset) in &self.next {
            list.add_partition_offset(&self.topic, partition, Offset::Offset(offset)).map_err(failed)?;
        }
        self.reader.assign(&list).map_err(failed)?;
        let (mut found, mut next) = (Vec::new(), self.next.clone());
        let partitions = i32::try_from(next.len()).unwrap_or(i32::MAX);
        let walked = walk(&self.cluster, &self.reader, partitions, patience, |message| {
            next.insert(message.partition(), message.offset() + 1);
            if message.key() == Some(self.transactional_id.as_bytes()) {
                found.extend(message.payload().and_then(Marker::of));
            }
        });
        // Nothing is fetched, and nothing piles up, until the next look.
        self.reader.unassign().map_err(failed)?;
        walked?;
        self.next = next;
        Ok(found)
    }
}

/// Settings of a reader that wants to know where the end is: a broker that has nothing more need not wait for more.
fn config(cluster: &Cluster, isolation: &str) -> Settings {
    let mut config = cluster.consumer(READER);
    config.set("enable.partition.eof", "true");
    config.set("auto.offset.reset", "earliest");
    config.set("isolation.level", isolation);
    config.set("fetch.wait.max.ms", "1");
    // Nobody takes them away between two looks.
    config.set("statistics.interval.ms", "0");
    config
}

fn reader(cluster: &Cluster, topic: &str, partitions: i32, isolation: &str) -> Result<Asking, KafkaFailure> {
    let failed = |e| cluster.failure(WHAT, e);
    let reader = config(cluster, isolation).asking(WHAT)?;
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions {
        list.add_partition_offset(topic, partition, Offset::Beginning).map_err(failed)?;
    }
    reader.assign(&list).map_err(failed)?;
    Ok(reader)
}

/// Shows every record up to the ends of the partitions, as the reader sees them.
fn walk(
    cluster: &Cluster,
    reader: &Asking,
    partitions: i32,
    patience: Duration,
    mut visit: impl FnMut(&BorrowedMessage<'_>),
) -> Result<(), KafkaFailure> {
    let deadline = Instant::now() + patience;
    let mut ended = std::collections::BTreeSet::new();
    while ended.len() < usize::try_from(partitions).unwrap_or(usize::MAX) {
        match reader.poll(Duration::from_millis(200)) {
            Some(Ok(message)) => visit(&message),
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(partition))) => {
                ended.insert(partition);
            }
            Some(Err(error)) if is_final_without_group(&error) => {
                return Err(cluster.failure_of(WHAT, "read the topic of the commit markers (Read)", error));
            }
            // Errors that the client retries by itself.
            Some(Err(_)) | None => {}
        }
        if Instant::now() > deadline {
            return Err(cluster.unanswered(patience));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_comes_back_as_it_was_written() {
        let marker = Marker { sequence: 42, attempt: u64::MAX };
        assert_eq!(Marker::of(marker.body().as_bytes()), Some(marker));
        assert_eq!(Marker::of(b"{}"), None);
        assert_eq!(Marker::of(b"\xff"), None);
    }
}
