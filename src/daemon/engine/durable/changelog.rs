//! Changelog entries, and the state of assigned and revoked partitions.

use super::live_erasure::erase_from_series;
use crate::daemon::engine::core::Engine;
use crate::daemon::engine::gather::gathered_batch::{BatchInstruction, GatheredBatch};
use crate::daemon::engine::release::series_exchange::IdleSources;
use crate::daemon::engine::release::series_stream::SeriesStream;
use crate::daemon::erasure::erased_keys;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::entries::{
    ChangelogEntry, EntryCodec, EntryKey, ErasedEntry, PartitionProgress, RestoredPartitions, series_entries,
};
use crate::daemon::state::records::{BatchIntent, StoredRow};
use crate::telemetry::{CohortsElsewhere, StateMoved, StateRestored, SubjectsErased};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use throng_core::ledger::ledger_delta::LedgerDelta;
use throng_core::ledger::release_log::release_log_key;
use throng_core::ledger::supporters::supporter_key;
use throng_core::stream::input_batch::InputPartition;
use throng_core::stream::release_sink::{ChangelogRecord, InputPositions};
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::raw_batch::RecordPosition;

/// Time during which assigned partitions are cleared of erased subjects.
const ERASED_RETENTION_MS: i64 = 24 * 3_600_000;

#[derive(Default)]
pub(crate) struct ChangelogBatch {
    pub records: Vec<ChangelogRecord>,
    /// Next offsets, also of partitions with only settled records.
    pub positions: InputPositions,
}

impl Engine {
    pub(crate) fn has_series_state(&self) -> bool {
        self.series_place().is_none_or(|place| self.durable.places.contains(&place))
    }

    fn series_place(&self) -> Option<InputPartition> {
        self.series.as_ref().and_then(SeriesStream::place)
    }

    /// Exchanges series contributions through `place`.
    pub fn exchange_series(&mut self, place: InputPartition, sources: Vec<InputPartition>) {
        if let (Some(series), Some(codec)) = (&mut self.series, &self.durable.log) {
            series.exchange_through(place, sources, codec.clone());
            CohortsElsewhere.emit(&self.telemetry);
        }
    }

    /// Returns partitions that delay buckets, with their offsets.
    #[must_use]
    pub fn partitions_delaying_series(&self) -> BTreeMap<InputPartition, i64> {
        let series = self.series.as_ref().filter(|_| self.has_series_state());
        series.map(SeriesStream::partitions_delaying_buckets).unwrap_or_default()
    }

    /// Returns the offset of received contributions.
    #[must_use]
    pub fn series_position(&self) -> i64 {
        let place = self.series_place();
        place.and_then(|place| self.durable.progress.positions.get(&place)).copied().unwrap_or(0)
    }

    /// Excludes idle partitions from delaying buckets.
    pub fn note_idle(&mut self, idle: IdleSources) {
        if let Some(series) = &mut self.series {
            series.note_idle(idle);
        }
    }

    /// Returns the entry codec; `None` if the source is a file.
    pub fn entry_codec(&self) -> Option<&EntryCodec> {
        self.durable.log.as_ref()
    }

