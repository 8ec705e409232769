//! Removes erased subjects from every value of the state.

use crate::daemon::state::directory::StateError;
use crate::daemon::state::numbered_keys::key_number;
use crate::daemon::state::profile_journal::parse_profile_key;
use crate::daemon::state::records::{StoredRow, StreamProgress};
use crate::daemon::state::rows::RowBlock;
use crate::daemon::state::store::rewrite::{ValueEdit, ValueEditor};
use crate::daemon::state::store::state_binding::{ERASURE_POSITION, TopicPosition};
use crate::daemon::state::store::value_kinds::{StoredValueKind, UNKNOWN_KIND};
use crate::daemon::state::store::{PROGRESS, StateStore};
use crate::planner::closeness_counts::ReferenceCounts;
use crate::start::run_findings::RunStatistics;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use throng_core::ledger::erased_keys::ErasedKeys;
use throng_core::ledger::ledger_delta::LedgerDelta;
use throng_core::ledger::supporters::SupportShard;
use throng_core::series::{CohortState, SharedSeriesState};

/// Number of entries removed from each store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedEntries {
    /// Rows of the window.
    pub window_rows: u64,
    /// Rows of the planner's sample.
    pub sample_rows: u64,
    /// Held records and delayed fragments.
    pub held_rows: u64,
    /// Subjects and their supported classes, for tenure and budgets.
    pub supporters: u64,
    /// Entries of the release log.
    pub said_lines: u64,
    /// Profiles of joins.
    pub profiles: u64,
    /// Subjects of series, open buckets and cohort memberships.
    pub series_entries: u64,
    /// Decrements of reference counts: one per subject and value.
    pub reference_counts: u64,
}

/// Editor that removes subjects. It refuses unknown kinds, which could concern them.
pub struct SubjectEraser<'a> {
    keys: ErasedKeys,
    position: Option<&'a TopicPosition>,
    progress: StreamProgress,
    first_row: u64,
    later_rows: u64,
    /// Values of removed sample rows: subject, attribute, text.
    sampled: BTreeSet<(u64, usize, String)>,
    /// Entries removed so far.
    pub removed: RemovedEntries,
    /// Removed held records that count as dropped.
    pub dropped: u64,
}

impl<'a> SubjectEraser<'a> {
    /// Creates an eraser that has removed no entries.
    pub fn new(
        store: &StateStore,
        keys: ErasedKeys,
        window_records: u64,
        position: Option<&'a TopicPosition>,
    ) -> Result<Self, StateError> {
        let progress: StreamProgress = store.read(PROGRESS)?.unwrap_or_default();
        let first_row = progress.rows.saturating_sub(window_records);
        let (removed, sampled) = (RemovedEntries::default(), BTreeSet::new());
        Ok(Self { keys, position, progress, first_row, later_rows: 0, sampled, removed, dropped: 0 })
    }

    /// Counts the entries that an erasure would remove.
    pub fn count(&mut self, store: &StateStore) -> Result<(), StateError> {
        store.visit_values(|kind, key, sealed| self.edit(store, kind, key, sealed).map(drop))
    }

    fn is_erased(&self, person: u64) -> bool {
        self.keys.subjects.contains(&person)
    }

    /// Renumbers the rows, as if the erased ones had never arrived.
    fn rows(&mut self, store: &StateStore, key: &[u8], sealed: &[u8]) -> Result<ValueEdit, StateError> {
        if key_number(key).is_none_or(|batch| batch > self.progress.sequence) {
            return Ok(ValueEdit::Remove);
        }
        let block: RowBlock = store.open_value(key, sealed)?;
        let (mut kept, gone) = block
            .without_subjects(|person| self.is_erased(person), self.first_row)
            .ok_or_else(|| store.damage_error("rows of the window cannot be read"))?;
        kept.last += self.later_rows;
        self.later_rows += gone;
        self.removed.window_rows += gone;
        Ok(match kept.rows() {
            0 => ValueEdit::Remove,
            _ if kept == block => ValueEdit::Keep,
            _ => ValueEdit::Replace(store.seal_value(key, &kept)),
        })
    }

    fn sample(&mut self, store: &StateStore, key: &[u8], sealed: &[u8]) -> Result<ValueEdit, StateError> {
        let mut rows: Vec<StoredRow> = store.open_value(key, sealed)?;
        let gone: Vec<StoredRow> = rows.extract_if(.., |row| self.is_erased(row.subject)).collect();
        self.removed.sample_rows += gone.len() as u64;
        let edit = edit_if_removed(store, key, gone.len() as u64, &rows);
        for StoredRow { subject, cells, .. } in gone {
            self.sampled.extend(cells.into_iter().enumerate().map(|(attribute, text)| (subject, attribute, text)));
        }
        Ok(if rows.is_empty() { ValueEdit::Remove } else { edit })
    }

    /// Retires a cohort that loses a member: its next release would differ from the previous one by that member.
    fn cohort(&mut self, store: &StateStore, key: &[u8], sealed: &[u8]) -> Result<ValueEdit, StateError> {
        let mut cohort: CohortState = store.open_value(key, sealed)?;
        let before = cohort.all_members().count();
        cohort.remove_members(|person| self.is_erased(person));
        let gone = (before - cohort.all_members().count()) as u64;
        self.removed.series_entries += gone;
        Ok(edit_if_removed(store, key, gone, &cohort))
    }

