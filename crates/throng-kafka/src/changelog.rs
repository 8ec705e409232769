//! Changelog: a compacted topic. Partition 0 holds the markers of all instances, and partition p + 1 holds the state
//! of source partition p.

use super::connection::{ClientSettings, KafkaCluster, KafkaFailure, QueryClient};
use super::failure::is_final_without_group;
use super::topic::cleanup_policy;
use rdkafka::Message;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Partition of the markers.
pub const MARKER_PARTITION: i32 = 0;

/// Group id of the readers, which never join it.
const CHANGELOG_READER_GROUP: &str = "throng.changelog.reader";

/// Failed action, in errors.
pub(super) const CHANGELOG_ACTION: &str = "cannot read the changelog";

/// Timeout of one request to the brokers.
const BROKER_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval of reports about an open transaction.
const UNDECIDED_REPORT_INTERVAL: Duration = Duration::from_secs(3);

const UNDECIDED_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the changelog partition with the state of a source partition.
#[must_use]
pub fn partition_of(source_partition: i32) -> i32 {
    source_partition.saturating_add(1)
}

/// Checks that `topic` has partitions for the markers and for `source_partitions`.
///
/// # Errors
/// [`KafkaFailure::TooFewPartitions`], or when the brokers do not answer within `patience`.
pub fn expect_partitions(
    cluster: &KafkaCluster,
    topic: &str,
    source_partitions: i32,
    patience: Duration,
) -> Result<(), KafkaFailure> {
    let (partitions, needed) = (cluster.partitions(&[topic], patience)?[0], partition_of(source_partitions));
    if partitions >= needed {
        return Ok(());
    }
    Err(KafkaFailure::TooFewPartitions { topic: topic.to_owned(), partitions, needed })
}

/// Checks that the brokers compact a topic and delete no record by age. Logs a reminder if the brokers do not report
/// the policy.
///
/// # Errors
/// [`KafkaFailure::DeletedByAge`].
pub fn expect_compacted(cluster: &KafkaCluster, topic: &str) -> Result<(), KafkaFailure> {
    match cleanup_policy(cluster, topic, BROKER_TIMEOUT) {
        Ok(Some(policy)) if policy.contains("delete") => {
            Err(KafkaFailure::DeletedByAge { topic: topic.to_owned(), policy })
        }
        Ok(Some(_)) => Ok(()),
        Ok(None) => {
            tracing::info!(
                topic,
                "cannot verify that the topic is compacted, which is required: the brokers do not report its settings (DescribeConfigs)"
            );
            Ok(())
        }
        Err(failure) => {
            tracing::info!(topic, %failure, "cannot verify that the topic is compacted, which is required");
            Ok(())
        }
    }
}

/// Checks that the topic of contributions to series has one partition: a single instance holds all cohorts.
///
/// # Errors
/// [`KafkaFailure::NotOnePartition`].
pub fn expect_one_partition(topic: &str, partitions: i32) -> Result<(), KafkaFailure> {
    if partitions == 1 {
        return Ok(());
    }
    Err(KafkaFailure::NotOnePartition { topic: topic.to_owned(), partitions })
}

/// Returns the key of sealed contributions of `group`. Each key is different, so that compaction removes none.
pub(super) fn key_of_contributions(group: &str, sealed: &[u8]) -> Vec<u8> {
    [group.as_bytes(), &[0], &sealed[..sealed.len().min(24)]].concat()
}

