//! The changelog: a compacted topic with the markers of all instances in partition 0, and the state of source partition p in
//! partition p + 1.

use super::connection::{Asking, Cluster, KafkaFailure, Settings};
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
pub const MARKERS: i32 = 0;

/// The group that readers name and never join.
const READER: &str = "throng.changelog.reader";

/// The failed action, in errors.
pub(super) const WHAT: &str = "cannot read the changelog";

/// Time for one question to the brokers.
const ASKING: Duration = Duration::from_secs(10);

/// How long transactions may be open until that is told.
const UNDECIDED: Duration = Duration::from_secs(3);

/// Time between two questions while a transaction is open.
const INTERVAL: Duration = Duration::from_millis(50);

/// The changelog partition with the state of a source partition.
#[must_use]
pub fn partition_of(source_partition: i32) -> i32 {
    source_partition.saturating_add(1)
}

/// Expects partitions for markers and for `source_partitions`.
///
/// # Errors
/// [`KafkaFailure::TooFewPartitions`], or when the brokers do not answer within `patience`.
pub fn expect_partitions(
    cluster: &Cluster,
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

/// Expects that the brokers compact a topic and delete nothing of it by age. Where they do not say, the log does.
///
/// # Errors
/// [`KafkaFailure::DeletedByAge`].
pub fn expect_compacted(cluster: &Cluster, topic: &str) -> Result<(), KafkaFailure> {
    match cleanup_policy(cluster, topic, ASKING) {
        Ok(Some(policy)) if policy.contains("delete") => {
            Err(KafkaFailure::DeletedByAge { topic: topic.to_owned(), policy })
        }
        Ok(Some(_)) => Ok(()),
        Ok(None) => {
            tracing::info!(
                topic,
                "the brokers do not say whether this topic is compacted (DescribeConfigs): it must be"
            );
            Ok(())
        }
        Err(failure) => {
            tracing::info!(topic, %failure, "it is not known whether this topic is compacted: it must be");
            Ok(())
        }
    }
}

/// Expects one partition of the topic of contributions to series: one instance has all cohorts.
///
/// # Errors
/// [`KafkaFailure::NotOnePartition`].
pub fn expect_one_partition(topic: &str, partitions: i32) -> Result<(), KafkaFailure> {
    if partitions == 1 {
        return Ok(());
    }
    Err(KafkaFailure::NotOnePartition { topic: topic.to_owned(), partitions })
}

/// The key of sealed contributions of `group`: no two are alike, so that none is lost where the topic is compacted.
pub(super) fn key_of_contributions(group: &str, sealed: &[u8]) -> Vec<u8> {
    [group.as_bytes(), &[0], &sealed[..sealed.len().min(24)]].concat()
}

/// Whether a key is that of contributions of `group`.
pub(super) fn is_of_group(key: &[u8], group: &str) -> bool {
    key.strip_prefix(group.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
}

/// Which records a reader sees.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Isolation {
    Committed,
    /// Also records of open and of aborted transactions.
    Everything,
}

impl Isolation {
    /// Its name as a property.
    pub(super) fn level(self) -> &'static str {
        match self {
            Self::Committed => "read_committed",
            Self::Everything => "read_uncommitted",
        }
    }
}

/// Settings of a reader that asks where a partition ends: a broker that has nothing more answers at once.
pub(super) fn settings(cluster: &Cluster, isolation: Isolation) -> Settings {
    let mut settings = cluster.consumer(READER);
    settings.set("enable.partition.eof", "true");
    settings.set("auto.offset.reset", "earliest");
    settings.set("isolation.level", isolation.level());
    settings.set("fetch.wait.max.ms", "1");
    // Nobody reads statistics of this client.
    settings.set("statistics.interval.ms", "0");
    settings
}

/// The ends of partitions. To a reader of committed records a partition ends at its first open transaction.
pub(super) fn ends(
    cluster: &Cluster,
    reader: &Asking,
    topic: &str,
    partitions: &[i32],
) -> Result<BTreeMap<i32, i64>, KafkaFailure> {
    let end = |&partition: &i32| {
        let (_, end) =
            reader.fetch_watermarks(topic, partition, ASKING).map_err(|e| cluster.failure_of(WHAT, right(topic), e))?;
        Ok((partition, end))
    };
    partitions.iter().map(end).collect()
}

fn right(topic: &str) -> String {
    format!("read topic {topic} (Read)")
}

