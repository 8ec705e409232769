//! State that follows its partition: entries that a batch writes to the changelog, and what becomes of partitions that come and go.

use super::core::Engine;
use super::erasing::erase_from_series;
use super::gather::{Gathered, Order};
use super::series_exchange::IdleSources;
use super::series_stream::SeriesStream;
use crate::daemon::erasure::erased_keys;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::entries::{Entry, EntryCodec, EntryKey, Erased, PlaceProgress, Restored, series_entries};
use crate::daemon::state::records::{Intent, KeptRow};
use crate::io::input::Place;
use crate::release::sink::{ChangelogRecord, Positions};
use crate::telemetry::{CohortsElsewhere, StateMoved, StateRestored, SubjectsErased};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use throng_core::ledger::delta::LedgerDelta;
use throng_core::ledger::said::said_key;
use throng_core::ledger::supporters::supporter_key;
use throng_core::values::raw::Coordinate;
use throng_core::values::table::Batch;

/// How long people who were erased are taken out of partitions that come.
const ERASED_MS: i64 = 24 * 3_600_000;

/// What a batch writes to the changelog.
#[derive(Default)]
pub(super) struct Changes {
    pub records: Vec<ChangelogRecord>,
    /// Next offset of every partition that the batch touches, also of one that it only settles records of.
    pub positions: Positions,
}

impl Engine {
    /// Whether the state of the series is known, as far as it lies in the changelog.
    pub(super) fn has_series_state(&self) -> bool {
        self.series_place().is_none_or(|place| self.durable.places.contains(&place))
    }

    /// The partition whose entries hold the state of the series; none where there are no series, or no changelog.
    fn series_place(&self) -> Option<Place> {
        self.series.as_ref().and_then(SeriesStream::place)
    }

    /// Contributions to series go through partition `place` of a topic; `sources` are the partitions of the source.
    pub fn exchange_series(&mut self, place: Place, sources: Vec<Place>) {
        if let (Some(series), Some(codec)) = (&mut self.series, &self.durable.log) {
            series.exchange_through(place, sources, codec.clone());
            CohortsElsewhere.emit(&self.telemetry);
        }
    }

    /// Partitions that delay buckets of the series here, each with the offset where it stands.
    #[must_use]
    pub fn series_wait_for(&self) -> BTreeMap<Place, i64> {
        let series = self.series.as_ref().filter(|_| self.has_series_state());
        series.map(SeriesStream::waits_for).unwrap_or_default()
    }

    /// The offset up to which contributions have been taken in.
    #[must_use]
    pub fn series_position(&self) -> i64 {
        let place = self.series_place();
        place.and_then(|place| self.durable.progress.positions.get(&place)).copied().unwrap_or(0)
    }

    /// No bucket waits for partitions without an unread record.
    pub fn note_idle(&mut self, idle: IdleSources) {
        if let Some(series) = &mut self.series {
            series.note_idle(idle);
        }
    }

    /// Writes and reads entries of the changelog; none where the source is a file.
    pub fn entry_codec(&self) -> Option<&EntryCodec> {
        self.durable.log.as_ref()
    }

    /// Changed entries of a batch, removed ones first: a row that waits on is set anew.
    pub(super) fn changes_of(&self, gathered: &Gathered<'_>, intent: &Intent, order: &Order<'_>) -> Changes {
        let read = gathered.input.ranges.iter().map(|(place, range)| (*place, range.1));
        let mut positions: Positions = read.collect();
        let Some(codec) = &self.durable.log else { return Changes { records: Vec::new(), positions } };
        let settled = intent.settled.iter().map(|(_, at)| at.place());
        for place in settled.chain(order.erased.iter().map(|(place, _)| *place)).chain(intent.series_place) {
            if let Some(next) = self.durable.progress.positions.get(&place) {
                positions.entry(place).or_insert(*next);
            }
        }
        let mut records = Vec::new();
        let waits_on: HashSet<_> = intent.held.iter().map(|row| row.coordinate).collect();
        for (_, at) in intent.settled.iter().filter(|(_, at)| !waits_on.contains(at)) {
            records.push(codec.remove(at.place(), EntryKey::waiting(*at)));
        }
        for (place, change) in &order.erased {
            records.push(match change {
                Erased::Gone(key) => codec.remove(*place, *key),
                Erased::Left(entry) => codec.set(*place, entry),
            });
        }
        for row in &intent.held {
            records.push(codec.set(row.coordinate.place(), &Entry::Waiting(Box::new(row.clone()))));
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
            let progress = PlaceProgress {
                author: author.to_owned(),
                sequence: intent.after.sequence,
                next: *next,
                binding: self.durable.binding,
            };
            records.push(codec.set(*place, &Entry::Progress(Box::new(progress))));
        }
        Changes { records, positions }
    }

