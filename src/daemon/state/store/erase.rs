//! Somebody is taken out of the state.
//!
//! The database keeps what was removed or written over for as long as nothing takes its place on the disk. So an erasure writes a
//! new database beside the one in force, without the person, puts its name into force, and removes the old one. The name is one
//! file, written whole or not at all: a start finds the state before the erasure or the state after it, and nothing between
//! (docs/erasure.md). An erasure that does not know a key refuses rather than leaving something behind.

use super::names_read::{NAMES_READ, NamesRead};
use super::{CHECK, INTENT, INTENT_MET, MET, PROGRESS, Store};
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::daemon::state::databases;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::keeper::Keeper;
use crate::daemon::state::numbered::number_of;
use crate::daemon::state::profile_journal::{INTENT_VERSION, PREFIX, ProfileJournal, place_of};
use crate::daemon::state::records::{KeptRow, Progress};
use crate::daemon::state::rows::RowBlock;
use crate::daemon::state::store::examine::is_known;
use crate::daemon::state::store::recover::Recovered;
use crate::faults::{self, crash_point};
use crate::ledger::SHARDS;
use crate::ledger::erasure::{Erased, LedgerErased};
use crate::ledger::per_subject::Ledger;
use crate::start::findings::Met;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Values copied at a time.
const PART: usize = 512;

/// What becomes of a batch that was intended and is not known to have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// Nothing is erased before it is settled.
    Refuse,
    /// It has not left and is not to be repeated.
    GiveUp,
}

/// What was taken out of a state, in entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateErased {
    /// Of the ledger.
    pub ledger: LedgerErased,
    /// Rows of the window.
    pub window: u64,
    /// Rows of the planner's sample.
    pub sample: u64,
    /// Rows that waited.
    pub held: u64,
    /// Those of which nothing had left: they count as dropped.
    pub dropped: u64,
    /// Profiles that joins had kept.
    pub profiles: u64,
    /// Counts of values that classes are compared with.
    pub references: u64,
    /// People met while too few had been met.
    pub met: u64,
}

/// What a state without somebody has in place of what it had: none where that goes.
struct Edits<'a> {
    who: &'a Erased,
    values: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    erased: StateErased,
    /// How far the names have been read that it is done for.
    names: Option<&'a NamesRead>,
}

impl Store {
    /// Takes `who` out of the state; with `dry_run` only counts what would go. What only the memory knows must have been
    /// [flushed](Self::flush). `window_records` is how many records the window holds at most. Where `names` were read of a topic, how
    /// far is part of the same change. Where it succeeds the memory is to be made anew, by [`read_again`](Self::read_again).
    ///
    /// # Errors
    /// [`StateError::Unsettled`], or when the database fails: the state is as it was then, unless the
    /// [`database`](Self::database) in force is another.
    pub fn erase(
        &mut self,
        who: &Erased,
        window_records: u64,
        pending: Pending,
        dry_run: bool,
        names: Option<&NamesRead>,
    ) -> Result<StateErased, StateError> {
        if pending == Pending::Refuse && self.keeper.read(|d| d.tree.contains_key(INTENT))? {
            return Err(StateError::Unsettled(self.path.clone()));
        }
        let progress: Progress = self.read(PROGRESS)?.unwrap_or_default();
        let mut edits = Edits { who, values: BTreeMap::new(), erased: StateErased::default(), names };
        self.edit(&mut edits, &progress)?;
        let first = progress.rows.saturating_sub(window_records);
        if dry_run {
            self.rows_without(&mut edits, &progress, first, None)?;
            return Ok(edits.erased);
        }
        databases::clear_databases(&self.path, &self.database)?;
        let name = databases::next_database(&self.database);
        let written = self.write_anew(&name, &mut edits, &progress, first);
        let mut keeper = match written {
            Ok(keeper) => keeper,
            Err(error) => {
                // Whatever cannot be removed now is removed with the next erasure, or the next start.
                if let Err(also) = databases::clear_databases(&self.path, &self.database) {
                    tracing::warn!(error = %also, "a database that was not finished stays until the next start");
                }
                return Err(error);
            }
        };
        databases::name_database(&self.path, &name)?;
        crash_point("erasure-named");
        self.database = name;
        keeper.succeed(&self.keeper);
        let before = std::mem::replace(&mut self.keeper, Arc::new(keeper));
        // Its thread has let go of the files when this returns.
        drop(before);
        // It is done: what cannot be removed now is removed by the next start.
        if let Err(error) = databases::clear_databases(&self.path, &self.database) {
            tracing::warn!(%error, "the database from before the erasure stays until the next start, with whoever was erased");
        }
        crash_point("erasure-cleared");
        Ok(edits.erased)
    }

