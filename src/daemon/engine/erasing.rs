//! Erasure in a running daemon, between two batches while none is to be repeated.
//!
//! Entries of the changelog go first, in a batch of their own. Then the erasure rewrites the state on the disk, and the engine reads what it
//! remembers back from it, as a start does. So its memory is that of a daemon that was started after the erasure.

use super::clock::Moment;
use super::core::{BatchError, Engine};
use super::gather::{Order as BatchOrder, Settling};
use crate::anonymity::series::SeriesState;
use crate::daemon::erasure::{Answer, Context, Elsewhere, ErasureError, ErasureRequest, Order, erase, erased_keys};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::entries::{Entry, EntryKey, Erased};
use crate::daemon::state::records::KeptRow;
use crate::faults::crash_point;
use crate::io::input::Place;
use crate::release::sink::Sink;
use crate::telemetry::SubjectsErased;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::ledger::SHARDS;
use throng_core::ledger::erased_keys::ErasedKeys;
use throng_core::ledger::per_subject::Ledger;

/// Attempts at the batch that removes entries of the changelog.
const ATTEMPTS: u32 = 20;

/// Entries that one such batch removes at most.
const MAX_REMOVED: usize = 100_000;

/// What the changelog keeps, without erased people.
struct Remembered {
    ledger: Ledger,
    held: Vec<KeptRow>,
    series: Option<SeriesState>,
}

/// What an erasure changes of the state that the changelog keeps.
struct Change {
    /// Entries that are remembered.
    entries: Vec<(Place, Erased)>,
    /// What they and others may lie under.
    keys: ErasedKeys,
    counted: Elsewhere,
    remembered: Remembered,
}

impl Engine {
    /// Erases people. To be called while no batch is to be repeated: it would find other records.
    ///
    /// # Errors
    /// When the state was rewritten and cannot be read back, or the sink takes nothing more: the process must end.
    pub fn erase(
        &mut self,
        request: ErasureRequest,
        sink: &mut dyn Sink,
        now: impl Into<Moment> + Copy,
    ) -> Result<Answer, BatchError> {
        let order = match self.erasure_order(request) {
            Ok(order) => order,
            Err(error) => return Ok(Err(error)),
        };
        self.flush()?;
        let change = self.durable.log.is_some().then(|| self.change_of(&order));
        let mut is_removed = false;
        if let Some(change) = change.as_ref().filter(|_| !order.dry_run && !order.people.is_empty()) {
            let mut progress = self.durable.progress.clone();
            progress.totals.let_go();
            self.durable.store.note_progress(&progress)?;
            let (now, before) = (now.into(), self.durable.progress.sequence);
            is_removed = self.remove_from_changelog(&change.entries, &change.keys, sink, now)?;
            if !is_removed && self.durable.progress.sequence == before {
                return Ok(Err(ErasureError::NotWritten));
            }
            self.durable.erased.push_back((now.age_ms, order.people.clone()));
            if !is_removed {
                // What is gone of it must not come back with what is remembered, and the rest goes when the brokers take it.
                let Change { entries, counted, remembered, .. } = self.change_of(&order);
                self.durable.pending.extend(entries);
                self.durable.progress.totals.dropped += counted.dropped;
                self.read_back(Some(remembered))?;
                let (people, dropped) = (order.people.len() as u64, counted.dropped);
                SubjectsErased { people, by: order.by, dropped, counted: 0, seconds: 0.0 }.emit(&self.telemetry);
                return Ok(Err(ErasureError::NotWritten));
            }
        }
        let counted = change.as_ref().map(|change| change.counted).unwrap_or_default();
        let before = self.durable.store.database().to_owned();
        let answer = self.erase_from_state(&order, counted);
        if is_removed || self.durable.store.database() != before {
            self.read_back(change.map(|change| change.remembered))?;
            crash_point("erasure-unanswered");
        }
        Ok(answer)
    }

    fn erasure_order(&self, request: ErasureRequest) -> Result<Order, ErasureError> {
        if !self.durable.store.is_in_force() {
            return Err(ErasureError::NoState);
        }
        match request {
            ErasureRequest::Named(named) => Order::new(&named, "page", self.coding.subjects.as_ref(), &self.schema),
            ErasureRequest::Digests(order) => Ok(order),
        }
    }

