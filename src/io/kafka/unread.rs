//! Whether partitions have records behind an offset. Their ends do not tell: a transaction leaves markers there, and compaction gaps.

use super::changelog::{self, Isolation};
use super::connection::{Cluster, KafkaFailure};
use super::failure::is_final_without_group;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The group that the reader names and never joins.
const READER: &str = "throng.idle.reader";

const WHAT: &str = "cannot look for unread records";

/// Time for all partitions.
const PATIENCE: Duration = Duration::from_secs(20);

/// By topic, partition and offset: whether no committed record lies there or behind.
///
/// # Errors
/// When the brokers do not answer, or refuse.
pub fn without_unread(cluster: &Cluster, places: &[(&str, i32, i64)]) -> Result<Vec<bool>, KafkaFailure> {
    look(cluster, places, Isolation::Committed)
}

/// The end of a partition, and whether nothing lies at `from` or behind, not even records of an open transaction.
///
/// # Errors
/// When the brokers do not answer, or refuse.
pub fn end_of(cluster: &Cluster, topic: &str, partition: i32, from: i64) -> Result<(i64, bool), KafkaFailure> {
    // To a reader of committed records a partition ends at its first open transaction.
    let reader = changelog::settings(cluster, Isolation::Everything).asking(WHAT)?;
    let (_, end) = reader.fetch_watermarks(topic, partition, PATIENCE).map_err(|e| cluster.failure(WHAT, e))?;
    Ok((end, look(cluster, &[(topic, partition, from)], Isolation::Everything)?[0]))
}

fn look(cluster: &Cluster, places: &[(&str, i32, i64)], isolation: Isolation) -> Result<Vec<bool>, KafkaFailure> {
    let mut settings = cluster.consumer(READER);
    settings.set("isolation.level", isolation.level());
    settings.set("enable.partition.eof", "true");
    settings.set("auto.offset.reset", "earliest");
    settings.set("fetch.wait.max.ms", "1");
    settings.set("fetch.message.max.bytes", "1024");
    settings.set("queued.min.messages", "1");
    settings.set("statistics.interval.ms", "0");
    let reader = settings.asking(WHAT)?;
    let failed = |e| cluster.failure(WHAT, e);
    // The client tells the end of a partition by its number alone: topics take turns.
    let mut topics: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, (topic, ..)) in places.iter().enumerate() {
        topics.entry(topic).or_default().push(at);
    }
    let mut without = vec![false; places.len()];
    let deadline = Instant::now() + PATIENCE;
    for (topic, of_topic) in topics {
        let mut waiting: BTreeMap<i32, usize> = BTreeMap::new();
        let mut list = TopicPartitionList::new();
        for at in of_topic {
            let (_, partition, offset) = places[at];
            list.add_partition_offset(topic, partition, Offset::Offset(offset)).map_err(failed)?;
            waiting.insert(partition, at);
        }
        reader.assign(&list).map_err(failed)?;
        while !waiting.is_empty() && Instant::now() < deadline {
            match reader.poll(Duration::from_millis(100)) {
                Some(Ok(message)) if message.topic() == topic => drop(waiting.remove(&message.partition())),
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    if let Some(at) = waiting.remove(&partition) {
                        without[at] = true;
                    }
                }
                Some(Err(error)) if is_final_without_group(&error) => {
                    return Err(cluster.failure_of(WHAT, format!("read topic {topic} (Read)"), error));
                }
                // The client retries other errors.
                Some(_) | None => {}
            }
        }
    }
    Ok(without)
}