/// Returns true if `key` belongs to contributions of `group`.
pub(super) fn is_of_group(key: &[u8], group: &str) -> bool {
    key.strip_prefix(group.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IsolationLevel {
    Committed,
    /// Includes records of open and aborted transactions.
    Uncommitted,
}

impl IsolationLevel {
    pub(super) fn level(self) -> &'static str {
        match self {
            Self::Committed => "read_committed",
            Self::Uncommitted => "read_uncommitted",
        }
    }
}

/// Returns the settings of a reader that reports the end of each partition. The broker answers immediately if it has
/// no further records.
pub(super) fn reader_settings(cluster: &KafkaCluster, isolation: IsolationLevel) -> ClientSettings {
    let mut settings = cluster.consumer(CHANGELOG_READER_GROUP);
    settings.set("enable.partition.eof", "true");
    settings.set("auto.offset.reset", "earliest");
    settings.set("isolation.level", isolation.level());
    settings.set("fetch.wait.max.ms", "1");
    // The statistics of this client are not used.
    settings.set("statistics.interval.ms", "0");
    settings
}

/// Returns the end offsets of partitions. For a reader of committed records, a partition ends at its first open
/// transaction.
pub(super) fn end_offsets(
    cluster: &KafkaCluster,
    reader: &QueryClient,
    topic: &str,
    partitions: &[i32],
) -> Result<BTreeMap<i32, i64>, KafkaFailure> {
    let end = |&partition: &i32| {
        let (_, end) = reader
            .fetch_watermarks(topic, partition, BROKER_TIMEOUT)
            .map_err(|e| cluster.failure_of(CHANGELOG_ACTION, read_permission(topic), e))?;
        Ok((partition, end))
    };
    partitions.iter().map(end).collect()
}

fn read_permission(topic: &str) -> String {
    format!("read topic {topic} (Read)")
}

/// Waits until all transactions before `end_offsets` are committed or aborted, and calls `undecided` at intervals. Returns
/// false if `is_over` ended the wait.
pub(super) fn wait_until_decided(
    cluster: &KafkaCluster,
    topic: &str,
    ends: &BTreeMap<i32, i64>,
    is_over: impl Fn() -> bool,
    mut undecided: impl FnMut() -> Result<(), KafkaFailure>,
) -> Result<bool, KafkaFailure> {
    let watcher = reader_settings(cluster, IsolationLevel::Committed).query_client(CHANGELOG_ACTION)?;
    let mut told = Instant::now();
    for (&partition, &end) in ends {
        while self::end_offsets(cluster, &watcher, topic, &[partition])?
            .get(&partition)
            .is_none_or(|decided| *decided < end)
        {
            if is_over() {
                return Ok(false);
            }
            if told.elapsed() >= UNDECIDED_REPORT_INTERVAL {
                undecided()?;
                told = Instant::now();
            }
            std::thread::sleep(UNDECIDED_POLL_INTERVAL);
        }
    }
    Ok(true)
}

/// Passes to `visit` every record from the first open transaction on, committed or not, of the changelog partitions
/// of `source_partitions`. Returns false if `is_over` ended the read.
///
/// # Errors
/// When the brokers do not answer, or refuse.
pub fn read_undecided(
    cluster: &KafkaCluster,
    topic: &str,
    source_partitions: &BTreeSet<i32>,
    is_over: &dyn Fn() -> bool,
    visit: &mut dyn FnMut(RawChangelogRecord<'_>),
) -> Result<bool, KafkaFailure> {
    let partitions: Vec<i32> = source_partitions.iter().map(|&partition| partition_of(partition)).collect();
    let committed = reader_settings(cluster, IsolationLevel::Committed).query_client(CHANGELOG_ACTION)?;
    let decided = end_offsets(cluster, &committed, topic, &partitions)?;
    let reader = reader_settings(cluster, IsolationLevel::Uncommitted).query_client(CHANGELOG_ACTION)?;
    assign(cluster, &reader, topic, decided.into_iter().map(|(partition, end)| (partition, Offset::Offset(end))))?;
    visit_to_ends(cluster, &reader, partitions.len(), is_over, |message| {
        if let Some(key) = message.key() {
            visit((key, message.payload()));
        }
    })
}

/// Assigns partitions to `reader`, each at its offset in `from`.
pub(super) fn assign(
    cluster: &KafkaCluster,
    reader: &QueryClient,
    topic: &str,
    from: impl Iterator<Item = (i32, Offset)>,
) -> Result<(), KafkaFailure> {
    let failed = |e| cluster.failure(CHANGELOG_ACTION, e);
    let mut list = TopicPartitionList::new();
    for (partition, offset) in from {
        list.add_partition_offset(topic, partition, offset).map_err(failed)?;
    }
    reader.assign(&list).map_err(failed)
}

/// Passes to `visit` every record of `partitions` from the beginning to the end, under `isolation`. Returns false if
/// `is_over` ended the read.
pub(super) fn read_all(
    cluster: &KafkaCluster,
    topic: &str,
    partitions: &[i32],
    isolation: IsolationLevel,
    is_over: impl Fn() -> bool,
    visit: impl FnMut(&BorrowedMessage<'_>),
) -> Result<bool, KafkaFailure> {
    let reader = reader_settings(cluster, isolation).query_client(CHANGELOG_ACTION)?;
    assign(cluster, &reader, topic, partitions.iter().map(|&partition| (partition, Offset::Beginning)))?;
    visit_to_ends(cluster, &reader, partitions.len(), is_over, visit)
}

/// Passes to `visit` every record up to the ends of the assigned partitions, as the reader sees them. Returns false
/// if `is_over` ended the read.
pub(super) fn visit_to_ends(
    cluster: &KafkaCluster,
    reader: &QueryClient,
    partitions: usize,
    is_over: impl Fn() -> bool,
    mut visit: impl FnMut(&BorrowedMessage<'_>),
) -> Result<bool, KafkaFailure> {
    let mut ended = BTreeSet::new();
    let mut visited = 0_u32;
    while ended.len() < partitions {
        match reader.poll(Duration::from_millis(200)) {
            Some(Ok(message)) => {
                visit(&message);
                visited = visited.wrapping_add(1);
                // Calling `is_over` costs more than reading one record.
                if !visited.is_multiple_of(1024) {
                    continue;
                }
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                ended.insert(partition);
                continue;
            }
            Some(Err(error)) if is_final_without_group(&error) => {
                return Err(cluster.failure_of(CHANGELOG_ACTION, "read the topic of the changelog (Read)", error));
            }
            // The client retries other errors.
            Some(Err(_)) | None => {}
        }
        if is_over() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Key and value of a changelog record. A removed entry has no value.
pub type RawChangelogRecord<'a> = (&'a [u8], Option<&'a [u8]>);

/// Passes to `visit` the committed records of the changelog partitions of `source_partitions`, in order, up to their
/// ends at the time of the call. Returns false if `is_over` ended the read. `undecided` is called at intervals while
/// a transaction is open there.
///
/// # Errors
/// When the brokers do not answer, or refuse; [`KafkaFailure::is_usage`] distinguishes the two. Also when `undecided`
/// fails.
pub fn read_state(
    cluster: &KafkaCluster,
    topic: &str,
    source_partitions: &BTreeSet<i32>,
    is_over: &dyn Fn() -> bool,
    undecided: &mut dyn FnMut() -> Result<(), KafkaFailure>,
    visit: &mut dyn FnMut(RawChangelogRecord<'_>),
) -> Result<bool, KafkaFailure> {
    let partitions: Vec<i32> = source_partitions.iter().map(|&partition| partition_of(partition)).collect();
    let everything = reader_settings(cluster, IsolationLevel::Uncommitted).query_client(CHANGELOG_ACTION)?;
    let ends = end_offsets(cluster, &everything, topic, &partitions)?;
    if !wait_until_decided(cluster, topic, &ends, is_over, undecided)? {
        return Ok(false);
    }
    // A new reader: the first one may have met an earlier end.
    read_all(cluster, topic, &partitions, IsolationLevel::Committed, is_over, |message| {
        if let Some(key) = message.key() {
            visit((key, message.payload()));
        }
    })
}
