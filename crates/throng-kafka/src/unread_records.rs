//! Check for records after an offset; control records and compaction leave gaps before the end.

use super::changelog::{self, IsolationLevel};
use super::connection::{KafkaCluster, KafkaFailure};
use super::failure::is_final_without_group;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const IDLE_READER_GROUP: &str = "throng.idle.reader";

const UNREAD_ACTION: &str = "cannot look for unread records";

/// Timeout for all partitions together.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns true for each place without a committed record from its offset on.
///
/// # Errors
/// If the brokers refuse or do not answer.
pub fn without_unread(cluster: &KafkaCluster, places: &[(&str, i32, i64)]) -> Result<Vec<bool>, KafkaFailure> {
    check_unread(cluster, places, IsolationLevel::Committed)
}

/// Returns the end of a partition; true without any record from `from` on.
///
/// # Errors
/// If the brokers refuse or do not answer.
pub fn end_of(cluster: &KafkaCluster, topic: &str, partition: i32, from: i64) -> Result<(i64, bool), KafkaFailure> {
    // Committed records end at the first open transaction.
    let reader = changelog::reader_settings(cluster, IsolationLevel::Uncommitted).query_client(UNREAD_ACTION)?;
    let (_, end) =
        reader.fetch_watermarks(topic, partition, UNREAD_TIMEOUT).map_err(|e| cluster.failure(UNREAD_ACTION, e))?;
    Ok((end, check_unread(cluster, &[(topic, partition, from)], IsolationLevel::Uncommitted)?[0]))
}

fn check_unread(
    cluster: &KafkaCluster,
    places: &[(&str, i32, i64)],
    isolation: IsolationLevel,
) -> Result<Vec<bool>, KafkaFailure> {
    let mut settings = cluster.consumer(IDLE_READER_GROUP);
    settings.set("isolation.level", isolation.level());
    settings.set("enable.partition.eof", "true");
    settings.set("auto.offset.reset", "earliest");
    settings.set("fetch.wait.max.ms", "1");
    settings.set("fetch.message.max.bytes", "1024");
    settings.set("queued.min.messages", "1");
    settings.set("statistics.interval.ms", "0");
    let reader = settings.query_client(UNREAD_ACTION)?;
    let failed = |e| cluster.failure(UNREAD_ACTION, e);
    // The client reports the end of a partition without its topic.
    let mut topics: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, (topic, ..)) in places.iter().enumerate() {
        topics.entry(topic).or_default().push(at);
    }
    let mut without = vec![false; places.len()];
    let deadline = Instant::now() + UNREAD_TIMEOUT;
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
                    return Err(cluster.failure_of(UNREAD_ACTION, format!("read topic {topic} (Read)"), error));
                }
                // The client retries other errors.
                Some(_) | None => {}
            }
        }
    }
    Ok(without)
}