    /// The name of the database in force: another one than before, where an erasure has gone so far that the memory must follow.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Reads what the database in force holds, as a start would, in place of what this store knew of the one before.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read_again(&mut self, ledger: &mut Ledger) -> Result<Recovered, StateError> {
        self.applied = None;
        self.shard_sequence = vec![0; SHARDS];
        (self.next_shard, self.credit, self.first_delta) = (0, 0, 1);
        self.sample_parts.clear();
        self.row_parts.clear();
        self.forgotten.clear();
        self.forgotten_rows.clear();
        self.profiles = ProfileJournal::default();
        self.load(ledger)
    }

    /// Writes the new database whole, and onto the disk.
    fn write_anew(
        &self,
        name: &str,
        edits: &mut Edits<'_>,
        progress: &Progress,
        first: u64,
    ) -> Result<Keeper, StateError> {
        let new = Keeper::open(&self.path, name)?;
        crash_point("erasure-begun");
        if faults::is_set("erasure-fails") {
            let why = "a test has taken the disk away".to_owned();
            return Err(StateError::Broken { path: self.path.clone(), why });
        }
        self.copy(edits, &new)?;
        if let Some(names) = edits.names {
            let sealed = self.sealed(NAMES_READ, names);
            new.write(NAMES_READ.len() + sealed.len(), move |d| d.tree.insert(NAMES_READ, sealed).map(drop))?;
        }
        self.rows_without(edits, progress, first, Some(&new))?;
        new.write(0, |d| d.tree.flush())?;
        databases::onto_disk(&self.path, name)?;
        crash_point("erasure-copied");
        Ok(new)
    }

    /// Copies the small values, as they are without those who are erased.
    fn copy(&self, edits: &Edits<'_>, new: &Keeper) -> Result<(), StateError> {
        let mut from: Vec<u8> = Vec::new();
        loop {
            let start = from.clone();
            let part =
                self.keeper.read(move |d| d.tree.range(start..).take(PART).collect::<Result<Vec<_>, sled::Error>>())?;
            let Some((last, _)) = part.last() else { return Ok(()) };
            from = [last.as_ref(), &[0]].concat();
            let (mut batch, mut bytes) = (sled::Batch::default(), 0);
            for (key, value) in part {
                match edits.values.get(key.as_ref()) {
                    Some(None) => {}
                    Some(Some(value)) => {
                        bytes += key.len() + value.len();
                        batch.insert(key, value.as_slice());
                    }
                    None if *key == *CHECK || is_known(&key) => {
                        bytes += key.len() + value.len();
                        batch.insert(key, value);
                    }
                    None => return Err(self.damaged("it holds something that an erasure does not know")),
                }
            }
            new.write(bytes, move |d| d.tree.apply_batch(batch))?;
        }
    }

    /// Counts, and with a `new` database writes, the rows of the window without those who are erased. The rows that remain are
    /// numbered without a gap up to the last one of the stream, as if the others had not come.
    fn rows_without(
        &self,
        edits: &mut Edits<'_>,
        progress: &Progress,
        first: u64,
        new: Option<&Keeper>,
    ) -> Result<(), StateError> {
        let mut behind = 0;
        for key in self.row_keys()?.into_iter().rev() {
            if number_of(&key).is_none_or(|sequence| sequence > progress.sequence) {
                // Laid for a batch that has not left.
                continue;
            }
            let sealed = self.rows_of(&key)?.ok_or_else(|| self.damaged("rows of the window are missing"))?;
            let block: RowBlock = self.open_value(&key, &sealed)?;
            let without = block.without(|subject| edits.who.is(subject), first);
            let (mut kept, gone) = without.ok_or_else(|| self.damaged("rows of the window cannot be read"))?;
            kept.last += behind;
            behind += gone;
            edits.erased.window += gone;
            let Some(new) = new.filter(|_| kept.rows() > 0) else { continue };
            let sealed = if kept == block { sealed.to_vec() } else { self.sealed(&key, &kept) };
            new.write(key.len() + sealed.len(), move |d| d.window.insert(key, sealed).map(drop))?;
        }
        Ok(())
    }

    fn sealed<T: Serialize>(&self, key: &[u8], value: &T) -> Vec<u8> {
        self.sealer.seal(key, &postcard::to_stdvec(value).expect("plain values always serialize"))
    }

    /// What the small values are without those who are erased.
    fn edit(&self, edits: &mut Edits<'_>, progress: &Progress) -> Result<(), StateError> {
        for key in [INTENT, INTENT_MET, INTENT_VERSION] {
            edits.values.insert(key.to_vec(), None);
        }
        self.edit_ledger(edits)?;
        self.edit_sample(edits)?;
        for (key, sealed) in self.scan("held")? {
            let row: KeptRow = self.open_value(&key, &sealed)?;
            if edits.who.is(row.subject) {
                edits.erased.held += 1;
                edits.erased.dropped += u64::from(!row.released);
                edits.values.insert(key, None);
            }
        }
        for (key, _) in self.scan(PREFIX)? {
            let (_, person) = place_of(&key).ok_or_else(|| self.damaged("a profile has no place"))?;
            if edits.who.is(person) {
                edits.erased.profiles += 1;
                edits.values.insert(key, None);
            }
        }
        if let Some(mut met) = self.read::<Met>(MET)?
            && met.forget(|person| edits.who.is(person))
        {
            edits.erased.met += 1;
            edits.values.insert(MET.to_vec(), Some(self.sealed(MET, &met)));
        }
        if edits.erased.dropped > 0 {
            let mut progress = progress.clone();
            progress.totals.dropped += edits.erased.dropped;
            edits.values.insert(PROGRESS.to_vec(), Some(self.sealed(PROGRESS, &progress)));
        }
        Ok(())
    }

    fn edit_ledger(&self, edits: &mut Edits<'_>) -> Result<(), StateError> {
        let (who, out) = (edits.who, &mut edits.erased.ledger);
        let damaged = || self.damaged("a part of the ledger cannot be read");
        for (key, sealed) in self.scan("shard")? {
            let (sequence, bytes): (u64, Vec<u8>) = self.open_value(&key, &sealed)?;
            let kept = who.shard(&bytes, out).ok_or_else(damaged)?;
            if kept != bytes {
                let sealed = self.sealed(&key, &(sequence, kept));
                edits.values.insert(key, Some(sealed));
            }
        }
        for prefix in ["said", "delta"] {
            for (key, sealed) in self.scan(prefix)? {
                let bytes: Vec<u8> = self.open_value(&key, &sealed)?;
                let kept = match prefix {
                    "said" => who.said(&bytes, out),
                    _ => who.delta(&bytes, out),
                };
                let kept = kept.ok_or_else(damaged)?;
                if kept != bytes {
                    let sealed = self.sealed(&key, &kept);
                    edits.values.insert(key, Some(sealed));
                }
            }
        }
        Ok(())
    }

    /// The sample, and the distributions that were counted from it.
    fn edit_sample(&self, edits: &mut Edits<'_>) -> Result<(), StateError> {
        let mut said: BTreeSet<(u64, usize, String)> = BTreeSet::new();
        for (key, sealed) in self.scan("sample")? {
            let mut rows: Vec<KeptRow> = self.open_value(&key, &sealed)?;
            let before = rows.len();
            for row in rows.extract_if(.., |row| edits.who.is(row.subject)) {
                let cells = row.cells.into_iter().enumerate();
                said.extend(cells.map(|(attribute, text)| (row.subject, attribute, text)));
            }
            if rows.len() < before {
                edits.erased.sample += (before - rows.len()) as u64;
                let kept = (!rows.is_empty()).then(|| self.sealed(&key, &rows));
                edits.values.insert(key, kept);
            }
        }
        for (key, sealed) in self.scan("reference")? {
            let mut references: Vec<ReferenceCounts> = self.open_value(&key, &sealed)?;
            let mut taken = 0;
            for (_, attribute, text) in &said {
                for counts in references.iter_mut().filter(|counts| counts.attribute == *attribute) {
                    let of_text = counts.subjects.iter_mut().find(|(known, _)| known == text);
                    if let Some((_, subjects)) = of_text {
                        *subjects = subjects.saturating_sub(1);
                        taken += 1;
                    }
                    counts.subjects.retain(|(_, subjects)| *subjects > 0);
                }
            }
            if taken > 0 {
                edits.erased.references += taken;
                let sealed = self.sealed(&key, &references);
                edits.values.insert(key, Some(sealed));
            }
        }
        Ok(())
    }
}
