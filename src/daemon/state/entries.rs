//! Entries of the changelog: the state of a source partition.
//!
//! The name is the keyed digest of partition and key; the value is sealed, or absent if removed. Source partitions of
//! equal number share a changelog partition.

use super::state_keys::StateKeys;
use crate::daemon::state::records::StoredRow;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use throng_core::ledger::supporters::TenureRecord;
use throng_core::series::{
    CohortState, OpenBucket, PartitionContributions, SeriesChanges, SeriesState, SharedSeriesState, SubjectState,
};
use throng_core::stream::input_batch::InputPartition;
use throng_core::stream::release_sink::ChangelogRecord;
use throng_core::values::digest::{DigestKey, KeyedDigest};
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::sealer::Sealer;

const ENTRY_NAME_BYTES: usize = 16;

/// Entry of the changelog; larger variants are boxed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ChangelogEntry {
    /// Progress of the partition.
    Progress(Box<PartitionProgress>),
    /// Key of a group and a subject, and the end of its window.
    Said(u128, i64),
    /// Tenure of a subject.
    Person(u64, TenureRecord),
    /// Key of a group and a subject; classes with the last support.
    Classes(u128, Vec<(u128, i64)>),
    /// Waiting record.
    Waiting(Box<StoredRow>),
    /// State shared by all series.
    SeriesHead(Box<SharedSeriesState>),
    /// Subject of the series, by digest.
    SeriesPerson(u64, Box<SubjectState>),
    /// Open buckets of a subject.
    SeriesOpen(u64, Vec<OpenBucket>),
    /// Cohort, by number.
    SeriesCohort(u32, Box<CohortState>),
}

/// Progress of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionProgress {
    /// Id of the last state of the partition, which alone may repeat its batch.
    pub author: String,
    /// Number of the author's last batch.
    pub sequence: u64,
    /// Next offset.
    pub next: i64,
    /// Binding of the state.
    pub binding: StateBinding,
}

/// Keyed digests of stream, sink and groups; 0 if unbound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateBinding {
    /// Schema and source.
    pub stream: u128,
    /// Destination of the batches.
    pub sink: u128,
    /// Attribute groups.
    pub groups: u128,
}

impl StateBinding {
    /// Returns this binding, completed with the parts that only `other` has.
    #[must_use]
    pub fn completed_with(self, other: &Self) -> Self {
        let either = |a: u128, b: u128| if a == 0 { b } else { a };
        Self {
            stream: either(self.stream, other.stream),
            sink: either(self.sink, other.sink),
            groups: either(self.groups, other.groups),
        }
    }

    /// Returns the first part bound differently in `other`.
    #[must_use]
    pub fn conflict(&self, other: &Self) -> Option<&'static str> {
        let differ = |a: u128, b: u128| a != 0 && b != 0 && a != b;
        if differ(self.stream, other.stream) {
            Some("another stream: the record schema, a hierarchy or the source is not the one it was created with")
        } else if differ(self.sink, other.sink) {
            Some("another sink: the consumers of this sink have not received its releases")
        } else if differ(self.groups, other.groups) {
            Some("other groups: its release log refers to their attributes")
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
    /// Returns the key of a waiting record.
    #[must_use]
    pub fn waiting(at: RecordPosition) -> Self {
        Self::Waiting(at.topic, at.partition, at.offset, at.element)
    }
}

impl ChangelogEntry {
    /// Returns the key.
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

/// Effect of an erasure on an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum ErasedEntry {
    /// Removed entry.
    Deleted(EntryKey),
    /// New value.
    Rewritten(Box<ChangelogEntry>),
}

/// Returns the series entries set and removed by a batch.
#[must_use]
pub fn series_entries(changes: &SeriesChanges) -> (Vec<ChangelogEntry>, Vec<EntryKey>) {
    let mut entries = vec![ChangelogEntry::SeriesHead(Box::new(changes.head.clone()))];
    let mut removed = Vec::new();
    entries.extend(
        changes.people.iter().map(|(subject, person)| ChangelogEntry::SeriesPerson(*subject, Box::new(person.clone()))),
    );
    for (subject, buckets) in &changes.open {
        if buckets.is_empty() {
            removed.push(EntryKey::SeriesOpen(*subject));
        } else {
            entries.push(ChangelogEntry::SeriesOpen(*subject, buckets.clone()));
        }
    }
    entries.extend(
        changes.cohorts.iter().map(|(number, cohort)| ChangelogEntry::SeriesCohort(*number, Box::new(cohort.clone()))),
    );
    (entries, removed)
}

/// Codec for entries of one group and secret.
#[derive(Clone)]
pub struct EntryCodec {
    names: KeyedDigest,
    sealer: Sealer,
    /// Two groups may share a topic.
    prefix: Vec<u8>,
}

/// Error of an entry with another secret or version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an entry of the changelog cannot be read")]
pub struct UnreadableEntry;

impl EntryCodec {
    /// Creates a codec for entries of `group` under `keys`.
    #[must_use]
    pub fn new(keys: &StateKeys, group: &str) -> Self {
        let names = KeyedDigest::new(&DigestKey(keys.classes), "throng changelog");
        let prefix = [group.as_bytes(), &[0]].concat();
        Self { names, sealer: keys.sealer(), prefix }
    }

