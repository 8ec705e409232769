//! State of a job over files: temporary, or a copy.

use super::{RecoveredState, StateStore};
use crate::daemon::state::databases;
use crate::daemon::state::directory::{self, StateError};
use crate::daemon::state::state_keys::StateKeys;
use rand::{TryRngCore, rngs::OsRng};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use throng_core::faults::crash_point;
use throng_core::ledger::subject_ledger::SubjectLedger;

const LAST_BATCH_FILE: &str = "ends-with";

const TEMPORARY_PREFIX: &str = "throng-state-";

const CREATION_TIMEOUT: Duration = Duration::from_secs(3600);

/// Failures are ignored: these states are never read.
fn remove_abandoned_states(folder: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_named_so = entry.file_name().as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes());
        // The metadata of a link are its own.
        let Some(found) = is_named_so.then(|| entry.metadata().ok()).flatten() else { continue };
        if !found.is_dir() || found.uid() != own {
            continue;
        }
        let age = found.modified().ok().and_then(|changed| changed.elapsed().ok()).unwrap_or_default();
        // A complete state is locked from its creation; an incomplete one may soon be.
        if directory::require_state(&path).is_err() && age < CREATION_TIMEOUT {
            continue;
        }
        if let Ok(_held) = databases::lock_directory(&path) {
            let (Ok(()) | Err(_)) = std::fs::remove_dir_all(&path);
        }
    }
}

impl StateStore {
    /// Opens a temporary state, which receives no batch. Without a `secret`, a random one stays in memory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_temporary(
        secret: Option<&[u8]>,
        ledger: &mut SubjectLedger,
    ) -> Result<(Self, StateKeys, RecoveredState), StateError> {
        let failed = |source| StateError::Io { path: std::env::temp_dir(), source };
        let mut drawn = [0; 32];
        let secret = if let Some(secret) = secret {
            secret
        } else {
            OsRng.try_fill_bytes(&mut drawn).map_err(|error| failed(std::io::Error::other(error.to_string())))?;
            &drawn
        };
        remove_abandoned_states(&std::env::temp_dir());
        let directory = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempdir().map_err(failed)?;
        let (mut store, keys, recovered) = Self::open(directory.path(), Some(secret), ledger)?;
        store.temporary = Some(directory);
        Ok((store, keys, recovered))
    }

    /// Returns false for a temporary state or a copy.
    #[must_use]
    pub fn writes_take_effect(&self) -> bool {
        self.temporary.is_none() && self.copied_from.is_none()
    }

    /// Replaces the state with the working copy of batch `sequence`. The caller must [flush](Self::flush) first.
    ///
    /// # Errors
    /// The previous state may then stay in force.
    pub fn promote_copy(&mut self, sequence: u64) -> Result<(), StateError> {
        let Some(before) = self.copied_from.take() else { return Ok(()) };
        databases::sync_database(&self.path, &self.database)?;
        crash_point("job-unkept");
        if let Err(error) = databases::put_database_in_force(&self.path, &self.database) {
            self.copied_from = Some(before);
            return Err(error);
        }
        directory::write_file_atomically(&self.path, LAST_BATCH_FILE, sequence.to_string().as_bytes())?;
        databases::remove_other_databases(&self.path, &self.database)
    }

    /// Refuses a state older than the last job's, or truncated.
    pub fn check_last_job(&self, sequence: u64) -> Result<(), StateError> {
        let path = self.path.join(LAST_BATCH_FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) if text.trim().parse::<u64>().is_ok_and(|last| last <= sequence) => Ok(()),
            Ok(last) => Err(self.damage_error(&format!(
                "it ends with batch {sequence}, but the last job ended with batch {}",
                last.trim()
            ))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(StateError::Io { path, source }),
        }
    }
}