    /// Waiting rows that a batch erases, and the number of those of which nothing has left.
    pub(super) fn erased_rows(&self, order: &Order<'_>) -> (HashSet<Coordinate>, u64) {
        let gone: HashSet<EntryKey> = order
            .erased
            .iter()
            .filter_map(|(_, change)| if let Erased::Gone(key) = change { Some(*key) } else { None })
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

    /// Entries of the release log, tenure and budgets go to every partition in which their subject has records of the batch.
    fn add_ledger_entries(
        &self,
        codec: &EntryCodec,
        delta: &LedgerDelta,
        batch: &Batch,
        records: &mut Vec<ChangelogRecord>,
    ) {
        if delta.said.0.is_empty() && delta.support.people.is_empty() && delta.support.pairs.is_empty() {
            return;
        }
        let mut places: BTreeMap<u64, BTreeSet<Place>> = BTreeMap::new();
        for (subject, at) in batch.subjects.iter().zip(&batch.coordinates) {
            places.entry(*subject).or_default().insert(at.place());
        }
        let mut add = |subject: u64, entry: &Entry| {
            let of_subject = places.get(&subject).into_iter().flatten();
            records.extend(of_subject.map(|place| codec.set(*place, entry)));
        };
        let said: HashMap<u128, i64> = delta.said.0.iter().copied().collect();
        if !said.is_empty() {
            for subject in places.keys() {
                for name in &self.in_force.turn_names {
                    let key = said_key(*name, *subject);
                    if let Some(until_ms) = said.get(&key) {
                        add(*subject, &Entry::Said(key, *until_ms));
                    }
                }
            }
        }
        let Some(supporters) = &self.ledger.supporters else { return };
        let support = &delta.support;
        for subject in &support.people {
            if let Some(person) = supporters.seen(*subject, support.sequence, support.time_ms) {
                add(*subject, &Entry::Person(*subject, person));
            }
        }
        for of_subject in support.pairs.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (group, subject, _) = of_subject[0];
            let key = supporter_key(group, subject);
            let new: Vec<u128> = of_subject.iter().map(|(_, _, class)| *class).collect();
            add(subject, &Entry::Classes(key, supporters.classes_after(key, &new, support.time_ms)));
        }
    }