    fn erase_from_state(&mut self, order: &Order, counted: Elsewhere) -> Answer {
        let context = Context {
            schema: &self.schema,
            shapes: &self.shapes,
            digest: &self.digest,
            window_records: self.learning.model.window().capacity() as u64,
            telemetry: &self.telemetry,
            elsewhere: counted,
        };
        let receipt = erase(&mut self.durable.store, &context, order)?;
        if !order.dry_run {
            self.joins.forget(|person| order.people.contains(&person));
        }
        Ok(receipt)
    }

    /// What an erasure changes of what the changelog keeps.
    fn change_of(&self, order: &Order) -> Change {
        let keys = erased_keys(&self.schema, &self.shapes, &*self.digest, &order.people);
        let mut counted = Elsewhere::default();
        let mut entries = Vec::new();
        let mut held = self.held.export(&self.coding.books);
        for row in held.extract_if(.., |row| order.people.contains(&row.subject)) {
            counted.removed.held_rows += 1;
            counted.dropped += u64::from(!row.released);
            entries.push((row.coordinate.place(), Erased::Gone(EntryKey::waiting(row.coordinate))));
        }
        let ledger = self.ledger_without(&keys, &mut counted);
        let series = self.series.as_ref().map(|series| {
            let mut state = series.state().clone();
            if let Some(place) = series.place().filter(|_| self.has_series_state()) {
                counted.removed.series_entries += erase_from_series(&mut state, &keys, place, &mut entries);
            }
            state
        });
        Change { entries, counted, keys, remembered: Remembered { ledger, held, series } }
    }

    /// Entries of people under keys alone, in one partition: they may lie there although they are not remembered any more.
    fn entries_under_keys(&self, keys: &ErasedKeys, place: Place) -> Vec<(Place, Erased)> {
        let (has_said, has_support) = (self.ledger.said.is_some(), self.ledger.supporters.is_some());
        let lines = keys.said.iter().filter(|_| has_said).map(|key| EntryKey::Said(*key));
        let people = keys.subjects.iter().map(|subject| EntryKey::Person(*subject));
        let classes = keys.supporters.iter().map(|key| EntryKey::Classes(*key));
        lines.chain(people.chain(classes).filter(|_| has_support)).map(|key| (place, Erased::Gone(key))).collect()
    }

    fn ledger_without(&self, keys: &ErasedKeys, counted: &mut Elsewhere) -> Ledger {
        let mut ledger = self.blank.ledger();
        for shard in 0..SHARDS {
            if let (Some(from), Some(to)) = (&self.ledger.supporters, &mut ledger.supporters) {
                let mut known = from.shard(shard);
                counted.removed.supporters += keys.erase_supporters(&mut known);
                to.merge(&known);
            }
            if let (Some(from), Some(to)) = (&self.ledger.said, &mut ledger.said) {
                let mut lines = from.shard(shard);
                counted.removed.said_lines += keys.erase_said(&mut lines);
                to.merge(&lines);
            }
        }
        ledger
    }

    /// Removes entries of people: first those that are remembered, then what may lie under their keys in each partition. False where the
    /// brokers did not take all of it.
    fn remove_from_changelog(
        &mut self,
        entries: &[(Place, Erased)],
        keys: &ErasedKeys,
        sink: &mut dyn Sink,
        now: Moment,
    ) -> Result<bool, BatchError> {
        if self.durable.progress.positions.is_empty() {
            // Nobody has processed a record of these partitions: there is no entry.
            return Ok(true);
        }
        if !self.change_changelog(entries, sink, now)? {
            return Ok(false);
        }
        let places: Vec<Place> = self.durable.progress.positions.keys().copied().collect();
        for place in places {
            let entries = self.entries_under_keys(keys, place);
            if !self.change_changelog(&entries, sink, now)? {
                return Ok(false);
            }
        }
        self.flush()?;
        crash_point("erased-from-changelog");
        Ok(true)
    }

