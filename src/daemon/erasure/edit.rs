//! Every value of the state without erased people.

use crate::anonymity::planner::reference::ReferenceCounts;
use crate::anonymity::series::{Cohort, Head};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::numbered::number_of;
use crate::daemon::state::profile_journal::place_of;
use crate::daemon::state::records::{KeptRow, Progress};
use crate::daemon::state::rows::RowBlock;
use crate::daemon::state::store::binding::{ERASURE_POSITION, TopicPosition};
use crate::daemon::state::store::kinds::{Kind, UNKNOWN};
use crate::daemon::state::store::rewrite::{Edit, Editor};
use crate::daemon::state::store::{PROGRESS, Store};
use crate::start::findings::Met;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use throng_core::ledger::delta::LedgerDelta;
use throng_core::ledger::erased_keys::ErasedKeys;
use throng_core::ledger::supporters::SupportShard;

/// Number of entries removed from each store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Rows of the window, from which the model is counted.
    pub window_rows: u64,
    /// Rows of the planner's sample.
    pub sample_rows: u64,
    /// Held records and delayed lines.
    pub held_rows: u64,
    /// People, and classes that they support, kept for tenure and budgets.
    pub supporters: u64,
    /// Lines of the release log.
    pub said_lines: u64,
    /// Profiles of joins.
    pub profiles: u64,
    /// People, their open buckets and their places in cohorts, of series.
    pub series_entries: u64,
    /// Counts of the distributions that classes are compared with, each lower by one person.
    pub reference_counts: u64,
}

/// Removes people from values by their keys. It refuses keys of unknown kinds: they could be about these people.
pub struct Eraser<'a> {
    keys: ErasedKeys,
    position: Option<&'a TopicPosition>,
    progress: Progress,
    /// Number of the first row of the window.
    first_row: u64,
    /// Rows that were removed from later blocks of the window.
    later_rows: u64,
    /// Distinct values of the removed rows of the sample: person, attribute, text. The reference distributions are counted from the sample.
    sampled: BTreeSet<(u64, usize, String)>,
    /// Entries removed so far.
    pub removed: Removed,
    /// Held records among them that count as dropped.
    pub dropped: u64,
}

impl<'a> Eraser<'a> {
    /// Begins with nothing removed.
    pub fn new(
        store: &Store,
        keys: ErasedKeys,
        window_records: u64,
        position: Option<&'a TopicPosition>,
    ) -> Result<Self, StateError> {
        let progress: Progress = store.read(PROGRESS)?.unwrap_or_default();
        let first_row = progress.rows.saturating_sub(window_records);
        let (removed, sampled) = (Removed::default(), BTreeSet::new());
        Ok(Self { keys, position, progress, first_row, later_rows: 0, sampled, removed, dropped: 0 })
    }

    /// Counts what would be removed.
    pub fn count(&mut self, store: &Store) -> Result<(), StateError> {
        store.visit(|kind, key, sealed| self.edit(store, kind, key, sealed).map(drop))
    }

    fn is_erased(&self, person: u64) -> bool {
        self.keys.subjects.contains(&person)
    }

    /// Rows of one batch. The remaining rows are numbered without a gap up to the last row of the stream, as if the erased ones had not come.
    fn rows(&mut self, store: &Store, key: &[u8], sealed: &[u8]) -> Result<Edit, StateError> {
        if number_of(key).is_none_or(|batch| batch > self.progress.sequence) {
            // The batch was never released.
            return Ok(Edit::Remove);
        }
        let block: RowBlock = store.open_value(key, sealed)?;
        let (mut kept, gone) = block
            .without(|person| self.is_erased(person), self.first_row)
            .ok_or_else(|| store.damaged("rows of the window cannot be read"))?;
        kept.last += self.later_rows;
        self.later_rows += gone;
        self.removed.window_rows += gone;
        Ok(match kept.rows() {
            0 => Edit::Remove,
            _ if kept == block => Edit::Keep,
            _ => Edit::Replace(store.sealed(key, &kept)),
        })
    }

    fn sample(&mut self, store: &Store, key: &[u8], sealed: &[u8]) -> Result<Edit, StateError> {
        let mut rows: Vec<KeptRow> = store.open_value(key, sealed)?;
        let gone: Vec<KeptRow> = rows.extract_if(.., |row| self.is_erased(row.subject)).collect();
        self.removed.sample_rows += gone.len() as u64;
        let edit = replaced(store, key, gone.len() as u64, &rows);
        for KeptRow { subject, cells, .. } in gone {
            self.sampled.extend(cells.into_iter().enumerate().map(|(attribute, text)| (subject, attribute, text)));
        }
        Ok(if rows.is_empty() { Edit::Remove } else { edit })
    }

