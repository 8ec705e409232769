//! Offsets that a group has committed.

use super::connection::{Cluster, KafkaFailure};
use rdkafka::consumer::Consumer;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::time::Duration;

/// The same as it stands now: what an open transaction will commit does not count.
///
/// # Errors
/// When the cluster does not answer within `patience`.
pub fn committed_now(
    cluster: &Cluster,
    group: &str,
    places: &[(&str, i32)],
    patience: Duration,
) -> Result<Vec<Option<i64>>, KafkaFailure> {
    read(cluster, group, places, patience, "read_uncommitted")
}

/// The offset that `group` has committed for each of `places` (topic and partition), in their order; `None` where it has
/// committed none. The group is asked, not joined.
///
/// # Errors
/// When the cluster does not answer within `patience`: also while somebody's open transaction leaves an offset undecided.
pub fn committed(
    cluster: &Cluster,
    group: &str,
    places: &[(&str, i32)],
    patience: Duration,
) -> Result<Vec<Option<i64>>, KafkaFailure> {
    read(cluster, group, places, patience, "read_committed")
}

fn read(
    cluster: &Cluster,
    group: &str,
    places: &[(&str, i32)],
    patience: Duration,
    isolation: &str,
) -> Result<Vec<Option<i64>>, KafkaFailure> {
    let right = || format!("read as group {group:?} (Read)");
    let failed = |e| cluster.failure_of("cannot read the committed offsets", right(), e);
    let mut settings = cluster.consumer(group);
    settings.set("isolation.level", isolation);
    let member = settings.asking("cannot read the committed offsets")?;
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
