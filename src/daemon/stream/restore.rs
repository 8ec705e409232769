//! State of partitions that have come, read from the changelog on a thread of its own while notices are still heard.

use super::to_kafka::transactional_id;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::entries::{Entry, EntryCodec, EntryReader, Restored};
use crate::faults;
use crate::io::input::Place;
use crate::io::kafka::changelog;
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::{fence, offsets};
use crossbeam_channel::{Receiver, TryRecvError, bounded};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time for one question to the brokers.
const ASKING: Duration = Duration::from_secs(10);

/// Time for one that an open transaction may delay, until it is looked for.
const SOON: Duration = Duration::from_secs(3);

/// Time between two attempts, and between two log lines about them.
const PAUSE: Duration = Duration::from_millis(500);
const SAYING: Duration = Duration::from_secs(30);

/// Time between two attempts where the operator must change something.
const MENDING: Duration = Duration::from_secs(5);

/// Where the state of partitions is read from.
#[derive(Clone)]
pub struct Changelog {
    /// The cluster of the source, with the group's offsets.
    pub source: Cluster,
    /// The group.
    pub group: String,
    /// Topics of the source, by number.
    pub topics: Vec<String>,
    /// The cluster of the changelog.
    pub cluster: Cluster,
    /// Its topic.
    pub topic: String,
    /// Reads its entries.
    pub codec: EntryCodec,
    /// Our own id, as the author of progress.
    pub own: String,
    /// Whether a changelog that ends before the group's offsets is refused.
    pub refuses_short: bool,
    /// Whether partitions go on at the group's offsets, whatever the changelog knows.
    pub accepts: bool,
}

