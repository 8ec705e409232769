//! The state of a job over files: a temporary one that is never written, or a copy that takes the place of the state at the end.

use super::{Recovered, Store};
use crate::daemon::state::databases;
use crate::daemon::state::directory::{self, StateError};
use crate::daemon::state::seal::Keys;
use crate::faults::crash_point;
use rand::{TryRngCore, rngs::OsRng};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use throng_core::ledger::per_subject::Ledger;

/// The file of the directory that says with which batch the last job ended.
const ENDS_WITH: &str = "ends-with";

/// How the names of temporary states begin.
const TEMPORARY: &str = "throng-state-";

/// How old a temporary state is at least that nobody has made to its end, and that is taken for left.
const MAKING_TIME: Duration = Duration::from_secs(3600);

/// Removes the temporary states of this user whose processes have been killed. What cannot be removed stays: nothing is read from it.
fn remove_leftovers(folder: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_named_so = entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes());
        // Of a link, the link itself.
        let Some(found) = is_named_so.then(|| entry.metadata().ok()).flatten() else { continue };
        if !found.is_dir() || found.uid() != own {
            continue;
        }
        let age = found.modified().ok().and_then(|changed| changed.elapsed().ok()).unwrap_or_default();
        // Made to its end it has been locked since; before, its process may be about to lock it.
        if directory::must_exist(&path).is_err() && age < MAKING_TIME {
            continue;
        }
        if let Ok(_held) = databases::lock(&path) {
            let (Ok(()) | Err(_)) = std::fs::remove_dir_all(&path);
        }
    }
}

impl Store {
    /// Opens a state that lasts as long as the store: nothing of a batch is written to it. Without a `secret` one is drawn, which is
    /// kept in memory alone.
    ///
    /// # Errors
    /// When there is no temporary directory, and as for [`open`](Self::open).
    pub fn open_temporary(secret: Option<&[u8]>, ledger: &mut Ledger) -> Result<(Self, Keys, Recovered), StateError> {
        let failed = |source| StateError::Io { path: std::env::temp_dir(), source };
        let mut drawn = [0; 32];
        let secret = if let Some(secret) = secret {
            secret
        } else {
            OsRng.try_fill_bytes(&mut drawn).map_err(|error| failed(std::io::Error::other(error.to_string())))?;
            &drawn
        };
        remove_leftovers(&std::env::temp_dir());
        let directory = tempfile::Builder::new().prefix(TEMPORARY).tempdir().map_err(failed)?;
        let (mut store, keys, recovered) = Self::open(directory.path(), Some(secret), ledger)?;
        store.temporary = Some(directory);
        Ok((store, keys, recovered))
    }

    /// Whether what is written is the state from then on: not where it is temporary, or a copy.
    #[must_use]
    pub fn is_in_force(&self) -> bool {
        self.temporary.is_none() && self.copied_from.is_none()
    }

    /// Puts the copy that was worked on, which ends with batch `sequence`, in the place of the state. Everything must have been
    /// [flushed](Self::flush).
    ///
    /// # Errors
    /// When it cannot be written; the state before is in force then.
    pub fn keep_copy(&mut self, sequence: u64) -> Result<(), StateError> {
        let Some(before) = self.copied_from.take() else { return Ok(()) };
        databases::onto_disk(&self.path, &self.database)?;
        crash_point("job-unkept");
        if let Err(error) = databases::name_database(&self.path, &self.database) {
            self.copied_from = Some(before);
            return Err(error);
        }
        directory::put(&self.path, ENDS_WITH, sequence.to_string().as_bytes())?;
        databases::clear_databases(&self.path, &self.database)
    }

    /// Refuses a state that ends before the last job did: a database that has lost its end is an older copy of itself.
    pub fn expect_last_job(&self, sequence: u64) -> Result<(), StateError> {
        let path = self.path.join(ENDS_WITH);
        match std::fs::read_to_string(&path) {
            Ok(text) if text.trim().parse::<u64>().is_ok_and(|last| last <= sequence) => Ok(()),
            Ok(last) => {
                Err(self
                    .damaged(&format!("it ends with batch {sequence}, and the last job with batch {}", last.trim())))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(StateError::Io { path, source }),
        }
    }
}
