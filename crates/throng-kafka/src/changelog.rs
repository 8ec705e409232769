//! Changelog: a compacted topic with markers in partition 0 and the state of source partition p in partition p + 1.

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

const CHANGELOG_READER_GROUP: &str = "throng.changelog.reader";

pub(super) const CHANGELOG_ACTION: &str = "cannot read the changelog";

const BROKER_TIMEOUT: Duration = Duration::from_secs(10);

const UNDECIDED_REPORT_INTERVAL: Duration = Duration::from_secs(3);

const UNDECIDED_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the changelog partition of a source partition.
#[must_use]
pub fn partition_of(source_partition: i32) -> i32 {
    source_partition.saturating_add(1)
}

/// Checks the number of partitions of `topic`.
///
/// # Errors
/// [`KafkaFailure::TooFewPartitions`], or no answer.
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

/// Checks that a topic is compacted and deletes nothing by age.
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

/// Checks that the topic of contributions has one partition.
///
/// # Errors
/// [`KafkaFailure::NotOnePartition`].
pub fn expect_one_partition(topic: &str, partitions: i32) -> Result<(), KafkaFailure> {
    if partitions == 1 {
        return Ok(());
    }
    Err(KafkaFailure::NotOnePartition { topic: topic.to_owned(), partitions })
}

/// Different keys prevent compaction.
pub(super) fn key_of_contributions(group: &str, sealed: &[u8]) -> Vec<u8> {
    [group.as_bytes(), &[0], &sealed[..sealed.len().min(24)]].concat()
}

pub(super) fn is_of_group(key: &[u8], group: &str) -> bool {
    key.strip_prefix(group.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IsolationLevel {
    Committed,
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

pub(super) fn reader_settings(cluster: &KafkaCluster, isolation: IsolationLevel) -> ClientSettings {
    let mut settings = cluster.consumer(CHANGELOG_READER_GROUP);
    settings.set("enable.partition.eof", "true");
    settings.set("auto.offset.reset", "earliest");
    settings.set("isolation.level", isolation.level());
    settings.set("fetch.wait.max.ms", "1");
    settings.set("statistics.interval.ms", "0");
    settings
}

/// Committed records end at the first open transaction.
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

/// Visits every record from the first open transaction on; false if `is_over` ended the read.
///
/// # Errors
/// If the brokers refuse or do not answer.
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
                // `is_over` costs more than reading one record.
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

/// Key and value of a changelog record; `None` for a removed entry.
pub type RawChangelogRecord<'a> = (&'a [u8], Option<&'a [u8]>);

/// Visits the committed records of changelog partitions up to their current ends; false if `is_over` ended the read.
/// Calls `undecided` at intervals during an open transaction.
///
/// # Errors
/// If the brokers refuse ([`KafkaFailure::is_usage`]) or do not answer, or `undecided` fails.
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
    // A new reader: the first may have met an earlier end.
    read_all(cluster, topic, &partitions, IsolationLevel::Committed, is_over, |message| {
        if let Some(key) = message.key() {
            visit((key, message.payload()));
        }
    })
}