/// Why the state of partitions is not taken over.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The changelog cannot be read.
    #[error(transparent)]
    Kafka(#[from] KafkaFailure),
    /// It must not be used.
    #[error(transparent)]
    State(#[from] StateError),
}

/// State of some partitions that is being read.
struct Running {
    places: BTreeSet<Place>,
    is_over: Arc<AtomicBool>,
    done: Receiver<Result<Restored, RestoreError>>,
    /// When it began, and when the log was told of it last.
    since: Instant,
    said: Instant,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// Restores partitions as they come.
pub struct Restore {
    changelog: Changelog,
    restored: BTreeSet<Place>,
    running: Option<Running>,
}

impl Restore {
    /// Nothing is restored yet.
    #[must_use]
    pub fn new(changelog: Changelog) -> Self {
        Self { changelog, restored: BTreeSet::new(), running: None }
    }

    /// Returns true if the state of a partition is restored.
    #[must_use]
    pub fn has(&self, place: Place) -> bool {
        self.restored.contains(&place)
    }

    /// Whether the state of all `assigned` partitions is known.
    #[must_use]
    pub fn has_all(&self, assigned: &BTreeSet<Place>) -> bool {
        assigned.is_subset(&self.restored)
    }

    /// These partitions have gone, or have come anew: what is known of them counts no more, and a restore under way with them ends.
    pub fn forget(&mut self, places: &[Place]) {
        self.restored.retain(|place| !places.contains(place));
        self.running.take_if(|running| places.iter().any(|place| running.places.contains(place)));
    }

    /// Begins to read the state of assigned partitions that is not known, or asks whether it has been read: then it is the caller's to
    /// take over, at once. Where `waits`, that is left for a later turn.
    ///
    /// # Errors
    /// When the changelog cannot be read, or must not be used.
    pub fn turn(
        &mut self,
        assigned: &BTreeSet<Place>,
        waits: bool,
    ) -> Result<Option<(Restored, BTreeSet<Place>)>, RestoreError> {
        let wanted: BTreeSet<Place> = assigned.difference(&self.restored).copied().collect();
        self.running.take_if(|running| running.places != wanted);
        if wanted.is_empty() {
            return Ok(None);
        }
        let running = self.running.get_or_insert_with(|| start(&self.changelog, wanted));
        match if waits { Err(TryRecvError::Empty) } else { running.done.try_recv() } {
            Err(TryRecvError::Empty) => {
                if running.said.elapsed() >= SAYING {
                    running.said = Instant::now();
                    let (partitions, seconds) = (running.places.len(), running.since.elapsed().as_secs());
                    tracing::warn!(
                        partitions,
                        seconds,
                        "the state of partitions is still being read (is a transaction open there, or has one no leader?); none of their records is processed before"
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
                tracing::info!(partitions = places.len(), seconds, "the state of partitions has been read");
                self.restored.extend(places.iter().copied());
                Ok(Some((restored, places)))
            }
        }
    }
}

fn start(changelog: &Changelog, places: BTreeSet<Place>) -> Running {
    tracing::info!(partitions = places.len(), "reading the state of partitions");
    let (sender, done) = bounded(1);
    let is_over = Arc::new(AtomicBool::new(false));
    let (changelog, wanted, over) = (changelog.clone(), places.clone(), Arc::clone(&is_over));
    std::thread::spawn(move || {
        if let Some(read) = changelog.read_patiently(&wanted, &over)
            && sender.send(read).is_err()
        {
            tracing::debug!("nobody waits for the state of these partitions any more");
        }
    });
    let now = Instant::now();
    Running { places, is_over, done, since: now, said: now }
}

impl Changelog {
    /// Reads the state of `places`, and begins again while the brokers do not answer. Nothing where it was told to end.
    fn read_patiently(&self, places: &BTreeSet<Place>, is_over: &AtomicBool) -> Option<Result<Restored, RestoreError>> {
        let mut said = Instant::now();
        let until =
            faults::number("restore-delayed").map_or(said, |ms| said + Duration::from_millis(ms.unsigned_abs()));
        while Instant::now() < until && !is_over.load(Ordering::Acquire) {
            std::thread::sleep(PAUSE);
        }
        while !is_over.load(Ordering::Acquire) {
            match self.read(places, is_over) {
                Ok(read) => return read.map(Ok),
                Err(RestoreError::Kafka(failure)) if !failure.is_denial() => {
                    if failure.is_usage() || said.elapsed() >= SAYING {
                        said = Instant::now();
                        tracing::warn!(%failure, "the state of assigned partitions cannot be read yet; none of their records is processed before");
                    }
                    std::thread::sleep(if failure.is_usage() { MENDING } else { PAUSE });
                }
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    /// Reads the state of `places`; none where it was told to end.
    fn read(&self, places: &BTreeSet<Place>, is_over: &AtomicBool) -> Result<Option<Restored>, RestoreError> {
        let partitions: BTreeSet<i32> = places.iter().map(|(_, partition)| *partition).collect();
        changelog::expect_partitions(&self.cluster, &self.topic, partitions.last().map_or(0, |last| last + 1), ASKING)?;
        // Before the end of the changelog is asked for: a member that is expelled meanwhile would find later offsets.
        let over = || is_over.load(Ordering::Acquire);
        // An offset that a transaction has sent is undecided as long as that is open.
        let offsets = match self.offsets(places, SOON) {
            Err(failure) if !failure.is_denial() => {
                self.end_what_others_left_open(places, &partitions, &over)?;
                self.offsets(places, ASKING)?
            }
            offsets => offsets?,
        };
        let mut reader = EntryReader::new(self.codec.clone());
        let mut undecided = || self.end_what_others_left_open(places, &partitions, &over);
        let mut take = |record: changelog::Raw<'_>| reader.take(record);
        if !changelog::read_state(&self.cluster, &self.topic, &partitions, &over, &mut undecided, &mut take)? {
            return Ok(None);
        }
        let mut restored = reader
            .finish(|place| places.contains(&place))
            .map_err(|_| StateError::OtherChangelog { topic: self.topic.clone(), group: self.group.clone() })?;
        for (place, &offset) in &offsets {
            let known = restored.progress.get(place).map_or(0, |progress| progress.next);
            if self.accepts && offset != known {
                restored.accepted.insert(*place, offset);
            } else if self.refuses_short && offset > known {
                let (topic, partition) = (self.topic_of(*place).to_owned(), place.1);
                return Err(StateError::ShortChangelog { topic, partition, offset, known }.into());
            }
        }
        Ok(Some(restored))
    }

    /// Ends open transactions that process records of `places`. Whoever has begun one has lost the partition since: it was killed, or the group
    /// has expelled it and refuses its offsets. Entries of our partitions are behind it until it ends, or until its time is over.
    fn end_what_others_left_open(
        &self,
        places: &BTreeSet<Place>,
        partitions: &BTreeSet<i32>,
        over: &dyn Fn() -> bool,
    ) -> Result<(), KafkaFailure> {
        let mut authors = BTreeSet::new();
        changelog::read_undecided(&self.cluster, &self.topic, partitions, over, &mut |record| {
            if let Some((place, Entry::Progress(progress))) = self.codec.entry_of(record)
                && places.contains(&place)
                && progress.author != self.own
            {
                authors.insert(progress.author);
            }
        })?;
        for author in authors {
            let id = transactional_id(&self.group, &author);
            match fence::end_transaction_of(&self.cluster, &id, over) {
                Ok(true) => {
                    tracing::warn!(instance = %author, "ended a transaction that an instance has left open which had our partitions before");
                }
                Ok(false) => {}
                // It ends when its time is over.
                Err(failure) => {
                    tracing::warn!(instance = %author, %failure, "a transaction is open in the changelog, and cannot be ended");
                }
            }
        }
        Ok(())
    }

    fn topic_of(&self, place: Place) -> &str {
        self.topics.get(usize::from(place.0)).map_or("", String::as_str)
    }

    /// The offsets that the group has committed.
    fn offsets(&self, places: &BTreeSet<Place>, patience: Duration) -> Result<BTreeMap<Place, i64>, KafkaFailure> {
        let named: Vec<(&str, i32)> = places.iter().map(|place| (self.topic_of(*place), place.1)).collect();
        let committed = offsets::committed(&self.source, &self.group, &named, patience)?;
        Ok(places.iter().zip(committed).filter_map(|(place, offset)| Some((*place, offset?))).collect())
    }
}