    /// A cohort that loses a member is retired whole: what it published without that member would differ by that member.
    fn cohort(&mut self, store: &Store, key: &[u8], sealed: &[u8]) -> Result<Edit, StateError> {
        let mut cohort: Cohort = store.open_value(key, sealed)?;
        let before = cohort.everybody().count();
        cohort.remove_members(|person| self.is_erased(person));
        let gone = (before - cohort.everybody().count()) as u64;
        self.removed.series_entries += gone;
        Ok(replaced(store, key, gone, &cohort))
    }

    fn references(&mut self, store: &Store, key: &[u8], sealed: &[u8]) -> Result<Edit, StateError> {
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
        Ok(replaced(store, key, taken, &references))
    }

    fn ledger(&mut self, store: &Store, kind: &str, key: &[u8], sealed: &[u8]) -> Result<Edit, StateError> {
        let (edit, [supporters, lines]) = match kind {
            "shard" => {
                let (sequence, mut shard): (u64, SupportShard) = store.open_value(key, sealed)?;
                let gone = self.keys.erase_supporters(&mut shard);
                (replaced(store, key, gone, &(sequence, shard)), [gone, 0])
            }
            "said" => {
                let mut lines: Vec<(u128, i64)> = store.open_value(key, sealed)?;
                let gone = self.keys.erase_said(&mut lines);
                (replaced(store, key, gone, &lines), [0, gone])
            }
            _ => {
                let mut delta: LedgerDelta = store.open_value(key, sealed)?;
                let gone = [self.keys.erase_support(&mut delta.support), self.keys.erase_said(&mut delta.said.0)];
                (replaced(store, key, gone.iter().sum(), &delta), gone)
            }
        };
        self.removed.supporters += supporters;
        self.removed.said_lines += lines;
        Ok(edit)
    }
}

/// The value, where something was removed from it.
fn replaced<T: Serialize>(store: &Store, key: &[u8], removed: u64, value: &T) -> Edit {
    if removed == 0 { Edit::Keep } else { Edit::Replace(store.sealed(key, value)) }
}

impl Editor for Eraser<'_> {
    fn edit(&mut self, store: &Store, kind: Kind, key: &[u8], sealed: &[u8]) -> Result<Edit, StateError> {
        match kind.name {
            "rows" => self.rows(store, key, sealed),
            "sample" => self.sample(store, key, sealed),
            // Behind the sample: keys come in descending order.
            "reference" => self.references(store, key, sealed),
            "shard" | "said" | "delta" => self.ledger(store, kind.name, key, sealed),
            "held" => {
                let row: KeptRow = store.open_value(key, sealed)?;
                if !self.is_erased(row.subject) {
                    return Ok(Edit::Keep);
                }
                self.removed.held_rows += 1;
                self.dropped += u64::from(!row.released);
                Ok(Edit::Remove)
            }
            "profile" => {
                let (_, person) = place_of(key).ok_or_else(|| store.damaged("a profile has no place"))?;
                if !self.is_erased(person) {
                    return Ok(Edit::Keep);
                }
                self.removed.profiles += 1;
                Ok(Edit::Remove)
            }
            "met" => {
                let mut met: Met = store.open_value(key, sealed)?;
                let gone = met.forget(|person| self.is_erased(person));
                Ok(replaced(store, key, u64::from(gone), &met))
            }
            "series-person" | "series-open" => {
                let person = number_of(key).ok_or_else(|| store.damaged("an entry of the series has no number"))?;
                if !self.is_erased(person) {
                    return Ok(Edit::Keep);
                }
                self.removed.series_entries += 1;
                Ok(Edit::Remove)
            }
            "series-cohort" => self.cohort(store, key, sealed),
            "series-head" => {
                let mut head: Head = store.open_value(key, sealed)?;
                let before = head.front.len();
                head.front.retain(|(person, _)| !self.is_erased(*person));
                Ok(replaced(store, key, (before - head.front.len()) as u64, &head))
            }
            "intent" => Ok(Edit::Remove),
            UNKNOWN => Err(store.damaged("it holds something that an erasure does not know")),
            _ => Ok(Edit::Keep),
        }
    }

    fn additions(&self, store: &Store) -> Vec<(&'static [u8], Vec<u8>)> {
        let mut progress = self.progress.clone();
        progress.totals.dropped += self.dropped;
        let progress = (self.dropped > 0).then(|| (PROGRESS, store.sealed(PROGRESS, &progress)));
        let position = self.position.map(|position| (ERASURE_POSITION, store.sealed(ERASURE_POSITION, position)));
        progress.into_iter().chain(position).collect()
    }
}