    fn key(&self, place: InputPartition, key: EntryKey) -> Vec<u8> {
        let text = postcard::to_stdvec(&(place, key)).expect("plain values always serialize");
        [&self.prefix[..], &self.names.digest(&text).to_be_bytes()].concat()
    }

    /// Returns the record that sets an entry.
    #[must_use]
    pub fn set(&self, place: InputPartition, entry: &ChangelogEntry) -> ChangelogRecord {
        let key = self.key(place, entry.key());
        let plain = postcard::to_stdvec(&(place, entry)).expect("plain values always serialize");
        let value = Some(self.sealer.seal(&key, &plain));
        ChangelogRecord { source_partition: place.1, key, value }
    }

    /// Returns the record that removes an entry.
    #[must_use]
    pub fn remove(&self, place: InputPartition, key: EntryKey) -> ChangelogRecord {
        ChangelogRecord { source_partition: place.1, key: self.key(place, key), value: None }
    }

    /// Seals contributions to the series of `identity`.
    #[must_use]
    pub fn seal_contributions(&self, identity: &str, contributions: &PartitionContributions) -> Vec<u8> {
        let plain = postcard::to_stdvec(&(identity, contributions)).expect("plain values always serialize");
        self.sealer.seal(&self.contributions_seal_key(), &plain)
    }

    /// Opens sealed contributions; also returns their identity.
    ///
    /// # Errors
    /// If the secret or the version differs.
    pub fn open_contributions(&self, sealed: &[u8]) -> Result<(String, PartitionContributions), UnreadableEntry> {
        let plain = self.sealer.open(&self.contributions_seal_key(), sealed).ok_or(UnreadableEntry)?;
        postcard::from_bytes(&plain).map_err(|_| UnreadableEntry)
    }

    fn contributions_seal_key(&self) -> Vec<u8> {
        [b"contributions 1 ", &self.prefix[..]].concat()
    }

    /// `None` for another group.
    fn name<'a>(&self, key: &'a [u8]) -> Option<&'a [u8; ENTRY_NAME_BYTES]> {
        key.strip_prefix(&self.prefix[..])?.try_into().ok()
    }

    /// Returns the entry of a record of this group.
    #[must_use]
    pub fn entry_of(&self, (key, value): (&[u8], Option<&[u8]>)) -> Option<(InputPartition, ChangelogEntry)> {
        self.name(key)?;
        self.open(key, value?).ok()
    }

    fn open(&self, key: &[u8], value: &[u8]) -> Result<(InputPartition, ChangelogEntry), UnreadableEntry> {
        let plain = self.sealer.open(key, value).ok_or(UnreadableEntry)?;
        postcard::from_bytes(&plain).map_err(|_| UnreadableEntry)
    }
}

