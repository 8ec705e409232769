//! The sled tree: one atomic flushed write a batch, and recovery from it.

use super::databases;
use super::directory::{self, StateError};
use super::disk;
use super::keeper::Keeper;
use super::numbered::numbered;
use super::profile_journal::ProfileJournal;
use super::records::{Intent, ProfileChange, Progress};
use super::seal::{Keys, Sealer};
use crate::faults::crash_point;
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
use throng_core::ledger::per_subject::Ledger;

pub mod binding;
mod effect;
pub mod examine;
mod intending;
mod job;
pub mod kinds;
mod recover;
pub mod rewrite;
mod series;
pub use recover::Recovered;

const CHECK: &[u8] = b"check";
/// Key of the [`Progress`].
pub const PROGRESS: &[u8] = b"progress";
const INTENT: &[u8] = b"intent";
const BASELINE: &[u8] = b"baseline";
const EVIDENCE: &[u8] = b"evidence";

/// What has been met with the last batch whose effect was written.
const MET: &[u8] = b"met";

/// What a store knows of the database in force.
#[derive(Default)]
struct Known {
    /// A batch that has left and whose effect is not written yet.
    applied: Option<Intent>,
    /// The intent on the disk is of a batch that has not left and is not repeated.
    given_up: bool,
    /// Sequence up to which each ledger shard on disk is complete.
    shard_sequence: Vec<u64>,
    next_shard: usize,
    /// Bytes of shards that may be rewritten now: grows with the deltas.
    credit: usize,
    first_delta: u64,
    /// Ordinal of the first row of each stored part of the sample, by batch.
    sample_parts: Vec<(u64, u64)>,
    /// Number of the last row of each stored part of the window, by batch.
    row_parts: VecDeque<(u64, u64)>,
    /// Parts of the sample, and of the window, that go with the next write.
    forgotten: Vec<Vec<u8>>,
    forgotten_rows: Vec<u64>,
    profiles: ProfileJournal,
}

/// The state of one instance.
pub struct Store {
    path: PathBuf,
    /// The name of the database in force.
    database: String,
    keeper: Arc<Keeper>,
    sealer: Sealer,
    /// Identity of this state: part of the transactional id.
    id: String,
    known: Known,
    /// Bytes sealed for the next write.
    unwritten: Cell<usize>,
    /// The changelog keeps what concerns people; the directory keeps what an instance learns and intends.
    in_log: bool,
    /// Goes with the store: nothing is written to it.
    temporary: Option<TempDir>,
    /// The name of the database before this one, a copy of it, which is still in force.
    copied_from: Option<String>,
    /// Held for as long as this process has the directory: the last to go.
    _lock: File,
}

impl Store {
    /// Opens the state at `path`, or makes it. `secret` is `None` where the directory keeps its own.
    /// Loads what was applied into `ledger`; the pending intent, if any, is the caller's to decide on.
    ///
    /// # Errors
    /// Every [`StateError`]; nothing is changed on disk when the directory is foreign, damaged or of another secret.
    pub fn open(
        path: &Path,
        secret: Option<&[u8]>,
        ledger: &mut Ledger,
    ) -> Result<(Self, Keys, Recovered), StateError> {
        let new = directory::prepare(path)?;
        let (mut store, keys) = Self::unlock(path, secret, new)?;
        store.compact()?;
        let recovered = store.load(ledger)?;
        Ok((store, keys, recovered))
    }

    /// Opens the state at `path`, which must be there, and reads nothing of it yet.
    ///
    /// # Errors
    /// [`StateError::Missing`], and whatever [`open`](Self::open) is refused for.
    pub fn existing(path: &Path, secret: Option<&[u8]>) -> Result<(Self, Keys), StateError> {
        directory::must_exist(path)?;
        Self::unlock(path, secret, false)
    }

    /// The state in a prepared directory, which is `new` or not.
    fn unlock(path: &Path, secret: Option<&[u8]>, new: bool) -> Result<(Self, Keys), StateError> {
        if !new {
            directory::check_format(path)?;
        }
        let lock = databases::lock(path)?;
        let keys = directory::keys(path, secret, new)?;
        directory::check_secret(path, &keys.check, new)?;
        let database = databases::database(path)?;
        databases::clear_databases(path, &database)?;
        directory::clear_unfinished(path, new, &database)?;
        let keeper = Arc::new(Keeper::open(path, &database)?);
        let damaged = |what: &str| StateError::Damaged { path: path.to_owned(), what: what.to_owned() };
        let id = match (keeper.read(|d| d.tree.get(CHECK))?, new) {
            (Some(value), _) => {
                let (check, id) = value.split_at_checked(32).ok_or_else(|| damaged("its check value is cut short"))?;
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
            keeper,
            id,
            known: Known::default(),
            unwritten: Cell::new(0),
            in_log: false,
            temporary: None,
            copied_from: None,
            _lock: lock,
        };
        Ok((store, keys))
    }

    /// From here on a disk that does not answer makes the daemon not ready, and `stop` shortens the wait for it.
    pub fn watch(&mut self, telemetry: &Telemetry, stop: &Arc<AtomicBool>) {
        self.keeper.watch(telemetry, stop);
    }

    /// Bytes that are free on the disk of the state; 0 where the system does not tell.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        disk::free_bytes(&self.path).unwrap_or_default()
    }