/// Waits until all transactions before `ends` are decided, and tells now and then that one is not. False where `is_over` ended the wait.
pub(super) fn wait_until_decided(
    cluster: &Cluster,
    topic: &str,
    ends: &BTreeMap<i32, i64>,
    is_over: impl Fn() -> bool,
    mut undecided: impl FnMut() -> Result<(), KafkaFailure>,
) -> Result<bool, KafkaFailure> {
    let watcher = settings(cluster, Isolation::Committed).asking(WHAT)?;
    let mut told = Instant::now();
    for (&partition, &end) in ends {
        while self::ends(cluster, &watcher, topic, &[partition])?.get(&partition).is_none_or(|decided| *decided < end) {
            if is_over() {
                return Ok(false);
            }
            if told.elapsed() >= UNDECIDED {
                undecided()?;
                told = Instant::now();
            }
            std::thread::sleep(INTERVAL);
        }
    }
    Ok(true)
}

/// Shows every record behind the first open transaction of the changelog partitions of some source partitions, decided or not. False where
/// `is_over` ended it.
///
/// # Errors
/// When the brokers do not answer, or refuse.
pub fn read_undecided(
    cluster: &Cluster,
    topic: &str,
    source_partitions: &BTreeSet<i32>,
    is_over: &dyn Fn() -> bool,
    visit: &mut dyn FnMut(Raw<'_>),
) -> Result<bool, KafkaFailure> {
    let partitions: Vec<i32> = source_partitions.iter().map(|&partition| partition_of(partition)).collect();
    let committed = settings(cluster, Isolation::Committed).asking(WHAT)?;
    let decided = ends(cluster, &committed, topic, &partitions)?;
    let reader = settings(cluster, Isolation::Everything).asking(WHAT)?;
    assign(cluster, &reader, topic, decided.into_iter().map(|(partition, end)| (partition, Offset::Offset(end))))?;
    walk(cluster, &reader, partitions.len(), is_over, |message| {
        if let Some(key) = message.key() {
            visit((key, message.payload()));
        }
    })
}

/// A reader at `from` of each partition.
pub(super) fn assign(
    cluster: &Cluster,
    reader: &Asking,
    topic: &str,
    from: impl Iterator<Item = (i32, Offset)>,
) -> Result<(), KafkaFailure> {
    let failed = |e| cluster.failure(WHAT, e);
    let mut list = TopicPartitionList::new();
    for (partition, offset) in from {
        list.add_partition_offset(topic, partition, offset).map_err(failed)?;
    }
    reader.assign(&list).map_err(failed)
}

/// Shows every record from the beginning of `partitions` to their ends, as `isolation` shows them. False where `is_over` ended it.
pub(super) fn read_all(
    cluster: &Cluster,
    topic: &str,
    partitions: &[i32],
    isolation: Isolation,
    is_over: impl Fn() -> bool,
    visit: impl FnMut(&BorrowedMessage<'_>),
) -> Result<bool, KafkaFailure> {
    let reader = settings(cluster, isolation).asking(WHAT)?;
    assign(cluster, &reader, topic, partitions.iter().map(|&partition| (partition, Offset::Beginning)))?;
    walk(cluster, &reader, partitions.len(), is_over, visit)
}

/// Shows every record up to the ends of the assigned partitions, as the reader sees them. False where `is_over` ended it.
pub(super) fn walk(
    cluster: &Cluster,
    reader: &Asking,
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
                // Asking costs more than reading one record.
                if !visited.is_multiple_of(1024) {
                    continue;
                }
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                ended.insert(partition);
                continue;
            }
            Some(Err(error)) if is_final_without_group(&error) => {
                return Err(cluster.failure_of(WHAT, "read the topic of the changelog (Read)", error));
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

/// One record of the changelog: its key, and its value; none where an entry is removed.
pub type Raw<'a> = (&'a [u8], Option<&'a [u8]>);

/// Shows the committed records of the changelog partitions of some source partitions, in order, up to where they ended when this was
/// called. False where `is_over` ended it. `undecided` is told now and then of transactions that are still open there.
///
/// # Errors
/// When the brokers do not answer, or refuse: [`KafkaFailure::is_usage`] tells which.
pub fn read_state(
    cluster: &Cluster,
    topic: &str,
    source_partitions: &BTreeSet<i32>,
    is_over: &dyn Fn() -> bool,
    undecided: &mut dyn FnMut() -> Result<(), KafkaFailure>,
    visit: &mut dyn FnMut(Raw<'_>),
) -> Result<bool, KafkaFailure> {
    let partitions: Vec<i32> = source_partitions.iter().map(|&partition| partition_of(partition)).collect();
    let everything = settings(cluster, Isolation::Everything).asking(WHAT)?;
    let ends = ends(cluster, &everything, topic, &partitions)?;
    if !wait_until_decided(cluster, topic, &ends, is_over, undecided)? {
        return Ok(false);
    }
    // A new reader: one that was there before may have met an earlier end.
    read_all(cluster, topic, &partitions, Isolation::Committed, is_over, |message| {
        if let Some(key) = message.key() {
            visit((key, message.payload()));
        }
    })
}