    fn references(&mut self, store: &StateStore, key: &[u8], sealed: &[u8]) -> Result<ValueEdit, StateError> {
        let mut references: Vec<ReferenceCounts> = store.open_value(key, sealed)?;
        let mut taken = 0;
        for (_, attribute, text) in &self.sampled {
            for counts in references.iter_mut().filter(|counts| counts.attribute == *attribute) {
                if let Some((_, subjects)) = counts.subjects.iter_mut().find(|(known, _)| known == text) {
                    *subjects = subjects.saturating_sub(1);
                    taken += 1;
                }
                counts.subjects.retain(|(_, subjects)| *subjects > 0);
            }
        }
        self.removed.reference_counts += taken;
        Ok(edit_if_removed(store, key, taken, &references))
    }

    fn ledger(&mut self, store: &StateStore, kind: &str, key: &[u8], sealed: &[u8]) -> Result<ValueEdit, StateError> {
        let (edit, [supporters, lines]) = match kind {
            "shard" => {
                let (sequence, mut shard): (u64, SupportShard) = store.open_value(key, sealed)?;
                let gone = self.keys.erase_supporters(&mut shard);
                (edit_if_removed(store, key, gone, &(sequence, shard)), [gone, 0])
            }
            "said" => {
                let mut lines: Vec<(u128, i64)> = store.open_value(key, sealed)?;
                let gone = self.keys.erase_releases(&mut lines);
                (edit_if_removed(store, key, gone, &lines), [0, gone])
            }
            _ => {
                let mut delta: LedgerDelta = store.open_value(key, sealed)?;
                let gone = [self.keys.erase_support(&mut delta.support), self.keys.erase_releases(&mut delta.said.0)];
                (edit_if_removed(store, key, gone.iter().sum(), &delta), gone)
            }
        };
        self.removed.supporters += supporters;
        self.removed.said_lines += lines;
        Ok(edit)
    }
}

fn edit_if_removed<T: Serialize>(store: &StateStore, key: &[u8], removed: u64, value: &T) -> ValueEdit {
    if removed == 0 { ValueEdit::Keep } else { ValueEdit::Replace(store.seal_value(key, value)) }
}

impl ValueEditor for SubjectEraser<'_> {
    fn edit(
        &mut self,
        store: &StateStore,
        kind: StoredValueKind,
        key: &[u8],
        sealed: &[u8],
    ) -> Result<ValueEdit, StateError> {
        match kind.name {
            "rows" => self.rows(store, key, sealed),
            "sample" => self.sample(store, key, sealed),
            // Called after `sample`: keys come in descending order.
            "reference" => self.references(store, key, sealed),
            "shard" | "said" | "delta" => self.ledger(store, kind.name, key, sealed),
            "held" => {
                let row: StoredRow = store.open_value(key, sealed)?;
                if !self.is_erased(row.subject) {
                    return Ok(ValueEdit::Keep);
                }
                self.removed.held_rows += 1;
                self.dropped += u64::from(!row.released);
                Ok(ValueEdit::Remove)
            }
            "profile" => {
                let (_, person) =
                    parse_profile_key(key).ok_or_else(|| store.damage_error("the key of a profile is invalid"))?;
                if !self.is_erased(person) {
                    return Ok(ValueEdit::Keep);
                }
                self.removed.profiles += 1;
                Ok(ValueEdit::Remove)
            }
            "met" => {
                let mut met: RunStatistics = store.open_value(key, sealed)?;
                let gone = met.forget(|person| self.is_erased(person));
                Ok(edit_if_removed(store, key, u64::from(gone), &met))
            }
            "series-person" | "series-open" => {
                let person =
                    key_number(key).ok_or_else(|| store.damage_error("an entry of the series has no number"))?;
                if !self.is_erased(person) {
                    return Ok(ValueEdit::Keep);
                }
                self.removed.series_entries += 1;
                Ok(ValueEdit::Remove)
            }
            "series-cohort" => self.cohort(store, key, sealed),
            "series-head" => {
                let mut head: SharedSeriesState = store.open_value(key, sealed)?;
                let before = head.front.len();
                head.front.retain(|(person, _)| !self.is_erased(*person));
                Ok(edit_if_removed(store, key, (before - head.front.len()) as u64, &head))
            }
            "intent" => Ok(ValueEdit::Remove),
            UNKNOWN_KIND => Err(store.damage_error("it has an entry of an unknown kind")),
            _ => Ok(ValueEdit::Keep),
        }
    }

    fn additions(&self, store: &StateStore) -> Vec<(&'static [u8], Vec<u8>)> {
        let mut progress = self.progress.clone();
        progress.totals.dropped += self.dropped;
        let progress = (self.dropped > 0).then(|| (PROGRESS, store.seal_value(PROGRESS, &progress)));
        let position = self.position.map(|position| (ERASURE_POSITION, store.seal_value(ERASURE_POSITION, position)));
        progress.into_iter().chain(position).collect()
    }
}