    /// Returns changed entries, removals first: a row that stays held is set again.
    pub(crate) fn changelog_entries(
        &self,
        gathered: &GatheredBatch<'_>,
        intent: &BatchIntent,
        order: &BatchInstruction<'_>,
    ) -> ChangelogBatch {
        let read = gathered.input.ranges.iter().map(|(place, range)| (*place, range.1));
        let mut positions: InputPositions = read.collect();
        let Some(codec) = &self.durable.log else { return ChangelogBatch { records: Vec::new(), positions } };
        let settled = intent.settled.iter().map(|(_, at)| at.topic_partition());
        for place in settled.chain(order.erased.iter().map(|(place, _)| *place)).chain(intent.series_place) {
            if let Some(next) = self.durable.progress.positions.get(&place) {
                positions.entry(place).or_insert(*next);
            }
        }
        let mut records = Vec::new();
        let waits_on: HashSet<_> = intent.held.iter().map(|row| row.coordinate).collect();
        for (_, at) in intent.settled.iter().filter(|(_, at)| !waits_on.contains(at)) {
            records.push(codec.remove(at.topic_partition(), EntryKey::waiting(*at)));
        }
        for (place, change) in &order.erased {
            records.push(match change {
                ErasedEntry::Deleted(key) => codec.remove(*place, *key),
                ErasedEntry::Rewritten(entry) => codec.set(*place, entry),
            });
        }
        for row in &intent.held {
            records.push(codec.set(row.coordinate.topic_partition(), &ChangelogEntry::Waiting(Box::new(row.clone()))));
        }
        if let Some(delta) = &intent.ledger {
            self.add_ledger_entries(codec, delta, &gathered.batch, &mut records);
        }
        if let Some((changes, place)) = intent.series.as_ref().zip(intent.series_place) {
            let (entries, gone) = series_entries(changes);
            records.extend(gone.into_iter().map(|key| codec.remove(place, key)));
            records.extend(entries.iter().map(|entry| codec.set(place, entry)));
        }
        let author = self.durable.store.id();
        for (place, next) in &positions {
            let progress = PartitionProgress {
                author: author.to_owned(),
                sequence: intent.after.sequence,
                next: *next,
                binding: self.durable.binding,
            };
            records.push(codec.set(*place, &ChangelogEntry::Progress(Box::new(progress))));
        }
        ChangelogBatch { records, positions }
    }

    /// Returns held rows to erase, and the number without a released fragment.
    pub(crate) fn erased_rows(&self, order: &BatchInstruction<'_>) -> (HashSet<RecordPosition>, u64) {
        let gone: HashSet<EntryKey> = order
            .erased
            .iter()
            .filter_map(|(_, change)| if let ErasedEntry::Deleted(key) = change { Some(*key) } else { None })
            .filter(|key| matches!(key, EntryKey::Waiting(..)))
            .collect();
        if gone.is_empty() {
            return Default::default();
        }
        let rows = self.held.batch.coordinates.iter().zip(&self.held.waits);
        let erased: Vec<_> = rows.filter(|(at, _)| gone.contains(&EntryKey::waiting(**at))).collect();
        let dropped = erased.iter().filter(|(_, wait)| !wait.released).count() as u64;
        (erased.into_iter().map(|(at, _)| *at).collect(), dropped)
    }