    /// Remembers the state of partitions that have come, but for what has expired at `age_ms`, and for people who were erased here lately.
    ///
    /// # Errors
    /// When it belongs to another stream, sink or series, or to other groups.
    pub fn take_partitions_over(
        &mut self,
        mut restored: Restored,
        places: &BTreeSet<Place>,
        age_ms: i64,
    ) -> Result<(), StateError> {
        for known in restored.progress.values() {
            if let Some(other) = self.durable.binding.conflict(&known.binding) {
                return Err(StateError::OtherBinding(other));
            }
            self.durable.binding = self.durable.binding.or(&known.binding);
        }
        let next = restored.progress.iter().map(|(place, progress)| (*place, progress.next));
        self.durable.progress.positions.extend(next);
        self.durable.places.extend(places.iter().copied());
        self.accept_offsets(&mut restored);
        let (erased, dropped) = self.erase_restored(&mut restored, age_ms);
        let Restored { said, people, classes, waiting, series, entries, .. } = restored;
        if let Some(log) = &mut self.ledger.said {
            let said: Vec<(u128, i64)> = said.into_iter().filter(|(_, until_ms)| age_ms < *until_ms).collect();
            log.merge(&said);
        }
        if let Some(supporters) = &mut self.ledger.supporters {
            supporters.take_over(&people, &classes, age_ms);
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
        self.compact_dictionaries(self.settings.values_of(waiting.len()), 0);
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

    /// Partitions go on where the operator has accepted it. Rows that come again from there do not wait twice.
    fn accept_offsets(&mut self, restored: &mut Restored) {
        for (place, offset) in std::mem::take(&mut restored.accepted) {
            self.durable.progress.positions.insert(place, offset);
            let progress = PlaceProgress {
                author: self.durable.store.id().to_owned(),
                sequence: self.durable.progress.sequence,
                next: offset,
                binding: self.durable.binding,
            };
            self.durable.pending.push((place, Erased::Left(Box::new(Entry::Progress(Box::new(progress))))));
            let again = |row: &mut KeptRow| row.coordinate.place() == place && row.coordinate.offset >= offset;
            for row in restored.waiting.extract_if(.., again) {
                self.durable.pending.push((place, Erased::Gone(EntryKey::waiting(row.coordinate))));
            }
        }
    }

    /// Takes people who were erased here lately out of what was restored: its last owner may not have heard of it. Returns the number of
    /// people, where anything was found, and of waiting records of which nothing has left.
    fn erase_restored(&mut self, restored: &mut Restored, age_ms: i64) -> (u64, u64) {
        self.durable.erased.retain(|(erased_ms, _)| age_ms - erased_ms < ERASED_MS);
        let people: BTreeSet<u64> = self.durable.erased.iter().flat_map(|(_, people)| people.iter().copied()).collect();
        if people.is_empty() {
            return (0, 0);
        }
        let (before, mut dropped, series_place) = (self.durable.pending.len(), 0, self.series_place());
        let keys = erased_keys(&self.schema, &self.shapes, &*self.digest, &people);
        let pending = &mut self.durable.pending;
        for row in restored.waiting.extract_if(.., |row| people.contains(&row.subject)) {
            dropped += u64::from(!row.released);
            pending.push((row.coordinate.place(), Erased::Gone(EntryKey::waiting(row.coordinate))));
        }
        // In which of the partitions an entry lies is not known any more.
        let places = || restored.progress.keys().copied();
        for (key, _) in restored.said.extract_if(.., |(key, _)| keys.said.contains(key)) {
            pending.extend(places().map(|place| (place, Erased::Gone(EntryKey::Said(key)))));
        }
        for (subject, _) in restored.people.extract_if(.., |(subject, _)| people.contains(subject)) {
            pending.extend(places().map(|place| (place, Erased::Gone(EntryKey::Person(subject)))));
        }
        for (key, ..) in restored.classes.extract_if(.., |(key, ..)| keys.supporters.contains(key)) {
            pending.extend(places().map(|place| (place, Erased::Gone(EntryKey::Classes(key)))));
        }
        if let Some((series, place)) = restored.series.as_mut().zip(series_place) {
            erase_from_series(series, &keys, place, pending);
        }
        let found = if pending.len() > before { people.len() as u64 } else { 0 };
        (found, dropped)
    }

    /// Forgets what waits of partitions that have gone: whoever has them now has read it from the changelog. What was said of
    /// people is kept: it is true, and ends with its window.
    pub fn let_partitions_go(&mut self, places: &BTreeSet<Place>) {
        if self.durable.log.is_none() {
            return;
        }
        let before = self.held.unreleased();
        self.held.remove_where(|at| places.contains(&at.place()));
        self.durable.places.retain(|place| !places.contains(place));
        self.durable.pending.retain(|(place, _)| !places.contains(place));
        if self.series_place().is_some_and(|place| places.contains(&place))
            && let Some(series) = &mut self.series
        {
            if !series.resume(None) {
                tracing::error!("a blank state of the series does not fit their terms");
            }
            CohortsElsewhere.emit(&self.telemetry);
        }
        let moved = (before - self.held.unreleased()) as u64;
        self.durable.progress.totals.moved += moved;
        self.durable.progress.positions.retain(|place, _| !places.contains(place));
        StateMoved { waiting: moved }.emit(&self.telemetry);
    }

    /// Lets all partitions go, at the end of a run, and writes what only the memory knows.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn let_all_go(&mut self) -> Result<(), StateError> {
        self.flush()?;
        if self.durable.log.is_none() {
            return Ok(());
        }
        let held = self.held.batch.coordinates.iter().map(|at| at.place());
        let places = held.chain(self.durable.progress.positions.keys().copied()).collect();
        self.let_partitions_go(&places);
        self.durable.store.note_progress(&self.durable.progress)
    }

    /// Whether all rows that a batch is to take along wait here: others have settled those that do not.
    #[must_use]
    pub fn has_all_waiting(&self, intent: &Intent) -> bool {
        let waiting: HashSet<_> = self.held.batch.coordinates.iter().copied().collect();
        intent.settled.iter().all(|(_, at)| waiting.contains(at))
    }

    /// Whether this state was the last to process all of `places`, of which `restored` tells: then nobody else can have tried
    /// the batch that it may be about to repeat.
    #[must_use]
    pub fn is_author(&self, places: &BTreeSet<Place>, restored: &BTreeMap<Place, PlaceProgress>) -> bool {
        let id = self.durable.store.id();
        places.iter().all(|place| restored.get(place).is_none_or(|progress| progress.author == id))
    }
}
