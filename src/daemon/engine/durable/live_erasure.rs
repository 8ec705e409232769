//! Erasure in a running daemon, between batches: changelog entries first, then the stored state.

use crate::daemon::engine::core::{BatchError, Engine};
use crate::daemon::engine::gather::gathered_batch::BatchInstruction as BatchOrder;
use crate::daemon::erasure::{
    ChangelogRemovals, ErasureAnswer, ErasureContext, ErasureError, ErasureOrder, ErasureRequest, erase, erased_keys,
};
use crate::daemon::state::clock::BatchTime;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::entries::{ChangelogEntry, EntryKey, ErasedEntry};
use crate::daemon::state::records::Flush;
use crate::daemon::state::records::StoredRow;
use crate::telemetry::SubjectsErased;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::faults::crash_point;
use throng_core::ledger::SHARDS;
use throng_core::ledger::erased_keys::ErasedKeys;
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::series::SeriesState;
use throng_core::stream::input_batch::InputPartition;
use throng_core::stream::release_sink::BatchSink;

const MAX_REMOVAL_ATTEMPTS: u32 = 20;

const MAX_REMOVALS_PER_BATCH: usize = 100_000;

struct RetainedState {
    ledger: SubjectLedger,
    held: Vec<StoredRow>,
    series: Option<SeriesState>,
}

struct ErasureEffect {
    entries: Vec<(InputPartition, ErasedEntry)>,
    keys: ErasedKeys,
    counted: ChangelogRemovals,
    remembered: RetainedState,
}

impl Engine {
    /// Erases subjects. Must not be called before a retry.
    ///
    /// # Errors
    /// When the state cannot be restored or the sink is closed: the process must end.
    pub fn erase(
        &mut self,
        request: ErasureRequest,
        sink: &mut dyn BatchSink,
        now: impl Into<BatchTime> + Copy,
    ) -> Result<ErasureAnswer, BatchError> {
        let order = match self.erasure_order(request) {
            Ok(order) => order,
            Err(error) => return Ok(Err(error)),
        };
        self.flush()?;
        let change = self.durable.log.is_some().then(|| self.erasure_effect(&order));
        let mut is_removed = false;
        if let Some(change) = change.as_ref().filter(|_| !order.dry_run && !order.subject_digests.is_empty()) {
            let mut progress = self.durable.progress.clone();
            progress.totals.count_held_as_moved();
            self.durable.store.write_progress(&progress)?;
            let (now, before) = (now.into(), self.durable.progress.sequence);
            is_removed = self.remove_from_changelog(&change.entries, &change.keys, sink, now)?;
            if !is_removed && self.durable.progress.sequence == before {
                return Ok(Err(ErasureError::ChangelogRejected));
            }
            self.durable.erased.push_back((now.age_ms, order.subject_digests.clone()));
            if !is_removed {
                let ErasureEffect { entries, counted, remembered, .. } = self.erasure_effect(&order);
                self.durable.pending.extend(entries);
                self.durable.progress.totals.dropped += counted.dropped;
                self.reload_state(Some(remembered))?;
                let (people, dropped) = (order.subject_digests.len() as u64, counted.dropped);
                SubjectsErased { people, by: order.by, dropped, counted: 0, seconds: 0.0 }.emit(&self.telemetry);
                return Ok(Err(ErasureError::ChangelogRejected));
            }
        }
        let counted = change.as_ref().map(|change| change.counted).unwrap_or_default();
        let before = self.durable.store.database().to_owned();
        let answer = self.erase_from_state(&order, counted);
        if is_removed || self.durable.store.database() != before {
            self.reload_state(change.map(|change| change.remembered))?;
            crash_point("erasure-unanswered");
        }
        Ok(answer)
    }

    fn erasure_order(&self, request: ErasureRequest) -> Result<ErasureOrder, ErasureError> {
        if !self.durable.store.writes_take_effect() {
            return Err(ErasureError::NoState);
        }
        match request {
            ErasureRequest::Named(named) => {
                ErasureOrder::new(&named, "page", self.coding.subjects.as_ref(), &self.schema)
            }
            ErasureRequest::Digests(order) => Ok(order),
        }
    }

