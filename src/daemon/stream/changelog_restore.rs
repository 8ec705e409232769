//! Restore of assigned partitions from the changelog, on a separate thread.

use super::kafka_outputs::transactional_id;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::entries::{ChangelogEntry, EntryCodec, EntryReader, RestoredPartitions};
use crossbeam_channel::{Receiver, TryRecvError, bounded};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::faults;
use throng_core::stream::input_batch::InputPartition;
use throng_kafka::changelog;
use throng_kafka::connection::{KafkaCluster, KafkaFailure};
use throng_kafka::{fence, offsets};

const RESTORE_QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout until the open transactions of previous owners are ended.
const UNDECIDED_QUERY_TIMEOUT: Duration = Duration::from_secs(3);

const RESTORE_RETRY_DELAY: Duration = Duration::from_millis(500);
const RESTORE_LOG_INTERVAL: Duration = Duration::from_secs(30);

const USAGE_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Location of the stored state of partitions.
#[derive(Clone)]
pub struct ChangelogLocation {
    /// Cluster of the source, with the group's offsets.
    pub source: KafkaCluster,
    /// The consumer group.
    pub group: String,
    /// Topics of the source, by number.
    pub topics: Vec<String>,
    /// The cluster of the changelog.
    pub cluster: KafkaCluster,
    /// Topic of the changelog.
    pub topic: String,
    /// Codec of the entries.
    pub codec: EntryCodec,
    /// Id of this instance.
    pub own_id: String,
    /// True to refuse a changelog that ends before the group's offsets.
    pub refuses_short: bool,
    /// True to continue at the group's offsets regardless.
    pub accepts_any_offset: bool,
}

