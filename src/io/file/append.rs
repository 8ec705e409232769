//! A file that grows by whole commits and forgets what was not committed.

use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::SinkError;
use super::fingerprint::fingerprint;

/// Bytes gathered before they are written.
const PENDING_BYTES: usize = 1 << 20;

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Mode 0666 less the process's umask.
    Shared,
    /// Mode 0600, also on a file that was there before.
    Private,
}

/// A file with a preamble (a CSV header) that appends, syncs and truncates.
#[derive(Debug)]
pub(super) struct AppendFile {
    path: PathBuf,
    file: File,
    preamble: Vec<u8>,
    pending: Vec<u8>,
    /// Bytes handed to the file, without the pending ones.
    written: u64,
    broken: bool,
}

impl AppendFile {
    /// Opens the file, locks it for as long as it is open, and truncates it to `durable`; a length of 0 creates it and
    /// writes the preamble.
    pub fn open(path: &Path, access: Access, preamble: Vec<u8>, durable: u64) -> Result<Self, SinkError> {
        let fault = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound if durable > 0 => SinkError::Missing { path: path.into(), durable },
            _ => SinkError::Open { path: path.into(), source },
        };
        let mode = if access == Access::Private { 0o600 } else { 0o666 };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(durable == 0).truncate(false).mode(mode);
        let file = options.open(path).map_err(fault)?;
        let metadata = file.metadata().map_err(fault)?;
        if !metadata.is_file() {
            return Err(SinkError::NotRegular { path: path.into() });
        }
        lock(&file, path)?;
        if access == Access::Private && metadata.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600)).map_err(fault)?;
        }
        let mut opened = Self { path: path.into(), file, preamble, pending: Vec::new(), written: 0, broken: false };
        opened.truncate_to(durable)?;
        if durable == 0 {
            sync_directory(path.parent().unwrap_or(Path::new(".")))?;
        }
        Ok(opened)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file, those in memory among them.
    pub fn length(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Adds bytes; they may stay in memory until the next sync.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.check()?;
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= PENDING_BYTES { self.write_pending() } else { Ok(()) }
    }

    /// Brings everything to the disk; gives the length in bytes that a commit may rely on.
    pub fn sync(&mut self) -> Result<u64, SinkError> {
        self.check()?;
        self.write_pending()?;
        if let Err(source) = self.file.sync_data() {
            self.broken = true;
            return Err(SinkError::Sync { path: self.path.clone(), source });
        }
        Ok(self.written)
    }

    /// By what the file, synced, is known again.
    pub fn fingerprint(&self) -> Result<u64, SinkError> {
        fingerprint(&self.file, self.written)
            .map_err(|source| SinkError::Unreadable { path: self.path.clone(), source })
    }

    /// Forgets everything after the first `length` bytes, pending bytes and earlier failures included.
    pub fn truncate_to(&mut self, length: u64) -> Result<(), SinkError> {
        let fault = |source| SinkError::Truncate { path: self.path.clone(), length, source };
        let found = self.file.metadata().map_err(fault)?.len();
        if found < length {
            return Err(SinkError::Shorter { path: self.path.clone(), length: found, durable: length });
        }
        self.file.set_len(length).map_err(fault)?;
        self.file.seek(SeekFrom::Start(length)).map_err(fault)?;
        self.pending.clear();
        self.written = length;
        self.broken = false;
        if length == 0 {
            self.pending.extend_from_slice(&self.preamble);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), SinkError> {
        if self.broken { Err(SinkError::Broken { path: self.path.clone() }) } else { Ok(()) }
    }

    fn write_pending(&mut self) -> Result<(), SinkError> {
        if let Err(source) = self.file.write_all(&self.pending) {
            self.broken = true;
            return Err(SinkError::Write { path: self.path.clone(), byte: self.written, source });
        }
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

/// Keeps other daemons away from what is written, for as long as the file or directory is open.
pub(super) fn lock(file: &File, path: &Path) -> Result<(), SinkError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => SinkError::Locked { path: path.into() },
        TryLockError::Error(source) => SinkError::Open { path: path.into(), source },
    })?;
    // Whoever had the lock until now may have given the file another name since it was opened here.
    let same = |found: &Metadata, opened: &Metadata| (found.dev(), found.ino()) == (opened.dev(), opened.ino());
    let unknown = |source| SinkError::Open { path: path.into(), source };
    match std::fs::metadata(path) {
        Ok(found) if same(&found, &file.metadata().map_err(unknown)?) => Ok(()),
        Ok(_) => Err(SinkError::Locked { path: path.into() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SinkError::Locked { path: path.into() }),
        Err(source) => Err(unknown(source)),
    }
}

/// Makes names created, renamed or removed in `directory` survive a power failure.
pub(super) fn sync_directory(directory: &Path) -> Result<(), SinkError> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)
        .and_then(|opened| opened.sync_all())
        .map_err(|source| SinkError::Sync { path: directory.into(), source })
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
