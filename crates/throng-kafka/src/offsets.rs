//! Committed offsets of a group.

use super::connection::{KafkaCluster, KafkaFailure};
use rdkafka::consumer::Consumer;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::time::Duration;

/// Returns the offsets like [`committed`], without waiting for open transactions.
///
/// # Errors
/// Without an answer.
pub fn committed_now(
    cluster: &KafkaCluster,
    group: &str,
    places: &[(&str, i32)],
    patience: Duration,
) -> Result<Vec<Option<i64>>, KafkaFailure> {
    read(cluster, group, places, patience, "read_uncommitted")
}

/// Returns the offset committed by `group` for each of `places`.
///
/// # Errors
/// Without an answer, or with an undecided offset.
pub fn committed(
    cluster: &KafkaCluster,
    group: &str,
    places: &[(&str, i32)],
    patience: Duration,
) -> Result<Vec<Option<i64>>, KafkaFailure> {
    read(cluster, group, places, patience, "read_committed")
}

fn read(
    cluster: &KafkaCluster,
    group: &str,
    places: &[(&str, i32)],
    patience: Duration,
    isolation: &str,
) -> Result<Vec<Option<i64>>, KafkaFailure> {
    let right = || format!("read as group {group:?} (Read)");
    let failed = |e| cluster.failure_of("cannot read the committed offsets", right(), e);
    let mut settings = cluster.consumer(group);
    settings.set("isolation.level", isolation);
    let member = settings.query_client("cannot read the committed offsets")?;
    let mut wanted = TopicPartitionList::new();
    for (topic, partition) in places {
        wanted.add_partition(topic, *partition);
    }
    let found = member.committed_offsets(wanted, patience).map_err(failed)?;
    let offset = |(topic, partition): &(&str, i32)| match found.find_partition(topic, *partition)?.offset() {
        Offset::Offset(n) => Some(n),
        _ => None,
    };
    Ok(places.iter().map(offset).collect())
}
