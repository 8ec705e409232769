//! Entries of the changelog: the state of a source partition that must outlive every instance.
//!
//! An entry has a name, the keyed digest of its partition and key, and a sealed value. The last value of a name counts; a removed
//! entry has none. Entries of several topics with the same partition number lie together, so each value names its partition.

use super::seal::Keys;
use crate::anonymity::series::{Cohort, Contributions, Head, OpenBucket, Participant, SeriesChanges, SeriesState};
use crate::daemon::state::records::KeptRow;
use crate::io::input::Place;
use crate::release::sink::ChangelogRecord;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use throng_core::ledger::supporters::Person;
use throng_core::values::digest::{DigestKey, Keyed};
use throng_core::values::raw::Coordinate;
use throng_core::values::sealer::Sealer;

/// Bytes of a name.
const NAME: usize = 16;

/// One entry. Millions are read when a partition comes, most of them lines of the release log: larger ones are boxed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    /// How far the partition has been processed.
    Progress(Box<PlaceProgress>),
    /// A line of the release log: the key of a group and a subject, and the end of its window.
    Said(u128, i64),
    /// Tenure of a subject.
    Person(u64, Person),
    /// Classes that a subject supports: the key of a group and the subject, and each class with the time of its last support.
    Classes(u128, Vec<(u128, i64)>),
    /// A record that waits.
    Waiting(Box<KeptRow>),
    /// What all series share.
    SeriesHead(Box<Head>),
    /// A person of the series, by subject digest.
    SeriesPerson(u64, Box<Participant>),
    /// Open buckets of a person.
    SeriesOpen(u64, Vec<OpenBucket>),
    /// A cohort, by number.
    SeriesCohort(u32, Box<Cohort>),
}

/// How far a partition has been processed, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceProgress {
    /// Id of the state that has processed it last. That state alone may repeat a batch with its records.
    pub author: String,
    /// Number of the last batch, by its author's count.
    pub sequence: u64,
    /// The next offset.
    pub next: i64,
    /// What the state belongs to.
    pub binding: Binding,
}

/// What a state belongs to, as keyed digests; 0 where it is not bound yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Schema and source.
    pub stream: u128,
    /// Where its batches leave to.
    pub sink: u128,
    /// Groups of attributes.
    pub groups: u128,
}

impl Binding {
    /// The same with what only `other` is bound to.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        let either = |a: u128, b: u128| if a == 0 { b } else { a };
        Self {
            stream: either(self.stream, other.stream),
            sink: either(self.sink, other.sink),
            groups: either(self.groups, other.groups),
        }
    }

    /// What `self` and `other` differ in; nothing where one of them is not bound.
    #[must_use]
    pub fn conflict(&self, other: &Self) -> Option<&'static str> {
        let differ = |a: u128, b: u128| a != 0 && b != 0 && a != b;
        if differ(self.stream, other.stream) {
            Some("another stream: the record schema, a hierarchy or the source is not the one it was made with")
        } else if differ(self.sink, other.sink) {
            Some("another sink: what its readers have seen is no crowd for the readers of this one")
        } else if differ(self.groups, other.groups) {
            Some("other groups: what was said in those is known under their attributes")
        } else {
            None
        }
    }
}

/// Key of an entry in its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the variants are those of `Entry`")]
pub enum EntryKey {
    Progress,
    Said(u128),
    Person(u64),
    Classes(u128),
    /// Topic, partition, offset and element of the record.
    Waiting(u16, i32, i64, u32),
    SeriesHead,
    SeriesPerson(u64),
    SeriesOpen(u64),
    SeriesCohort(u32),
}

impl EntryKey {
    /// The key of a record that waits.
    #[must_use]
    pub fn waiting(at: Coordinate) -> Self {
        Self::Waiting(at.topic, at.partition, at.offset, at.element)
    }
}

impl Entry {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> EntryKey {
        match self {
            Self::Progress(_) => EntryKey::Progress,
            Self::Said(key, _) => EntryKey::Said(*key),
            Self::Person(subject, _) => EntryKey::Person(*subject),
            Self::Classes(key, _) => EntryKey::Classes(*key),
            Self::Waiting(row) => EntryKey::waiting(row.coordinate),
            Self::SeriesHead(_) => EntryKey::SeriesHead,
            Self::SeriesPerson(subject, _) => EntryKey::SeriesPerson(*subject),
            Self::SeriesOpen(subject, _) => EntryKey::SeriesOpen(*subject),
            Self::SeriesCohort(number, _) => EntryKey::SeriesCohort(*number),
        }
    }
}

