//! A database that takes far more room than what it holds is written anew at a start.
//!
//! The database frees what was written over piece by piece, and what a killed process has left of that work stays: after many kills
//! most of its files may hold nothing. A copy holds only the values, in the place of the old one by the way of an erasure.

use super::Store;
use crate::daemon::state::databases;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::keeper::Keeper;
use crate::faults;
use crate::faults::crash_point;
use std::sync::Arc;

/// Below this many bytes nobody minds.
const FLOOR: u64 = 64 << 20;
/// Bytes on disk for each byte that is held, up to which nothing is done: a database that works on has room to spare.
const TIMES: u64 = 6;
/// Values copied at a time.
const PART: usize = 64;

impl Store {
    /// Writes the database anew where it takes more than 64 MiB and six times what it holds. Where there is no room for that it stays as
    /// it is, which is said.
    ///
    /// # Errors
    /// When the database fails. Whatever ends the process in between, one of the two is in force, and each holds everything.
    pub(super) fn compact(&mut self) -> Result<(), StateError> {
        let disk = self.keeper.read(|d| d.db.size_on_disk())?;
        let asked = faults::is_set("state-compacts");
        if disk < FLOOR && !asked {
            return Ok(());
        }
        let held = self.keeper.read(|d| {
            let mut bytes = 0;
            for value in d.tree.iter().chain(d.window.iter()) {
                let (key, value) = value?;
                bytes += (key.len() + value.len()) as u64;
            }
            Ok(bytes)
        })?;
        if disk < FLOOR + TIMES * held && !asked {
            return Ok(());
        }
        let name = databases::next_database(&self.database);
        let new = match self.copy_to(&name) {
            Ok(new) => new,
            Err(error @ StateError::NoRoom { .. }) => {
                tracing::warn!(%error, disk, held, "the state takes more room than it needs, and there is too little to write it anew");
                return databases::clear_databases(&self.path, &self.database);
            }
            Err(error) => return Err(error),
        };
        databases::onto_disk(&self.path, &name)?;
        crash_point("compaction-copied");
        databases::name_database(&self.path, &name)?;
        crash_point("compaction-named");
        self.database = name;
        drop(std::mem::replace(&mut self.keeper, Arc::new(new)));
        databases::clear_databases(&self.path, &self.database)?;
        tracing::info!(before = disk, after = self.bytes(), held, "the state was written anew to free its disk");
        Ok(())
    }

    /// A database of all values, as they are.
    pub(super) fn copy_to(&self, name: &str) -> Result<Keeper, StateError> {
        let new = Keeper::open(&self.path, name)?;
        for window in [false, true] {
            let mut from: Vec<u8> = Vec::new();
            loop {
                let start = from.clone();
                let part = self.keeper.read(move |d| {
                    let tree = if window { &d.window } else { &d.tree };
                    tree.range(start..).take(PART).collect::<Result<Vec<_>, sled::Error>>()
                })?;
                let Some((last, _)) = part.last() else { break };
                from = [last.as_ref(), &[0]].concat();
                let bytes = part.iter().map(|(key, value)| key.len() + value.len()).sum();
                new.write(bytes, move |d| {
                    let tree = if window { &d.window } else { &d.tree };
                    part.into_iter().try_for_each(|(key, value)| tree.insert(key, value).map(drop))
                })?;
            }
        }
        new.write(0, |d| d.tree.flush())?;
        Ok(new)
    }
}