    fn add_ledger_entries(
        &self,
        codec: &EntryCodec,
        delta: &LedgerDelta,
        batch: &CodeBatch,
        records: &mut Vec<ChangelogRecord>,
    ) {
        if delta.said.0.is_empty() && delta.support.people.is_empty() && delta.support.pairs.is_empty() {
            return;
        }
        let mut places: BTreeMap<u64, BTreeSet<InputPartition>> = BTreeMap::new();
        for (subject, at) in batch.subjects.iter().zip(&batch.coordinates) {
            places.entry(*subject).or_default().insert(at.topic_partition());
        }
        let mut add = |subject: u64, entry: &ChangelogEntry| {
            let of_subject = places.get(&subject).into_iter().flatten();
            records.extend(of_subject.map(|place| codec.set(*place, entry)));
        };
        let said: HashMap<u128, i64> = delta.said.0.iter().copied().collect();
        if !said.is_empty() {
            for subject in places.keys() {
                for name in &self.in_force.group_keys {
                    let key = release_log_key(*name, *subject);
                    if let Some(until_ms) = said.get(&key) {
                        add(*subject, &ChangelogEntry::Said(key, *until_ms));
                    }
                }
            }
        }
        let Some(supporters) = &self.ledger.supporters else { return };
        let support = &delta.support;
        for subject in &support.people {
            if let Some(person) = supporters.tenure_after(*subject, support.sequence, support.time_ms) {
                add(*subject, &ChangelogEntry::Person(*subject, person));
            }
        }
        for of_subject in support.pairs.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (group, subject, _) = of_subject[0];
            let key = supporter_key(group, subject);
            let new: Vec<u128> = of_subject.iter().map(|(_, _, class)| *class).collect();
            add(subject, &ChangelogEntry::Classes(key, supporters.classes_after(key, &new, support.time_ms)));
        }
    }

    /// Adds the state of assigned partitions, without expired entries and erased subjects.
    ///
    /// # Errors
    /// When it belongs to another stream, sink or series, or to other groups.
    pub fn adopt_partitions(
        &mut self,
        mut restored: RestoredPartitions,
        places: &BTreeSet<InputPartition>,
        age_ms: i64,
    ) -> Result<(), StateError> {
        for known in restored.progress.values() {
            if let Some(other) = self.durable.binding.conflict(&known.binding) {
                return Err(StateError::OtherBinding(other));
            }
            self.durable.binding = self.durable.binding.completed_with(&known.binding);
        }
        let next = restored.progress.iter().map(|(place, progress)| (*place, progress.next));
        self.durable.progress.positions.extend(next);
        self.durable.places.extend(places.iter().copied());
        self.accept_offsets(&mut restored);
        let (erased, dropped) = self.erase_restored(&mut restored, age_ms);
        let RestoredPartitions {
            release_entries: said,
            tenure_records: people,
            restored_classes: classes,
            waiting,
            series,
            entries_read: entries,
            ..
        } = restored;
        if let Some(log) = &mut self.ledger.release_log {
            let said: Vec<(u128, i64)> = said.into_iter().filter(|(_, until_ms)| age_ms < *until_ms).collect();
            log.merge(&said);
        }
        if let Some(supporters) = &mut self.ledger.supporters {
            supporters.import_entries(&people, &classes, age_ms);
        }
        if self.series_place().is_some_and(|place| places.contains(&place))
            && let Some(of_stream) = &mut self.series
            && !of_stream.resume(series)
        {
            return Err(StateError::OtherSeries(self.durable.store.path().to_owned()));
        }
        if let Some(of_stream) =
            self.series.as_ref().filter(|_| self.series_place().is_some_and(|place| places.contains(&place)))
        {
            of_stream.published().emit(&self.telemetry);
        }
        let coming = self.settings.max_new_values(waiting.len());
        self.compaction().make_room(coming, 0);
        let before = self.held.unreleased();
        for row in &waiting {
            self.held.push(row, &mut self.coding.books);
        }
        let came = (self.held.unreleased() - before) as u64;
        self.durable.progress.totals.consumed += came + dropped;
        self.durable.progress.totals.dropped += dropped;
        StateRestored { partitions: places.len() as u64, entries, waiting: came + dropped }.emit(&self.telemetry);
        if erased > 0 {
            SubjectsErased { people: erased, by: "changelog", dropped, counted: 0, seconds: 0.0 }.emit(&self.telemetry);
        }
        Ok(())
    }

    fn accept_offsets(&mut self, restored: &mut RestoredPartitions) {
        for (place, offset) in std::mem::take(&mut restored.accepted_offsets) {
            self.durable.progress.positions.insert(place, offset);
            let progress = PartitionProgress {
                author: self.durable.store.id().to_owned(),
                sequence: self.durable.progress.sequence,
                next: offset,
                binding: self.durable.binding,
            };
            self.durable
                .pending
                .push((place, ErasedEntry::Rewritten(Box::new(ChangelogEntry::Progress(Box::new(progress))))));
            let again =
                |row: &mut StoredRow| row.coordinate.topic_partition() == place && row.coordinate.offset >= offset;
            for row in restored.waiting.extract_if(.., again) {
                self.durable.pending.push((place, ErasedEntry::Deleted(EntryKey::waiting(row.coordinate))));
            }
        }
    }

    /// Returns the erased subjects (0 without a match) and the dropped records.
    fn erase_restored(&mut self, restored: &mut RestoredPartitions, age_ms: i64) -> (u64, u64) {
        self.durable.erased.retain(|(erased_ms, _)| age_ms - erased_ms < ERASED_RETENTION_MS);
        let people: BTreeSet<u64> = self.durable.erased.iter().flat_map(|(_, people)| people.iter().copied()).collect();
        if people.is_empty() {
            return (0, 0);
        }
        let (before, mut dropped, series_place) = (self.durable.pending.len(), 0, self.series_place());
        let keys = erased_keys(&self.schema, &self.shapes, &*self.digest, &people);
        let pending = &mut self.durable.pending;
        for row in restored.waiting.extract_if(.., |row| people.contains(&row.subject)) {
            dropped += u64::from(!row.released);
            pending.push((row.coordinate.topic_partition(), ErasedEntry::Deleted(EntryKey::waiting(row.coordinate))));
        }
        // The partition of an entry is unknown after the restore.
        let places = || restored.progress.keys().copied();
        for (key, _) in restored.release_entries.extract_if(.., |(key, _)| keys.release_log_keys.contains(key)) {
            pending.extend(places().map(|place| (place, ErasedEntry::Deleted(EntryKey::Said(key)))));
        }
        for (subject, _) in restored.tenure_records.extract_if(.., |(subject, _)| people.contains(subject)) {
            pending.extend(places().map(|place| (place, ErasedEntry::Deleted(EntryKey::Person(subject)))));
        }
        for (key, ..) in restored.restored_classes.extract_if(.., |(key, ..)| keys.supporter_keys.contains(key)) {
            pending.extend(places().map(|place| (place, ErasedEntry::Deleted(EntryKey::Classes(key)))));
        }
        if let Some((series, place)) = restored.series.as_mut().zip(series_place) {
            erase_from_series(series, &keys, place, pending);
        }
        let found = if pending.len() > before { people.len() as u64 } else { 0 };
        (found, dropped)
    }

    /// Removes held rows of revoked partitions.
    pub fn drop_partitions(&mut self, places: &BTreeSet<InputPartition>) {
        if self.durable.log.is_none() {
            return;
        }
        let before = self.held.unreleased();
        self.held.remove_where(|at| places.contains(&at.topic_partition()));
        self.durable.places.retain(|place| !places.contains(place));
        self.durable.pending.retain(|(place, _)| !places.contains(place));
        if self.series_place().is_some_and(|place| places.contains(&place))
            && let Some(series) = &mut self.series
        {
            if !series.resume(None) {
                tracing::error!("an empty state of the series does not match the configured series");
            }
            CohortsElsewhere.emit(&self.telemetry);
        }
        let moved = (before - self.held.unreleased()) as u64;
        self.durable.progress.totals.moved += moved;
        self.durable.progress.positions.retain(|place, _| !places.contains(place));
        StateMoved { waiting: moved }.emit(&self.telemetry);
    }

    /// Removes all partitions at the end of a run.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn drop_all_partitions(&mut self) -> Result<(), StateError> {
        self.flush()?;
        if self.durable.log.is_none() {
            return Ok(());
        }
        let held = self.held.batch.coordinates.iter().map(|at| at.topic_partition());
        let places = held.chain(self.durable.progress.positions.keys().copied()).collect();
        self.drop_partitions(&places);
        self.durable.store.write_progress(&self.durable.progress)
    }

    /// Returns whether all rows of a batch are held here.
    #[must_use]
    pub fn has_all_waiting(&self, intent: &BatchIntent) -> bool {
        let waiting: HashSet<_> = self.held.batch.coordinates.iter().copied().collect();
        intent.settled.iter().all(|(_, at)| waiting.contains(at))
    }

    /// Returns whether this state was the last to process `places`.
    #[must_use]
    pub fn is_author(
        &self,
        places: &BTreeSet<InputPartition>,
        restored: &BTreeMap<InputPartition, PartitionProgress>,
    ) -> bool {
        let id = self.durable.store.id();
        places.iter().all(|place| restored.get(place).is_none_or(|progress| progress.author == id))
    }
}
