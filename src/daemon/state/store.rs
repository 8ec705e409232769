//! The sled database: one atomic flushed write per batch, and recovery.

use super::database_thread::DatabaseThread;
use super::databases;
use super::directory::{self, StateError};
use super::disk;
use super::numbered_keys::numbered_key;
use super::profile_journal::ProfileJournal;
use super::records::{BatchIntent, ProfileChange, StreamProgress};
use super::state_keys::{Sealer, StateKeys};
use crate::telemetry::Telemetry;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;
use throng_core::faults::crash_point;
use throng_core::ledger::subject_ledger::SubjectLedger;

mod batch_effect;
mod batch_intent;
pub mod examine;
mod job_state;
mod recovered_state;
pub mod rewrite;
pub mod state_binding;
mod stored_series;
pub mod value_kinds;
pub use recovered_state::RecoveredState;

const CHECK: &[u8] = b"check";
/// Key of the [`StreamProgress`].
pub const PROGRESS: &[u8] = b"progress";
const INTENT: &[u8] = b"intent";
const BASELINE: &[u8] = b"baseline";
const EVIDENCE: &[u8] = b"evidence";

/// Key of the findings.
const FINDINGS_KEY: &[u8] = b"met";

#[derive(Default)]
struct StoreBookkeeping {
    /// Released batch with an unwritten effect.
    applied: Option<BatchIntent>,
    /// Intent on disk without release or retry.
    given_up: bool,
    /// Last complete sequence of each ledger shard.
    shard_sequence: Vec<u64>,
    next_shard: usize,
    /// Bytes of shards that may be rewritten now.
    credit: usize,
    first_delta: u64,
    sample_parts: Vec<(u64, u64)>,
    row_parts: VecDeque<(u64, u64)>,
    /// Removed by the next write.
    pruned_keys: Vec<Vec<u8>>,
    pruned_row_parts: Vec<u64>,
    profiles: ProfileJournal,
}

/// State of one instance.
pub struct StateStore {
    path: PathBuf,
    database: String,
    database_handle: Arc<DatabaseThread>,
    sealer: Sealer,
    /// Part of the transactional id.
    id: String,
    bookkeeping: StoreBookkeeping,
    unwritten: Cell<usize>,
    /// The changelog stores the data about subjects.
    uses_changelog: bool,
    /// No batch is written to it.
    temporary: Option<TempDir>,
    /// Original, while the store works on a copy.
    copied_from: Option<String>,
    /// Declared last: dropped last.
    _lock: File,
}

impl StateStore {
    /// Opens or creates the state, and loads the applied batches into `ledger`. The caller decides a pending intent.
    ///
    /// # Errors
    /// Every [`StateError`]; a foreign or damaged directory stays unchanged.
    pub fn open(
        path: &Path,
        secret: Option<&[u8]>,
        ledger: &mut SubjectLedger,
    ) -> Result<(Self, StateKeys, RecoveredState), StateError> {
        let new = directory::prepare_directory(path)?;
        let (mut store, keys) = Self::open_prepared(path, secret, new)?;
        store.compact()?;
        let recovered = store.load(ledger)?;
        Ok((store, keys, recovered))
    }

    /// Opens an existing state without reading its values.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`StateError::MissingSpellings`].
    pub fn open_existing(path: &Path, secret: Option<&[u8]>) -> Result<(Self, StateKeys), StateError> {
        directory::require_state(path)?;
        Self::open_prepared(path, secret, false)
    }

    fn open_prepared(path: &Path, secret: Option<&[u8]>, new: bool) -> Result<(Self, StateKeys), StateError> {
        if !new {
            directory::check_format(path)?;
        }
        let lock = databases::lock_directory(path)?;
        let keys = directory::directory_keys(path, secret, new)?;
        directory::check_secret(path, &keys.check, new)?;
        let database = databases::database_in_force(path)?;
        databases::remove_other_databases(path, &database)?;
        directory::clear_unfinished(path, new, &database)?;
        let keeper = Arc::new(DatabaseThread::open(path, &database)?);
        let damaged = |what: &str| StateError::Damaged { path: path.to_owned(), what: what.to_owned() };
        let id = match (keeper.read(|d| d.tree.get(CHECK))?, new) {
            (Some(value), _) => {
                let (check, id) = value.split_at_checked(32).ok_or_else(|| damaged("its check value is truncated"))?;
                if check != keys.check {
                    return Err(StateError::WrongSecret(path.to_owned()));
                }
                String::from_utf8(id.to_vec()).map_err(|_| damaged("its identity cannot be read"))?
            }
            (None, false) => return Err(damaged("the database is empty")),
            (None, true) => {
                let id = uuid::Uuid::new_v4().to_string();
                let value = [&keys.check[..], id.as_bytes()].concat();
                keeper.write(value.len(), move |d| d.tree.insert(CHECK, value).and_then(|_| d.tree.flush()))?;
                crash_point("state-unmarked");
                id
            }
        };
        if new {
            directory::write_format(path)?;
        }
        let store = Self {
            path: path.to_owned(),
            database,
            sealer: keys.sealer(),
            database_handle: keeper,
            id,
            bookkeeping: StoreBookkeeping::default(),
            unwritten: Cell::new(0),
            uses_changelog: false,
            temporary: None,
            copied_from: None,
            _lock: lock,
        };
        Ok((store, keys))
    }

    /// Reports an unresponsive disk; waits less once `stop` is set.
    pub fn watch(&mut self, telemetry: &Telemetry, stop: &Arc<AtomicBool>) {
        self.database_handle.watch(telemetry, stop);
    }

