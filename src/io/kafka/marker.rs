//! The marker: proof, inside the batch's own transaction, that the batch left.
//!
//! The compacted topic `throng.commits` maps a transactional id to the number of its last committed batch. Offsets
//! cannot tell: another instance may have committed past a batch of ours that was aborted.

use super::connection::{Cluster, KafkaFailure};
use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::time::{Duration, Instant};

/// The body of a marker.
#[must_use]
pub fn body(sequence: u64) -> String {
    format!("{{\"sequence\":{sequence}}}")
}

fn sequence_of(body: &[u8]) -> Option<u64> {
    serde_json::from_slice::<serde_json::Value>(body).ok()?.get("sequence")?.as_u64()
}

/// Number of the last batch that `transactional_id` committed; 0 if it never did.
///
/// Call it after `init_transactions`, which settles whatever an older self had open.
///
/// # Errors
/// When the topic cannot be read to its end within `patience`.
pub fn last_committed(
    cluster: &Cluster,
    topic: &str,
    transactional_id: &str,
    partitions: i32,
    patience: Duration,
) -> Result<u64, KafkaFailure> {
    let mut config = cluster.consumer("throng.commits.reader");
    config.set("enable.partition.eof", "true");
    config.set("auto.offset.reset", "earliest");
    let reader: BaseConsumer =
        config.create().map_err(|e| cluster.failure("cannot create a reader of the commit markers", e))?;
    let mut list = TopicPartitionList::new();
    for partition in 0..partitions {
        list.add_partition_offset(topic, partition, Offset::Beginning)
            .map_err(|e| cluster.failure("cannot read the commit markers", e))?;
    }
    reader.assign(&list).map_err(|e| cluster.failure("cannot read the commit markers", e))?;
    let deadline = Instant::now() + patience;
    wait_for_stable_end(cluster, topic, partitions, &reader, deadline, patience)?;
    let mut ended = std::collections::BTreeSet::new();
    let mut last = 0;
    while ended.len() < usize::try_from(partitions).unwrap_or(usize::MAX) {
        match reader.poll(Duration::from_millis(200)) {
            Some(Ok(message)) if message.key() == Some(transactional_id.as_bytes()) => {
                last = last.max(message.payload().and_then(sequence_of).unwrap_or(0));
            }
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(partition))) => {
                ended.insert(partition);
            }
            // Other instances' markers, and errors that the client retries by itself.
            Some(Ok(_) | Err(_)) | None => {}
        }
        if Instant::now() > deadline {
            return Err(KafkaFailure::Unreachable { brokers: cluster.brokers.clone(), seconds: patience.as_secs() });
        }
    }
    Ok(last)
}

/// Waits until everything written so far is settled: committed records behind another instance's open transaction
/// cannot be seen before that one ends, at the latest by its time-out.
fn wait_for_stable_end(
    cluster: &Cluster,
    topic: &str,
    partitions: i32,
    reader: &BaseConsumer,
    deadline: Instant,
    patience: Duration,
) -> Result<(), KafkaFailure> {
    let failed = |e| cluster.failure("cannot tell where the commit markers end", e);
    let mut config = cluster.consumer("throng.commits.end");
    config.set("isolation.level", "read_uncommitted");
    let uncommitted: BaseConsumer =
        config.create().map_err(|e| cluster.failure("cannot create a reader of the commit markers", e))?;
    for partition in 0..partitions {
        let (_, end) = uncommitted.fetch_watermarks(topic, partition, patience).map_err(failed)?;
        loop {
            // A read_committed client is told the last stable offset.
            let (_, stable) = reader.fetch_watermarks(topic, partition, patience).map_err(failed)?;
            if stable >= end {
                break;
            }
            if Instant::now() > deadline {
                return Err(KafkaFailure::Unreachable { brokers: cluster.brokers.clone(), seconds: patience.as_secs() });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_marker_gives_its_sequence_back() {
        assert_eq!(super::sequence_of(super::body(42).as_bytes()), Some(42));
        assert_eq!(super::sequence_of(b"{}"), None);
        assert_eq!(super::sequence_of(b"\xff"), None);
    }
}