/// What becomes of an entry about an erased person.
#[derive(Clone, Debug, PartialEq)]
pub enum Erased {
    /// It is removed.
    Gone(EntryKey),
    /// It is about others as well, and has this value now.
    Left(Box<Entry>),
}

/// The entries of the series that a batch changes, and those that it removes.
#[must_use]
pub fn series_entries(changes: &SeriesChanges) -> (Vec<Entry>, Vec<EntryKey>) {
    let mut entries = vec![Entry::SeriesHead(Box::new(changes.head.clone()))];
    let mut removed = Vec::new();
    entries
        .extend(changes.people.iter().map(|(subject, person)| Entry::SeriesPerson(*subject, Box::new(person.clone()))));
    for (subject, buckets) in &changes.open {
        if buckets.is_empty() {
            removed.push(EntryKey::SeriesOpen(*subject));
        } else {
            entries.push(Entry::SeriesOpen(*subject, buckets.clone()));
        }
    }
    entries
        .extend(changes.cohorts.iter().map(|(number, cohort)| Entry::SeriesCohort(*number, Box::new(cohort.clone()))));
    (entries, removed)
}

/// Writes and reads entries of one group under one secret.
#[derive(Clone)]
pub struct EntryCodec {
    names: Keyed,
    sealer: Sealer,
    /// The consumer group and a zero byte: two groups may share a topic.
    prefix: Vec<u8>,
}

/// An entry that this secret does not open, or that this version does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an entry of the changelog cannot be read")]
pub struct UnreadableEntry;

impl EntryCodec {
    /// Entries of `group` under the keys of its secret.
    #[must_use]
    pub fn new(keys: &Keys, group: &str) -> Self {
        let names = Keyed::new(&DigestKey(keys.classes), "throng changelog");
        let prefix = [group.as_bytes(), &[0]].concat();
        Self { names, sealer: keys.sealer(), prefix }
    }

    fn key(&self, place: Place, key: EntryKey) -> Vec<u8> {
        let text = postcard::to_stdvec(&(place, key)).expect("plain values always serialize");
        [&self.prefix[..], &self.names.digest(&text).to_be_bytes()].concat()
    }

    /// The record that sets an entry.
    #[must_use]
    pub fn set(&self, place: Place, entry: &Entry) -> ChangelogRecord {
        let key = self.key(place, entry.key());
        let plain = postcard::to_stdvec(&(place, entry)).expect("plain values always serialize");
        let value = Some(self.sealer.seal(&key, &plain));
        ChangelogRecord { source_partition: place.1, key, value }
    }

    /// The record that removes an entry.
    #[must_use]
    pub fn remove(&self, place: Place, key: EntryKey) -> ChangelogRecord {
        ChangelogRecord { source_partition: place.1, key: self.key(place, key), value: None }
    }

    /// Contributions to series of `identity`, sealed.
    #[must_use]
    pub fn seal_contributions(&self, identity: &str, contributions: &Contributions) -> Vec<u8> {
        let plain = postcard::to_stdvec(&(identity, contributions)).expect("plain values always serialize");
        self.sealer.seal(&self.place_of_contributions(), &plain)
    }

    /// Contributions, and the series that they belong to.
    ///
    /// # Errors
    /// When another secret or another version has sealed them.
    pub fn open_contributions(&self, sealed: &[u8]) -> Result<(String, Contributions), UnreadableEntry> {
        let plain = self.sealer.open(&self.place_of_contributions(), sealed).ok_or(UnreadableEntry)?;
        postcard::from_bytes(&plain).map_err(|_| UnreadableEntry)
    }

    fn place_of_contributions(&self) -> Vec<u8> {
        [b"contributions 1 ", &self.prefix[..]].concat()
    }

    /// The name in a record's key; none where it is of another group.
    fn name<'a>(&self, key: &'a [u8]) -> Option<&'a [u8; NAME]> {
        key.strip_prefix(&self.prefix[..])?.try_into().ok()
    }

    /// The entry of a record, where it is of this group and has one.
    #[must_use]
    pub fn entry_of(&self, (key, value): (&[u8], Option<&[u8]>)) -> Option<(Place, Entry)> {
        self.name(key)?;
        self.open(key, value?).ok()
    }

    fn open(&self, key: &[u8], value: &[u8]) -> Result<(Place, Entry), UnreadableEntry> {
        let plain = self.sealer.open(key, value).ok_or(UnreadableEntry)?;
        postcard::from_bytes(&plain).map_err(|_| UnreadableEntry)
    }
}