    /// Bytes on disk; 0 where the disk does not say at once. That is a gauge, and no error of the release.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.keeper.glance(|d| d.db.size_on_disk().unwrap_or_default()).unwrap_or_default()
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Identity of this state, made once.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The error of a state whose parts do not fit together.
    #[must_use]
    pub fn damaged(&self, what: &str) -> StateError {
        StateError::Damaged { path: self.path.clone(), what: what.to_owned() }
    }

    /// Opens and reads a sealed value at its key.
    pub fn open_value<T: DeserializeOwned>(&self, key: &[u8], sealed: &[u8]) -> Result<T, StateError> {
        let plain = self.sealer.open(key, sealed).ok_or_else(|| self.damaged("a value does not open"))?;
        postcard::from_bytes(&plain).map_err(|_| self.damaged("a value cannot be read"))
    }

    /// Reads a value; none where there is none.
    pub fn read<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StateError> {
        let wanted = key.to_vec();
        match self.keeper.read(move |d| d.tree.get(wanted))? {
            Some(sealed) => self.open_value(key, &sealed).map(Some),
            None => Ok(None),
        }
    }

    fn scan(&self, prefix: &str) -> Result<Vec<(Vec<u8>, sled::IVec)>, StateError> {
        let prefix = format!("{prefix}/");
        let found = self.keeper.read(move |d| d.tree.scan_prefix(prefix).collect::<Result<Vec<_>, _>>())?;
        Ok(found.into_iter().map(|(k, v)| (k.to_vec(), v)).collect())
    }

    /// Keys of the rows of the window, and the rows of one of them: they are too large to be read all at once.
    fn row_keys(&self) -> Result<Vec<sled::IVec>, StateError> {
        self.keeper.read(|d| d.window.scan_prefix("rows/").keys().collect())
    }

    fn rows_of(&self, key: &sled::IVec) -> Result<Option<sled::IVec>, StateError> {
        let key = key.clone();
        self.keeper.read(move |d| d.window.get(key))
    }

    /// Seals a value for its key.
    #[must_use]
    pub fn sealed<T: Serialize + ?Sized>(&self, key: &[u8], value: &T) -> Vec<u8> {
        self.sealer.seal(key, &postcard::to_stdvec(value).expect("plain values always serialize"))
    }

    /// Seals a value that the next write takes along.
    fn seal<T: Serialize + ?Sized>(&self, key: &[u8], value: &T) -> Vec<u8> {
        let sealed = self.sealed(key, value);
        self.unwritten.set(self.unwritten.get() + key.len() + sealed.len());
        sealed
    }

    /// Writes where the stream stands between two batches.
    pub fn note_progress(&mut self, progress: &Progress) -> Result<(), StateError> {
        let mut batch = sled::Batch::default();
        batch.insert(PROGRESS, self.seal(PROGRESS, progress));
        self.commit(batch)
    }

    /// The version of the profiles for the next batch.
    #[must_use]
    pub fn profiles_version(&self) -> u64 {
        self.known.profiles.version
    }

    /// Notes profiles that have changed with the end of the batch that [`left`](Self::left): they are durable with its effect.
    pub fn note_profiles(&mut self, changes: Vec<ProfileChange>) {
        self.known.profiles.note(changes);
    }

    /// Writes profiles that have changed, and the effect of the last batch. Whatever batch was intended and has not left is given
    /// up: it is not to be repeated.
    pub fn settle_profiles(&mut self, changes: Vec<ProfileChange>, ledger: &Ledger) -> Result<(), StateError> {
        let mut batch = sled::Batch::default();
        self.known.profiles.note(changes);
        if self.known.applied.is_some() {
            self.write_applied(&mut batch, ledger);
        } else {
            self.write_profiles(&mut batch);
        }
        batch.remove(INTENT);
        self.commit(batch)?;
        self.known.given_up = false;
        Ok(())
    }

    fn write_profiles(&mut self, batch: &mut sled::Batch) {
        let written = self.known.profiles.write(batch, &self.sealer);
        self.unwritten.set(self.unwritten.get() + written);
    }

    /// Whether something is only in memory: what became of an intended batch, which has left or is given up.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.known.applied.is_some() || self.known.given_up
    }

    /// Writes now what became of the last intended batch.
    pub fn flush(&mut self, ledger: &Ledger) -> Result<(), StateError> {
        if !self.is_behind() {
            return Ok(());
        }
        let mut batch = sled::Batch::default();
        self.write_applied(&mut batch, ledger);
        batch.remove(INTENT);
        self.commit(batch)?;
        self.known.given_up = false;
        crash_point("settled");
        Ok(())
    }

    fn commit(&mut self, batch: sled::Batch) -> Result<(), StateError> {
        if self.temporary.is_some() {
            return Ok(());
        }
        crash_point("state-unwritten");
        let gone = std::mem::take(&mut self.known.forgotten_rows);
        let profiles = self.known.profiles.take_values();
        self.keeper.write(self.unwritten.take(), move |d| {
            d.tree.apply_batch(batch)?;
            // Behind the effect for which they go, in the same log.
            gone.into_iter().try_for_each(|sequence| d.window.remove(numbered("rows", sequence)).map(drop))?;
            crash_point("state-unflushed");
            d.tree.flush()?;
            // What a write of many values has taken the place of is freed by later visits, some at each: kilobytes a value.
            (0..profiles).try_for_each(|_| d.tree.contains_key(CHECK).map(drop))
        })?;
        Ok(())
    }
}