    fn erase_from_state(&mut self, order: &ErasureOrder, counted: ChangelogRemovals) -> ErasureAnswer {
        let context = ErasureContext {
            schema: &self.schema,
            shapes: &self.shapes,
            digest: &self.digest,
            window_records: self.learning.model.window().capacity() as u64,
            telemetry: &self.telemetry,
            changelog_removals: counted,
        };
        let receipt = erase(&mut self.durable.store, &context, order)?;
        if !order.dry_run {
            self.joins.forget(|person| order.subject_digests.contains(&person));
        }
        Ok(receipt)
    }

    fn erasure_effect(&self, order: &ErasureOrder) -> ErasureEffect {
        let keys = erased_keys(&self.schema, &self.shapes, &*self.digest, &order.subject_digests);
        let mut counted = ChangelogRemovals::default();
        let mut entries = Vec::new();
        let mut held = self.held.export(&self.coding.books);
        for row in held.extract_if(.., |row| order.subject_digests.contains(&row.subject)) {
            counted.removed.held_rows += 1;
            counted.dropped += u64::from(!row.released);
            entries.push((row.coordinate.topic_partition(), ErasedEntry::Deleted(EntryKey::waiting(row.coordinate))));
        }
        let ledger = self.ledger_without(&keys, &mut counted);
        let series = self.series.as_ref().map(|series| {
            let mut state = series.state().clone();
            if let Some(place) = series.place().filter(|_| self.has_series_state()) {
                counted.removed.series_entries += erase_from_series(&mut state, &keys, place, &mut entries);
            }
            state
        });
        ErasureEffect { entries, counted, keys, remembered: RetainedState { ledger, held, series } }
    }

    fn entries_under_keys(&self, keys: &ErasedKeys, place: InputPartition) -> Vec<(InputPartition, ErasedEntry)> {
        let (has_said, has_support) = (self.ledger.release_log.is_some(), self.ledger.supporters.is_some());
        let lines = keys.release_log_keys.iter().filter(|_| has_said).map(|key| EntryKey::Said(*key));
        let people = keys.subjects.iter().map(|subject| EntryKey::Person(*subject));
        let classes = keys.supporter_keys.iter().map(|key| EntryKey::Classes(*key));
        lines
            .chain(people.chain(classes).filter(|_| has_support))
            .map(|key| (place, ErasedEntry::Deleted(key)))
            .collect()
    }

    fn ledger_without(&self, keys: &ErasedKeys, counted: &mut ChangelogRemovals) -> SubjectLedger {
        let mut ledger = self.blank.ledger();
        for shard in 0..SHARDS {
            if let (Some(from), Some(to)) = (&self.ledger.supporters, &mut ledger.supporters) {
                let mut known = from.shard(shard);
                counted.removed.supporters += keys.erase_supporters(&mut known);
                to.merge(&known);
            }
            if let (Some(from), Some(to)) = (&self.ledger.release_log, &mut ledger.release_log) {
                let mut lines = from.shard(shard);
                counted.removed.said_lines += keys.erase_releases(&mut lines);
                to.merge(&lines);
            }
        }
        ledger
    }