/// Collects the entries of some partitions, record by record in the order of the changelog.
pub struct EntryReader {
    codec: EntryCodec,
    found: HashMap<[u8; NAME], (Place, Entry)>,
    /// Names whose last value could not be read.
    unreadable: HashSet<[u8; NAME]>,
}

impl EntryReader {
    /// Nothing has been read.
    #[must_use]
    pub fn new(codec: EntryCodec) -> Self {
        Self { codec, found: HashMap::new(), unreadable: HashSet::new() }
    }

    /// Takes the next record. Records of other groups are ignored.
    pub fn take(&mut self, (key, value): (&[u8], Option<&[u8]>)) {
        let Some(name) = self.codec.name(key) else { return };
        self.unreadable.remove(name);
        match value.map(|value| self.codec.open(key, value)) {
            None => drop(self.found.remove(name)),
            Some(Ok(entry)) => drop(self.found.insert(*name, entry)),
            Some(Err(UnreadableEntry)) => drop(self.unreadable.insert(*name)),
        }
    }

    /// The entries of `wanted`.
    ///
    /// # Errors
    /// When any entry of the group could not be read: nothing may be concluded from the others then.
    pub fn finish(self, wanted: impl Fn(Place) -> bool) -> Result<Restored, UnreadableEntry> {
        if !self.unreadable.is_empty() {
            return Err(UnreadableEntry);
        }
        let mut restored = Restored { entries: self.found.len() as u64, ..Restored::default() };
        for (place, entry) in self.found.into_values().filter(|(place, _)| wanted(*place)) {
            restored.add(place, entry);
        }
        // In the order in which they came: a batch takes them in this order, also when it is repeated after a restart.
        restored.waiting.sort_unstable_by_key(KeptRow::rank);
        Ok(restored)
    }
}

/// The state of some partitions, as their changelog holds it.
#[derive(Debug, Default)]
pub struct Restored {
    /// By partition; none where nothing has been processed.
    pub progress: BTreeMap<Place, PlaceProgress>,
    /// Lines of the release log.
    pub said: Vec<(u128, i64)>,
    /// Tenure of subjects.
    pub people: Vec<(u64, Person)>,
    /// Classes that subjects support.
    pub classes: Vec<(u128, u128, i64)>,
    /// Records that wait, in the order in which a batch takes them.
    pub waiting: Vec<KeptRow>,
    /// State of the series; none where there is none, or where its partition is not among these.
    pub series: Option<SeriesState>,
    /// Number of entries that were read, those of other partitions included.
    pub entries: u64,
    /// Offsets at which partitions go on although their progress is another one: the operator has accepted it.
    pub accepted: BTreeMap<Place, i64>,
}

impl Restored {
    fn add(&mut self, place: Place, entry: Entry) {
        let mut series = |change: SeriesChanges| {
            let state = self.series.get_or_insert_default();
            let head = std::mem::take(&mut state.head);
            state.apply(change);
            state.head = head;
        };
        match entry {
            Entry::Progress(progress) => drop(self.progress.insert(place, *progress)),
            Entry::Said(key, until_ms) => self.said.push((key, until_ms)),
            Entry::Person(subject, person) => self.people.push((subject, person)),
            Entry::Classes(key, classes) => {
                self.classes.extend(classes.into_iter().map(|(class, time_ms)| (key, class, time_ms)));
            }
            Entry::Waiting(row) => self.waiting.push(*row),
            Entry::SeriesHead(head) => self.series.get_or_insert_default().head = *head,
            Entry::SeriesPerson(subject, person) => {
                series(SeriesChanges { people: vec![(subject, *person)], ..SeriesChanges::default() });
            }
            Entry::SeriesOpen(subject, buckets) => {
                series(SeriesChanges { open: vec![(subject, buckets)], ..SeriesChanges::default() });
            }
            Entry::SeriesCohort(number, cohort) => {
                series(SeriesChanges { cohorts: vec![(number, *cohort)], ..SeriesChanges::default() });
            }
        }
    }
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
