//! Rewrites of the database: without the people of an erasure, without free space, or as the working copy of a job over files.
//!
//! sled keeps removed and replaced values on the disk until it reuses their space. So a rewrite fills a new database beside the one in
//! force, writes its name to the file `database`, whole or not at all, and removes the old one. A start finds the state before the
//! rewrite or the state after it, nothing between.

use super::Store;
use super::kinds::Kind;
use crate::daemon::state::databases;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::keeper::Keeper;
use crate::faults::{self, crash_point};
use sled::IVec;
use std::sync::Arc;

/// Bytes of values that are read and written at a time; at least one value.
const PART_BYTES: usize = 1 << 20;
/// A database of fewer bytes is never compacted.
const MIN_COMPACTED: u64 = 64 << 20;
/// Bytes on the disk per byte of values up to which a database is not compacted.
const MAX_OVERHEAD: u64 = 6;

/// A value in the new database.
pub enum Edit {
    /// The same.
    Keep,
    /// Another one, sealed.
    Replace(Vec<u8>),
    /// None.
    Remove,
}

/// Changes that a rewrite makes.
pub trait Editor {
    /// Edits one value. Called by descending keys, first for the rows of the window.
    fn edit(&mut self, store: &Store, kind: Kind, key: &[u8], sealed: &[u8]) -> Result<Edit, StateError>;

    /// Values that are written last, sealed.
    fn additions(&self, _store: &Store) -> Vec<(&'static [u8], Vec<u8>)> {
        Vec::new()
    }
}

/// Changes nothing.
struct Copy;

impl Editor for Copy {
    fn edit(&mut self, _: &Store, _: Kind, _: &[u8], _: &[u8]) -> Result<Edit, StateError> {
        Ok(Edit::Keep)
    }
}

/// The last values of a tree before the key `end`, by descending keys.
fn part_before(tree: &sled::Tree, end: Option<IVec>) -> sled::Result<Vec<(IVec, IVec)>> {
    let values = end.map_or_else(|| tree.iter(), |end| tree.range(..end));
    let (mut part, mut bytes) = (Vec::new(), 0);
    for value in values.rev() {
        let (key, value) = value?;
        bytes += key.len() + value.len();
        part.push((key, value));
        if bytes >= PART_BYTES {
            break;
        }
    }
    Ok(part)
}

impl Store {
    /// Reads all values in parts, by descending keys: first the rows of the window (`true`), then the others.
    fn read_parts(
        &self,
        mut visit: impl FnMut(bool, Vec<(IVec, IVec)>) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        for window in [true, false] {
            let mut end: Option<IVec> = None;
            loop {
                let before = end.take();
                let part = self.keeper.read(move |d| part_before(if window { &d.window } else { &d.tree }, before))?;
                let Some((first, _)) = part.last() else { break };
                end = Some(first.clone());
                visit(window, part)?;
            }
        }
        Ok(())
    }

    /// Visits all values, in the order of [`Editor::edit`].
    pub fn visit(&self, mut visit: impl FnMut(Kind, &[u8], &[u8]) -> Result<(), StateError>) -> Result<(), StateError> {
        self.read_parts(|window, part| {
            part.iter().try_for_each(|(key, sealed)| visit(Kind::of(window, key), key, sealed))
        })
    }

    fn fill(&self, new: &Keeper, editor: &mut dyn Editor) -> Result<(), StateError> {
        self.read_parts(|window, part| {
            let (mut kept, mut bytes) = (sled::Batch::default(), 0);
            for (key, sealed) in part {
                let sealed = match editor.edit(self, Kind::of(window, &key), &key, &sealed)? {
                    Edit::Keep => sealed,
                    Edit::Replace(sealed) => sealed.into(),
                    Edit::Remove => continue,
                };
                bytes += key.len() + sealed.len();
                kept.insert(key, sealed);
            }
            new.write(bytes, move |d| if window { &d.window } else { &d.tree }.apply_batch(kept))
        })?;
        for (key, sealed) in editor.additions(self) {
            new.write(key.len() + sealed.len(), move |d| d.tree.insert(key, sealed).map(drop))?;
        }
        new.write(0, |d| d.tree.flush().map(drop))
    }

    /// Fills a new database and puts it into force. What only the memory knows must have been [flushed](Self::flush).
    ///
    /// # Errors
    /// When the database fails. The old one is in force then, unless [`database`](Self::database) has changed.
    pub fn rewrite(&mut self, editor: &mut dyn Editor) -> Result<(), StateError> {
        databases::clear_databases(&self.path, &self.database)?;
        let name = databases::next_database(&self.database);
        let mut new = self.write_database(&name, editor).inspect_err(|_| {
            self.clear_others("an unfinished database stays until the next start");
        })?;
        crash_point("database-copied");
        databases::name_database(&self.path, &name)?;
        crash_point("database-named");
        self.database = name;
        new.succeed(&self.keeper);
        // Waits until the thread of the old database has closed its files.
        drop(std::mem::replace(&mut self.keeper, Arc::new(new)));
        self.clear_others("the old database stays until the next start");
        crash_point("database-cleared");
        Ok(())
    }

    /// Removes the databases that are not in force. A failure is only logged: the next rewrite and the next start try again.
    fn clear_others(&self, what: &'static str) {
        if let Err(error) = databases::clear_databases(&self.path, &self.database) {
            tracing::warn!(%error, "{what}");
        }
    }

    /// Writes the database `name` to its end and onto the disk.
    fn write_database(&self, name: &str, editor: &mut dyn Editor) -> Result<Keeper, StateError> {
        let new = Keeper::open(&self.path, name)?;
        crash_point("database-begun");
        if faults::is_set("database-fails") {
            return Err(StateError::Broken { path: self.path.clone(), why: "a test has made it fail".to_owned() });
        }
        self.fill(&new, editor)?;
        databases::onto_disk(&self.path, name)?;
        Ok(new)
    }

    /// Name of the database in force. It changes with every [`rewrite`](Self::rewrite).
    #[must_use]
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Rewrites a database that takes more than 64 MiB and six times the bytes of its values: what a killed process has not freed stays on
    /// the disk. Without room for the copy the database stays as it is.
    pub(super) fn compact(&mut self) -> Result<(), StateError> {
        let disk = self.keeper.read(|d| d.db.size_on_disk())?;
        if disk < MIN_COMPACTED {
            return Ok(());
        }
        let mut held = 0;
        self.visit(|_, key, sealed| {
            held += (key.len() + sealed.len()) as u64;
            Ok(())
        })?;
        if disk < MIN_COMPACTED + MAX_OVERHEAD * held {
            return Ok(());
        }
        match self.rewrite(&mut Copy) {
            Err(error @ StateError::NoRoom { .. }) => {
                tracing::warn!(%error, disk, held, "the state takes more room than it needs, and there is too little to rewrite it");
                Ok(())
            }
            Err(error) => Err(error),
            Ok(()) => {
                tracing::info!(before = disk, after = self.bytes(), held, "rewrote the state to free its disk");
                Ok(())
            }
        }
    }

    /// Goes on with a copy of the database: the state stays as it is until [`keep_copy`](Self::keep_copy). The next start removes a copy
    /// that is not kept.
    pub fn work_on_copy(&mut self) -> Result<(), StateError> {
        let name = databases::next_database(&self.database);
        let copy = Keeper::open(&self.path, &name)?;
        self.fill(&copy, &mut Copy)?;
        drop(std::mem::replace(&mut self.keeper, Arc::new(copy)));
        self.copied_from = Some(std::mem::replace(&mut self.database, name));
        Ok(())
    }
}