    /// Returns the free bytes on the disk; 0 if unknown.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        disk::free_bytes(&self.path).unwrap_or_default()
    }

    /// Returns the bytes on disk, for a gauge; 0 if unknown.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.database_handle.try_read_database(|d| d.db.size_on_disk().unwrap_or_default()).unwrap_or_default()
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the identity of this state, created once.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the error of inconsistent parts.
    #[must_use]
    pub fn damage_error(&self, what: &str) -> StateError {
        StateError::Damaged { path: self.path.clone(), what: what.to_owned() }
    }

    /// Opens and deserializes the value sealed under `key`.
    pub fn open_value<T: DeserializeOwned>(&self, key: &[u8], sealed: &[u8]) -> Result<T, StateError> {
        let plain = self.sealer.open(key, sealed).ok_or_else(|| self.damage_error("a value cannot be decrypted"))?;
        postcard::from_bytes(&plain).map_err(|_| self.damage_error("a value cannot be read"))
    }

    /// Reads a value, if present.
    pub fn read<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StateError> {
        let wanted = key.to_vec();
        match self.database_handle.read(move |d| d.tree.get(wanted))? {
            Some(sealed) => self.open_value(key, &sealed).map(Some),
            None => Ok(None),
        }
    }

    fn scan(&self, prefix: &str) -> Result<Vec<(Vec<u8>, sled::IVec)>, StateError> {
        let prefix = format!("{prefix}/");
        let found = self.database_handle.read(move |d| d.tree.scan_prefix(prefix).collect::<Result<Vec<_>, _>>())?;
        Ok(found.into_iter().map(|(k, v)| (k.to_vec(), v)).collect())
    }

    /// Rows are read by key, because together they are too large.
    fn row_keys(&self) -> Result<Vec<sled::IVec>, StateError> {
        self.database_handle.read(|d| d.window.scan_prefix("rows/").keys().collect())
    }

    fn read_window_rows(&self, key: &sled::IVec) -> Result<Option<sled::IVec>, StateError> {
        let key = key.clone();
        self.database_handle.read(move |d| d.window.get(key))
    }

    /// Seals a value for its key.
    #[must_use]
    pub fn seal_value<T: Serialize + ?Sized>(&self, key: &[u8], value: &T) -> Vec<u8> {
        self.sealer.seal(key, &postcard::to_stdvec(value).expect("plain values always serialize"))
    }

    fn seal_for_write<T: Serialize + ?Sized>(&self, key: &[u8], value: &T) -> Vec<u8> {
        let sealed = self.seal_value(key, value);
        self.unwritten.set(self.unwritten.get() + key.len() + sealed.len());
        sealed
    }

    /// Writes the progress between two batches.
    pub fn write_progress(&mut self, progress: &StreamProgress) -> Result<(), StateError> {
        let mut batch = sled::Batch::default();
        batch.insert(PROGRESS, self.seal_for_write(PROGRESS, progress));
        self.commit(batch)
    }

    /// Returns the version of the profiles for the next batch.
    #[must_use]
    pub fn profiles_version(&self) -> u64 {
        self.bookkeeping.profiles.version
    }

    /// Queues changed profiles, durable with the effect of the released batch.
    pub fn queue_profiles(&mut self, changes: Vec<ProfileChange>) {
        self.bookkeeping.profiles.queue_changes(changes);
    }

    /// Writes changed profiles and the last effect; gives up an unreleased intent.
    pub fn commit_profiles(&mut self, changes: Vec<ProfileChange>, ledger: &SubjectLedger) -> Result<(), StateError> {
        let mut batch = sled::Batch::default();
        self.bookkeeping.profiles.queue_changes(changes);
        if self.bookkeeping.applied.is_some() {
            self.write_batch_effect(&mut batch, ledger);
        } else {
            self.write_profiles(&mut batch);
        }
        batch.remove(INTENT);
        self.commit(batch)?;
        self.bookkeeping.given_up = false;
        Ok(())
    }

    fn write_profiles(&mut self, batch: &mut sled::Batch) {
        let written = self.bookkeeping.profiles.write(batch, &self.sealer);
        self.unwritten.set(self.unwritten.get() + written);
    }

    /// Returns true if the last outcome is only in memory.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.bookkeeping.applied.is_some() || self.bookkeeping.given_up
    }

    /// Writes the outcome of the last intended batch.
    pub fn flush(&mut self, ledger: &SubjectLedger) -> Result<(), StateError> {
        if !self.is_behind() {
            return Ok(());
        }
        let mut batch = sled::Batch::default();
        self.write_batch_effect(&mut batch, ledger);
        batch.remove(INTENT);
        self.commit(batch)?;
        self.bookkeeping.given_up = false;
        crash_point("settled");
        Ok(())
    }

    fn commit(&mut self, batch: sled::Batch) -> Result<(), StateError> {
        if self.temporary.is_some() {
            return Ok(());
        }
        crash_point("state-unwritten");
        let gone = std::mem::take(&mut self.bookkeeping.pruned_row_parts);
        let profiles = self.bookkeeping.profiles.take_value_count();
        self.database_handle.write(self.unwritten.take(), move |d| {
            d.tree.apply_batch(batch)?;
            // After the effect that makes them obsolete, in the same log.
            gone.into_iter().try_for_each(|sequence| d.window.remove(numbered_key("rows", sequence)).map(drop))?;
            crash_point("state-unflushed");
            d.tree.flush()?;
            // sled frees replaced large values only during later accesses.
            (0..profiles).try_for_each(|_| d.tree.contains_key(CHECK).map(drop))
        })?;
        Ok(())
    }
}