/// Error that prevents the restore of partitions.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The changelog cannot be read.
    #[error(transparent)]
    Kafka(#[from] KafkaFailure),
    /// The changelog must not be used.
    #[error(transparent)]
    State(#[from] StateError),
}

struct RunningRestore {
    places: BTreeSet<InputPartition>,
    is_over: Arc<AtomicBool>,
    done: Receiver<Result<RestoredPartitions, RestoreError>>,
    since: Instant,
    last_restore_log: Instant,
}

impl Drop for RunningRestore {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// Restores partitions when they are assigned.
pub struct PartitionRestore {
    changelog: ChangelogLocation,
    restored: BTreeSet<InputPartition>,
    running: Option<RunningRestore>,
}

impl PartitionRestore {
    /// Creates a restore without restored partitions.
    #[must_use]
    pub fn new(changelog: ChangelogLocation) -> Self {
        Self { changelog, restored: BTreeSet::new(), running: None }
    }

    /// Returns true if the state of a partition is restored.
    #[must_use]
    pub fn is_restored(&self, place: InputPartition) -> bool {
        self.restored.contains(&place)
    }

    /// Returns true if the state of all `assigned` partitions is restored.
    #[must_use]
    pub fn are_all_restored(&self, assigned: &BTreeSet<InputPartition>) -> bool {
        assigned.is_subset(&self.restored)
    }

    /// Discards restored state, and cancels a restore of any of `places`.
    pub fn discard_places(&mut self, places: &[InputPartition]) {
        self.restored.retain(|place| !places.contains(place));
        self.running.take_if(|running| places.iter().any(|place| running.places.contains(place)));
    }

    /// Starts or polls the restore of assigned partitions; polls later if `waits`. The caller must adopt a state
    /// immediately.
    ///
    /// # Errors
    /// If the changelog cannot or must not be used.
    pub fn poll_restore(
        &mut self,
        assigned: &BTreeSet<InputPartition>,
        waits: bool,
    ) -> Result<Option<(RestoredPartitions, BTreeSet<InputPartition>)>, RestoreError> {
        let wanted: BTreeSet<InputPartition> = assigned.difference(&self.restored).copied().collect();
        self.running.take_if(|running| running.places != wanted);
        if wanted.is_empty() {
            return Ok(None);
        }
        let running = self.running.get_or_insert_with(|| start_restore(&self.changelog, wanted));
        match if waits { Err(TryRecvError::Empty) } else { running.done.try_recv() } {
            Err(TryRecvError::Empty) => {
                if running.last_restore_log.elapsed() >= RESTORE_LOG_INTERVAL {
                    running.last_restore_log = Instant::now();
                    let (partitions, seconds) = (running.places.len(), running.since.elapsed().as_secs());
                    tracing::warn!(
                        partitions,
                        seconds,
                        "still reading the state of partitions: their records wait (is a transaction open, or a partition without a leader?)"
                    );
                }
                Ok(None)
            }
            Err(TryRecvError::Disconnected) => Err(KafkaFailure::ReaderPanicked.into()),
            Ok(done) => {
                let places = std::mem::take(&mut running.places);
                let seconds = running.since.elapsed().as_secs_f64();
                self.running = None;
                let restored = done?;
                tracing::info!(partitions = places.len(), seconds, "state of partitions read");
                self.restored.extend(places.iter().copied());
                Ok(Some((restored, places)))
            }
        }
    }
}

fn start_restore(changelog: &ChangelogLocation, places: BTreeSet<InputPartition>) -> RunningRestore {
    tracing::info!(partitions = places.len(), "reading the state of partitions");
    let (sender, done) = bounded(1);
    let is_over = Arc::new(AtomicBool::new(false));
    let (changelog, wanted, over) = (changelog.clone(), places.clone(), Arc::clone(&is_over));
    std::thread::spawn(move || {
        if let Some(read) = changelog.read_with_retries(&wanted, &over)
            && sender.send(read).is_err()
        {
            tracing::debug!("discarding the state of partitions: no longer needed");
        }
    });
    let now = Instant::now();
    RunningRestore { places, is_over, done, since: now, last_restore_log: now }
}

impl ChangelogLocation {
    fn read_with_retries(
        &self,
        places: &BTreeSet<InputPartition>,
        is_over: &AtomicBool,
    ) -> Option<Result<RestoredPartitions, RestoreError>> {
        let mut said = Instant::now();
        let until =
            faults::number("restore-delayed").map_or(said, |ms| said + Duration::from_millis(ms.unsigned_abs()));
        while Instant::now() < until && !is_over.load(Ordering::Acquire) {
            std::thread::sleep(RESTORE_RETRY_DELAY);
        }
        while !is_over.load(Ordering::Acquire) {
            match self.read_once(places, is_over) {
                Ok(read) => return read.map(Ok),
                Err(RestoreError::Kafka(failure)) if !failure.is_denial() => {
                    if failure.is_usage() || said.elapsed() >= RESTORE_LOG_INTERVAL {
                        said = Instant::now();
                        tracing::warn!(%failure, "cannot read the state of assigned partitions yet: their records wait");
                    }
                    std::thread::sleep(if failure.is_usage() { USAGE_RETRY_DELAY } else { RESTORE_RETRY_DELAY });
                }
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    fn read_once(
        &self,
        places: &BTreeSet<InputPartition>,
        is_over: &AtomicBool,
    ) -> Result<Option<RestoredPartitions>, RestoreError> {
        let partitions: BTreeSet<i32> = places.iter().map(|(_, partition)| *partition).collect();
        changelog::expect_partitions(
            &self.cluster,
            &self.topic,
            partitions.last().map_or(0, |last| last + 1),
            RESTORE_QUERY_TIMEOUT,
        )?;
        // A member that is expelled meanwhile would find later offsets.
        let over = || is_over.load(Ordering::Acquire);
        // An offset sent in an open transaction is undecided.
        let offsets = match self.read_group_offsets(places, UNDECIDED_QUERY_TIMEOUT) {
            Err(failure) if !failure.is_denial() => {
                self.end_abandoned_transactions(places, &partitions, &over)?;
                self.read_group_offsets(places, RESTORE_QUERY_TIMEOUT)?
            }
            offsets => offsets?,
        };
        let mut reader = EntryReader::new(self.codec.clone());
        let mut undecided = || self.end_abandoned_transactions(places, &partitions, &over);
        let mut take = |record: changelog::RawChangelogRecord<'_>| reader.add_record(record);
        if !changelog::read_state(&self.cluster, &self.topic, &partitions, &over, &mut undecided, &mut take)? {
            return Ok(None);
        }
        let mut restored = reader
            .into_restored(|place| places.contains(&place))
            .map_err(|_| StateError::OtherChangelog { topic: self.topic.clone(), group: self.group.clone() })?;
        for (place, &offset) in &offsets {
            let known = restored.progress.get(place).map_or(0, |progress| progress.next);
            if self.accepts_any_offset && offset != known {
                restored.accepted_offsets.insert(*place, offset);
            } else if self.refuses_short && offset > known {
                let (topic, partition) = (self.topic_of(*place).to_owned(), place.1);
                return Err(StateError::ShortChangelog { topic, partition, offset, known }.into());
            }
        }
        Ok(Some(restored))
    }

    /// Until these transactions end, our entries are not readable. The group has expelled their producers.
    fn end_abandoned_transactions(
        &self,
        places: &BTreeSet<InputPartition>,
        partitions: &BTreeSet<i32>,
        over: &dyn Fn() -> bool,
    ) -> Result<(), KafkaFailure> {
        let mut authors = BTreeSet::new();
        changelog::read_undecided(&self.cluster, &self.topic, partitions, over, &mut |record| {
            if let Some((place, ChangelogEntry::Progress(progress))) = self.codec.entry_of(record)
                && places.contains(&place)
                && progress.author != self.own_id
            {
                authors.insert(progress.author);
            }
        })?;
        for author in authors {
            let id = transactional_id(&self.group, &author);
            match fence::end_transaction_of(&self.cluster, &id, over) {
                Ok(true) => {
                    tracing::warn!(instance = %author, "ended a transaction that was left open by a previous owner of our partitions");
                }
                Ok(false) => {}
                Err(failure) => {
                    tracing::warn!(instance = %author, %failure, "cannot end a transaction that a previous owner of our partitions left open: it ends at its timeout");
                }
            }
        }
        Ok(())
    }

    fn topic_of(&self, place: InputPartition) -> &str {
        self.topics.get(usize::from(place.0)).map_or("", String::as_str)
    }

    fn read_group_offsets(
        &self,
        places: &BTreeSet<InputPartition>,
        patience: Duration,
    ) -> Result<BTreeMap<InputPartition, i64>, KafkaFailure> {
        let named: Vec<(&str, i32)> = places.iter().map(|place| (self.topic_of(*place), place.1)).collect();
        let committed = offsets::committed(&self.source, &self.group, &named, patience)?;
        Ok(places.iter().zip(committed).filter_map(|(place, offset)| Some((*place, offset?))).collect())
    }
}