/// Collector of entries, from records in changelog order.
pub struct EntryReader {
    codec: EntryCodec,
    found: HashMap<[u8; ENTRY_NAME_BYTES], (InputPartition, ChangelogEntry)>,
    unreadable: HashSet<[u8; ENTRY_NAME_BYTES]>,
}

impl EntryReader {
    /// Creates a reader without entries.
    #[must_use]
    pub fn new(codec: EntryCodec) -> Self {
        Self { codec, found: HashMap::new(), unreadable: HashSet::new() }
    }

    /// Adds the next record; ignores other groups.
    pub fn add_record(&mut self, (key, value): (&[u8], Option<&[u8]>)) {
        let Some(name) = self.codec.name(key) else { return };
        self.unreadable.remove(name);
        match value.map(|value| self.codec.open(key, value)) {
            None => drop(self.found.remove(name)),
            Some(Ok(entry)) => drop(self.found.insert(*name, entry)),
            Some(Err(UnreadableEntry)) => drop(self.unreadable.insert(*name)),
        }
    }

    /// Returns the entries of wanted partitions.
    ///
    /// # Errors
    /// If any entry was unreadable.
    pub fn into_restored(self, wanted: impl Fn(InputPartition) -> bool) -> Result<RestoredPartitions, UnreadableEntry> {
        if !self.unreadable.is_empty() {
            return Err(UnreadableEntry);
        }
        let mut restored =
            RestoredPartitions { entries_read: self.found.len() as u64, ..RestoredPartitions::default() };
        for (place, entry) in self.found.into_values().filter(|(place, _)| wanted(*place)) {
            restored.add(place, entry);
        }
        // A batch, also a repeated one, processes records in this order.
        restored.waiting.sort_unstable_by_key(StoredRow::processing_order);
        Ok(restored)
    }
}

/// Restored state of some partitions.
#[derive(Debug, Default)]
pub struct RestoredPartitions {
    /// Progress of the partitions that have been processed.
    pub progress: BTreeMap<InputPartition, PartitionProgress>,
    /// Entries of the release log.
    pub release_entries: Vec<(u128, i64)>,
    /// Tenure of subjects.
    pub tenure_records: Vec<(u64, TenureRecord)>,
    /// Classes that subjects support.
    pub restored_classes: Vec<(u128, u128, i64)>,
    /// Waiting records in processing order.
    pub waiting: Vec<StoredRow>,
    /// State of the series, if restored here.
    pub series: Option<SeriesState>,
    /// Number of entries read, in all partitions.
    pub entries_read: u64,
    /// Offsets accepted by the operator although the progress differs.
    pub accepted_offsets: BTreeMap<InputPartition, i64>,
}

impl RestoredPartitions {
    fn add(&mut self, place: InputPartition, entry: ChangelogEntry) {
        let mut series = |change: SeriesChanges| {
            let state = self.series.get_or_insert_default();
            let head = std::mem::take(&mut state.head);
            state.apply(change);
            state.head = head;
        };
        match entry {
            ChangelogEntry::Progress(progress) => drop(self.progress.insert(place, *progress)),
            ChangelogEntry::Said(key, until_ms) => self.release_entries.push((key, until_ms)),
            ChangelogEntry::Person(subject, person) => self.tenure_records.push((subject, person)),
            ChangelogEntry::Classes(key, classes) => {
                self.restored_classes.extend(classes.into_iter().map(|(class, time_ms)| (key, class, time_ms)));
            }
            ChangelogEntry::Waiting(row) => self.waiting.push(*row),
            ChangelogEntry::SeriesHead(head) => self.series.get_or_insert_default().head = *head,
            ChangelogEntry::SeriesPerson(subject, person) => {
                series(SeriesChanges { people: vec![(subject, *person)], ..SeriesChanges::default() });
            }
            ChangelogEntry::SeriesOpen(subject, buckets) => {
                series(SeriesChanges { open: vec![(subject, buckets)], ..SeriesChanges::default() });
            }
            ChangelogEntry::SeriesCohort(number, cohort) => {
                series(SeriesChanges { cohorts: vec![(number, *cohort)], ..SeriesChanges::default() });
            }
        }
    }
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
