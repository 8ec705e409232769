//! Rewrites into a new database, which is atomically put into force: sled keeps removed values on disk.

use super::StateStore;
use super::value_kinds::StoredValueKind;
use crate::daemon::state::database_thread::DatabaseThread;
use crate::daemon::state::databases;
use crate::daemon::state::directory::StateError;
use sled::IVec;
use std::sync::Arc;
use throng_core::faults::{self, crash_point};

const PART_BYTES: usize = 1 << 20;
/// Minimum size in bytes for a compaction.
const MIN_COMPACTED: u64 = 64 << 20;
/// Maximum bytes on disk per byte of values.
const MAX_OVERHEAD: u64 = 6;

/// Change of one value in the new database.
pub enum ValueEdit {
    /// Keeps the value.
    Keep,
    /// Replaces the value with another sealed one.
    Replace(Vec<u8>),
    /// Removes the value.
    Remove,
}

/// Changes made by a rewrite.
pub trait ValueEditor {
    /// Edits one value, by descending keys, window rows first.
    fn edit(
        &mut self,
        store: &StateStore,
        kind: StoredValueKind,
        key: &[u8],
        sealed: &[u8],
    ) -> Result<ValueEdit, StateError>;

    /// Returns sealed values written last.
    fn additions(&self, _store: &StateStore) -> Vec<(&'static [u8], Vec<u8>)> {
        Vec::new()
    }
}

struct UneditedCopy;

impl ValueEditor for UneditedCopy {
    fn edit(&mut self, _: &StateStore, _: StoredValueKind, _: &[u8], _: &[u8]) -> Result<ValueEdit, StateError> {
        Ok(ValueEdit::Keep)
    }
}

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

impl StateStore {
    fn read_parts(
        &self,
        mut visit: impl FnMut(bool, Vec<(IVec, IVec)>) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        for window in [true, false] {
            let mut end: Option<IVec> = None;
            loop {
                let before = end.take();
                let part = self
                    .database_handle
                    .read(move |d| part_before(if window { &d.window } else { &d.tree }, before))?;
                let Some((first, _)) = part.last() else { break };
                end = Some(first.clone());
                visit(window, part)?;
            }
        }
        Ok(())
    }

    /// Visits all values in the order of [`ValueEditor::edit`].
    pub fn visit_values(
        &self,
        mut visit: impl FnMut(StoredValueKind, &[u8], &[u8]) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        self.read_parts(|window, part| {
            part.iter().try_for_each(|(key, sealed)| visit(StoredValueKind::of(window, key), key, sealed))
        })
    }

    fn fill_database(&self, new: &DatabaseThread, editor: &mut dyn ValueEditor) -> Result<(), StateError> {
        self.read_parts(|window, part| {
            let (mut kept, mut bytes) = (sled::Batch::default(), 0);
            for (key, sealed) in part {
                let sealed = match editor.edit(self, StoredValueKind::of(window, &key), &key, &sealed)? {
                    ValueEdit::Keep => sealed,
                    ValueEdit::Replace(sealed) => sealed.into(),
                    ValueEdit::Remove => continue,
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

    /// Fills a new database and puts it into force. The caller must [flush](Self::flush) first.
    ///
    /// # Errors
    /// The old one stays in force, unless [`database`](Self::database) has changed.
    pub fn rewrite(&mut self, editor: &mut dyn ValueEditor) -> Result<(), StateError> {
        databases::remove_other_databases(&self.path, &self.database)?;
        let name = databases::next_database(&self.database);
        let mut new = self.write_database(&name, editor).inspect_err(|_| {
            self.remove_other_databases_or_warn("cannot remove an unfinished database: it stays until the next start");
        })?;
        crash_point("database-copied");
        databases::put_database_in_force(&self.path, &name)?;
        crash_point("database-named");
        self.database = name;
        new.inherit_watch(&self.database_handle);
        // Waits until the old database is closed.
        drop(std::mem::replace(&mut self.database_handle, Arc::new(new)));
        self.remove_other_databases_or_warn("cannot remove the old database: it stays until the next start");
        crash_point("database-cleared");
        Ok(())
    }

    fn remove_other_databases_or_warn(&self, what: &'static str) {
        if let Err(error) = databases::remove_other_databases(&self.path, &self.database) {
            tracing::warn!(%error, "{what}");
        }
    }

    fn write_database(&self, name: &str, editor: &mut dyn ValueEditor) -> Result<DatabaseThread, StateError> {
        let new = DatabaseThread::open(&self.path, name)?;
        crash_point("database-begun");
        if faults::is_set("database-fails") {
            return Err(StateError::DatabaseStopped {
                path: self.path.clone(),
                why: "a test has made it fail".to_owned(),
            });
        }
        self.fill_database(&new, editor)?;
        databases::sync_database(&self.path, name)?;
        Ok(new)
    }

    /// Returns the name of the database in force.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Compacts a database above these limits: a killed process leaves free space on disk. Without room for the copy it
    /// stays unchanged.
    pub(super) fn compact(&mut self) -> Result<(), StateError> {
        let disk = self.database_handle.read(|d| d.db.size_on_disk())?;
        if disk < MIN_COMPACTED {
            return Ok(());
        }
        let mut held = 0;
        self.visit_values(|_, key, sealed| {
            held += (key.len() + sealed.len()) as u64;
            Ok(())
        })?;
        if disk < MIN_COMPACTED + MAX_OVERHEAD * held {
            return Ok(());
        }
        match self.rewrite(&mut UneditedCopy) {
            Err(error @ StateError::DiskFull { .. }) => {
                tracing::warn!(%error, disk, held, "cannot compact the state: the disk has too little free space for the copy (free disk space)");
                Ok(())
            }
            Err(error) => Err(error),
            Ok(()) => {
                tracing::info!(before = disk, after = self.bytes(), held, "rewrote the state to free disk space");
                Ok(())
            }
        }
    }

    /// Switches to a copy until [`promote_copy`](Self::promote_copy).
    pub fn work_on_copy(&mut self) -> Result<(), StateError> {
        let name = databases::next_database(&self.database);
        let copy = DatabaseThread::open(&self.path, &name)?;
        self.fill_database(&copy, &mut UneditedCopy)?;
        drop(std::mem::replace(&mut self.database_handle, Arc::new(copy)));
        self.copied_from = Some(std::mem::replace(&mut self.database, name));
        Ok(())
    }
}