    /// Returns false if the brokers refused any removal.
    fn remove_from_changelog(
        &mut self,
        entries: &[(InputPartition, ErasedEntry)],
        keys: &ErasedKeys,
        sink: &mut dyn BatchSink,
        now: BatchTime,
    ) -> Result<bool, BatchError> {
        if self.durable.progress.positions.is_empty() {
            return Ok(true);
        }
        if !self.change_changelog(entries, sink, now)? {
            return Ok(false);
        }
        let places: Vec<InputPartition> = self.durable.progress.positions.keys().copied().collect();
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

    /// Writes pending changes of restored partitions.
    ///
    /// # Errors
    /// When the sink is closed.
    pub fn make_pending_changes(
        &mut self,
        sink: &mut dyn BatchSink,
        now: impl Into<BatchTime>,
    ) -> Result<(), BatchError> {
        let pending = std::mem::take(&mut self.durable.pending);
        if !pending.is_empty() && !self.change_changelog(&pending, sink, now.into())? {
            self.durable.pending = pending;
        }
        Ok(())
    }

    /// Returns whether changelog changes are pending.
    #[must_use]
    pub fn has_pending_changes(&self) -> bool {
        !self.durable.pending.is_empty()
    }

    /// Returns false if the brokers refused a batch.
    fn change_changelog(
        &mut self,
        entries: &[(InputPartition, ErasedEntry)],
        sink: &mut dyn BatchSink,
        now: BatchTime,
    ) -> Result<bool, BatchError> {
        for part in entries.chunks(MAX_REMOVALS_PER_BATCH) {
            let mut is_written = false;
            for _ in 0..MAX_REMOVAL_ATTEMPTS {
                let order = BatchOrder { erased: part.to_vec(), ..BatchOrder::new(Flush::No, None, now) };
                match self.process_empty(&order, sink) {
                    Ok(()) => {
                        is_written = true;
                        break;
                    }
                    Err(BatchError::Aborted { intent, .. }) => self.discard_aborted(&intent)?,
                    Err(error) => return Err(error),
                }
            }
            if !is_written {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Keeps `remembered` as the changelog part.
    fn reload_state(&mut self, remembered: Option<RetainedState>) -> Result<(), StateError> {
        let mut ledger = self.blank.ledger();
        let mut recovered = self.durable.store.load(&mut ledger)?;
        if let Some(remembered) = remembered {
            ledger = remembered.ledger;
            (recovered.held, recovered.series) = (remembered.held, remembered.series);
            // The directory counts held records as moved.
            recovered.progress.totals = self.durable.progress.totals;
        }
        self.ledger = ledger;
        let books = self.blank.books();
        self.coding.books = books.map_err(|error| self.durable.store.damage_error(&error.to_string()))?;
        // Invalidates codes encoded ahead.
        self.coding.numbering += 1;
        self.restore_state(recovered)
    }
}

/// Returns the number of removed entries.
pub(crate) fn erase_from_series(
    state: &mut SeriesState,
    keys: &ErasedKeys,
    place: InputPartition,
    entries: &mut Vec<(InputPartition, ErasedEntry)>,
) -> u64 {
    let is_erased = |person: u64| keys.subjects.contains(&person);
    let mut gone = 0;
    let mut remove = |key| {
        gone += 1;
        entries.push((place, ErasedEntry::Deleted(key)));
    };
    state.people.keys().filter(|person| is_erased(**person)).for_each(|person| remove(EntryKey::SeriesPerson(*person)));
    state.open.keys().filter(|person| is_erased(**person)).for_each(|person| remove(EntryKey::SeriesOpen(*person)));
    let fronts = state.head.sources.iter().map(|source| &source.front).chain([&state.head.front]);
    let in_fronts: BTreeSet<u64> =
        fronts.flatten().map(|(person, _)| *person).filter(|person| is_erased(*person)).collect();
    gone += in_fronts.len() as u64;
    let members = |state: &SeriesState| -> BTreeMap<u32, usize> {
        state.cohorts.iter().map(|(number, cohort)| (*number, cohort.all_members().count())).collect()
    };
    let before = members(state);
    state.erase_subjects(is_erased);
    let after = members(state);
    for (number, cohort) in &state.cohorts {
        let lost = before[number] - after[number];
        if lost > 0 {
            gone += lost as u64;
            entries.push((
                place,
                ErasedEntry::Rewritten(Box::new(ChangelogEntry::SeriesCohort(*number, Box::new(cohort.clone())))),
            ));
        }
    }
    if gone > 0 {
        entries
            .push((place, ErasedEntry::Rewritten(Box::new(ChangelogEntry::SeriesHead(Box::new(state.head.clone()))))));
    }
    gone
}