    /// Makes changes of the changelog that restored partitions have brought about.
    ///
    /// # Errors
    /// When the sink takes nothing more.
    pub fn make_pending_changes(&mut self, sink: &mut dyn Sink, now: impl Into<Moment>) -> Result<(), BatchError> {
        let pending = std::mem::take(&mut self.durable.pending);
        if !pending.is_empty() && !self.change_changelog(&pending, sink, now.into())? {
            self.durable.pending = pending;
        }
        Ok(())
    }

    /// Whether there are such changes.
    #[must_use]
    pub fn has_pending_changes(&self) -> bool {
        !self.durable.pending.is_empty()
    }

    /// Changes entries of the changelog, in batches that do nothing else. False where the brokers did not take one of them.
    fn change_changelog(
        &mut self,
        entries: &[(Place, Erased)],
        sink: &mut dyn Sink,
        now: Moment,
    ) -> Result<bool, BatchError> {
        for part in entries.chunks(MAX_REMOVED) {
            let mut is_written = false;
            for _ in 0..ATTEMPTS {
                let order = BatchOrder { erased: part.to_vec(), ..BatchOrder::new(Settling::No, None, now) };
                match self.process_nothing(&order, sink) {
                    Ok(()) => {
                        is_written = true;
                        break;
                    }
                    // Nobody has seen anything of it.
                    Err(BatchError::Aborted { intent, .. }) => self.give_up(&intent)?,
                    Err(error) => return Err(error),
                }
            }
            if !is_written {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads back what the state remembers, in place of all that was remembered, and what the changelog keeps from `remembered`.
    fn read_back(&mut self, remembered: Option<Remembered>) -> Result<(), StateError> {
        let mut ledger = self.blank.ledger();
        let mut recovered = self.durable.store.load(&mut ledger)?;
        if let Some(remembered) = remembered {
            ledger = remembered.ledger;
            (recovered.held, recovered.series) = (remembered.held, remembered.series);
            // The directory counts as moved what is held here.
            recovered.progress.totals = self.durable.progress.totals;
        }
        self.ledger = ledger;
        let books = self.blank.books();
        self.coding.books = books.map_err(|error| self.durable.store.damaged(&error.to_string()))?;
        // What was encoded ahead has codes of the books before.
        self.coding.numbering += 1;
        self.go_on(recovered)
    }
}

/// Removes people from the state of the series, and adds the entries that change. Returns the number of entries about them.
pub(super) fn erase_from_series(
    state: &mut SeriesState,
    keys: &ErasedKeys,
    place: Place,
    entries: &mut Vec<(Place, Erased)>,
) -> u64 {
    let is_erased = |person: u64| keys.subjects.contains(&person);
    let mut gone = 0;
    let mut remove = |key| {
        gone += 1;
        entries.push((place, Erased::Gone(key)));
    };
    state.people.keys().filter(|person| is_erased(**person)).for_each(|person| remove(EntryKey::SeriesPerson(*person)));
    state.open.keys().filter(|person| is_erased(**person)).for_each(|person| remove(EntryKey::SeriesOpen(*person)));
    let fronts = state.head.sources.iter().map(|source| &source.front).chain([&state.head.front]);
    let in_fronts: BTreeSet<u64> =
        fronts.flatten().map(|(person, _)| *person).filter(|person| is_erased(*person)).collect();
    gone += in_fronts.len() as u64;
    let members = |state: &SeriesState| -> BTreeMap<u32, usize> {
        state.cohorts.iter().map(|(number, cohort)| (*number, cohort.everybody().count())).collect()
    };
    let before = members(state);
    state.erase(is_erased);
    let after = members(state);
    for (number, cohort) in &state.cohorts {
        let lost = before[number] - after[number];
        if lost > 0 {
            gone += lost as u64;
            entries.push((place, Erased::Left(Box::new(Entry::SeriesCohort(*number, Box::new(cohort.clone()))))));
        }
    }
    if gone > 0 {
        entries.push((place, Erased::Left(Box::new(Entry::SeriesHead(Box::new(state.head.clone()))))));
    }
    gone
}
