//! One state read a second time while a daemon runs: for the engine that takes over from another.

use super::{Recovered, Store};
use crate::daemon::state::directory::{self, StateError};
use crate::daemon::state::keeper::Keeper;
use crate::daemon::state::profile_journal::ProfileJournal;
use crate::daemon::state::seal::{Keys, Sealer};
use crate::ledger::SHARDS;
use crate::ledger::per_subject::Ledger;
use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

impl Store {
    /// A store of the same state, read anew from the disk as a start reads it: for the engine that takes over from the one of this
    /// store. Nothing is written by either until one of them is gone, and everything must have been [flushed](Self::flush).
    /// `secret` as for [`open`](Self::open).
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn again(&self, secret: Option<&[u8]>, ledger: &mut Ledger) -> Result<(Self, Keys, Recovered), StateError> {
        let keys = directory::keys(&self.path, secret, false)?;
        let shared = (self.database.clone(), Arc::clone(&self.lock), Arc::clone(&self.keeper));
        let mut store = Self::unread(&self.path, shared, keys.sealer(), self.id.clone());
        let recovered = store.load(ledger)?;
        Ok((store, keys, recovered))
    }

    /// A store that knows nothing yet of what is on the disk.
    /// `database` is the one in force, with its lock and who has it.
    pub(super) fn unread(
        path: &Path,
        (database, lock, keeper): (String, Arc<File>, Arc<Keeper>),
        sealer: Sealer,
        id: String,
    ) -> Self {
        Self {
            path: path.to_owned(),
            database,
            sealer,
            keeper,
            id,
            applied: None,
            given_up: false,
            shard_sequence: vec![0; SHARDS],
            next_shard: 0,
            credit: 0,
            first_delta: 1,
            sample_parts: Vec::new(),
            row_parts: VecDeque::new(),
            forgotten: Vec::new(),
            forgotten_rows: Vec::new(),
            profiles: ProfileJournal::default(),
            unwritten: Cell::new(0),
            temporary: None,
            copied_from: None,
            lock,
        }
    }
}
