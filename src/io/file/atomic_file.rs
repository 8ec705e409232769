//! Atomic file replacement: the file is written to a temporary name, synced to disk, then renamed.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::SinkError;
use crate::config;

/// Open flags that do not follow links and do not wait for pipes.
const NO_FOLLOW_FLAGS: i32 = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()) as i32;

/// Permissions of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputFileMode {
    /// Mode of the replaced file; for a new file 0666 minus the umask.
    Shared,
    /// Mode 0600.
    Private,
}

/// Temporary file that has not been renamed to its target. It is removed on drop unless renamed.
#[derive(Debug)]
pub(super) struct UnfinishedFile {
    /// Path as configured, for messages.
    pub path: PathBuf,
    place: PathBuf,
    unfinished: PathBuf,
    access: OutputFileMode,
    file: File,
    /// Bytes written so far.
    pub written: u64,
    pub is_named: bool,
    _claimed: Option<File>,
}

impl UnfinishedFile {
    /// Creates a file that will replace `path`. Both files stay locked until it is dropped.
    ///
    /// # Errors
    /// When `path` is not a regular file, another process writes it, or it cannot be opened.
    pub fn create(path: &Path, access: OutputFileMode) -> Result<Self, SinkError> {
        let fault = |source| SinkError::Open { path: path.into(), source };
        reject_irregular(path)?;
        let (place, unfinished) = place_and_unfinished(path).map_err(fault)?;
        let claimed = lock_if_present(&place, path)?;
        remove_leftover(&unfinished, path)?;
        let mode = if access == OutputFileMode::Private { 0o600 } else { 0o666 };
        let file =
            OpenOptions::new().write(true).create_new(true).mode(mode).custom_flags(NO_FOLLOW_FLAGS).open(&unfinished);
        let file = file.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => SinkError::Locked { path: path.into() },
            _ => fault(source),
        })?;
        lock(&file, &unfinished, path)?;
        let (path, written, is_named) = (path.to_owned(), 0, false);
        Ok(Self { path, place, unfinished, access, file, written, is_named, _claimed: claimed })
    }

    /// Syncs the file to disk.
    pub fn sync(&self) -> Result<(), SinkError> {
        self.file.sync_all().map_err(|source| SinkError::Sync { path: self.path.clone(), source })
    }

    /// Checks that the rename can succeed: the target is absent or regular, and the temporary name still refers to
    /// this file.
    pub fn check_place(&self) -> Result<(), SinkError> {
        reject_irregular(&self.path)?;
        let fault = |source| SinkError::Open { path: self.path.clone(), source };
        let (named, own) =
            (fs::symlink_metadata(&self.unfinished).map_err(fault)?, self.file.metadata().map_err(fault)?);
        if inode(&named) == inode(&own) {
            Ok(())
        } else {
            Err(SinkError::ForeignFile { path: self.unfinished.clone() })
        }
    }

    /// Renames the file to its target with the mode of the replaced file. Call [`sync`](Self::sync) first.
    pub fn rename(&mut self) -> Result<(), SinkError> {
        self.check_place()?;
        let fault = |source| SinkError::Write { path: self.path.clone(), byte: self.written, source };
        if let (OutputFileMode::Shared, Ok(replaced)) = (self.access, fs::metadata(&self.place)) {
            self.file.set_permissions(replaced.permissions()).map_err(fault)?;
        }
        fs::rename(&self.unfinished, &self.place).map_err(fault)?;
        self.is_named = true;
        sync_parent(&self.place).map_err(fault)
    }
}

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if !self.is_named {
            // The file is locked, so it belongs to this process. The earlier error is the one to report.
            let (Ok(()) | Err(_)) = fs::remove_file(&self.unfinished);
        }
    }
}

/// Removes a temporary file of a killed process: a regular file of this user with one name and no lock. `path`
/// appears in messages.
///
/// # Errors
/// [`SinkError::ForeignFile`] for any other file; [`SinkError::Locked`] if another process writes it.
fn remove_leftover(unfinished: &Path, path: &Path) -> Result<(), SinkError> {
    let fault = |source| SinkError::Open { path: path.into(), source };
    let in_the_way = || SinkError::ForeignFile { path: unfinished.into() };
    match fs::symlink_metadata(unfinished) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(fault(source)),
        Ok(found) if !is_removable(&found) => return Err(in_the_way()),
        Ok(_) => {}
    }
    let file = match open_no_follow(unfinished) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(SinkError::Locked { path: path.into() }),
        opened => opened.map_err(fault)?,
    };
    if !is_removable(&file.metadata().map_err(fault)?) {
        return Err(in_the_way());
    }
    lock(&file, unfinished, path)?;
    fs::remove_file(unfinished).map_err(fault)
}

/// Restricts an existing file to mode 0600. A file of another user, or with several names, is rejected.
pub(super) fn make_private(file: &File, found: &Metadata, path: &Path) -> Result<(), SinkError> {
    if !is_removable(found) {
        return Err(SinkError::ForeignFile { path: path.into() });
    }
    let made = file.set_permissions(fs::Permissions::from_mode(0o600));
    made.map_err(|source| SinkError::Open { path: path.into(), source })
}

/// Reports that this is a regular file of this user with one name.
fn is_removable(found: &Metadata) -> bool {
    found.is_file() && found.nlink() == 1 && found.uid() == rustix::process::geteuid().as_raw()
}

/// Opens a file for reading without following links or waiting for the writer of a pipe.
fn open_no_follow(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(NO_FOLLOW_FLAGS).open(path)
}

fn inode(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Rejects an existing path that is not a regular file.
pub(super) fn reject_irregular(path: &Path) -> Result<(), SinkError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(SinkError::NotRegular { path: path.into() }),
        _ => Ok(()),
    }
}

/// Returns the target of a path and its temporary name. Links are followed, so their target is replaced, even if it
/// does not exist yet.
pub fn place_and_unfinished(path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let place = match fs::canonicalize(path) {
        Ok(place) => place,
        Err(error) if error.kind() == io::ErrorKind::NotFound => config::resolve_links(path),
        Err(error) => return Err(error),
    };
    let name = place.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let mut unfinished = OsString::from(".");
    unfinished.push(name);
    unfinished.push(".unfinished");
    let unfinished = place.with_file_name(unfinished);
    Ok((place, unfinished))
}

/// Locks an existing file at `path`, because another process may be writing it.
///
/// # Errors
/// As [`lock_if_present`]; when the directory is missing or the temporary name is taken by another file.
pub(super) fn lock_output_place(path: &Path) -> Result<Option<File>, SinkError> {
    let fault = |source| SinkError::Open { path: path.into(), source };
    let (place, unfinished) = place_and_unfinished(path).map_err(fault)?;
    if fs::symlink_metadata(&unfinished).is_ok_and(|found| !is_removable(&found)) {
        return Err(SinkError::ForeignFile { path: unfinished });
    }
    if place.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
        return Err(fault(io::ErrorKind::NotFound.into()));
    }
    lock_if_present(&place, path)
}

/// Locks an existing file at `resolve_links`; `path` appears in messages.
///
/// # Errors
/// [`SinkError::Locked`] when another process has it open as an output; when it cannot be opened.
fn lock_if_present(place: &Path, path: &Path) -> Result<Option<File>, SinkError> {
    match open_no_follow(place) {
        Ok(file) => lock(&file, place, path).map(|()| Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SinkError::Open { path: path.into(), source }),
    }
}

/// Locks the file at `resolve_links` against other processes while it is open; `path` appears in messages.
pub(super) fn lock(file: &File, place: &Path, path: &Path) -> Result<(), SinkError> {
    let fault = |source| SinkError::Open { path: path.into(), source };
    let locked = || SinkError::Locked { path: path.into() };
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => locked(),
        TryLockError::Error(source) => fault(source),
    })?;
    // The previous owner of the lock may have renamed the file since it was opened here.
    match fs::metadata(place) {
        Ok(found) if inode(&found) == inode(&file.metadata().map_err(fault)?) => Ok(()),
        Ok(_) => Err(locked()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(locked()),
        Err(source) => Err(fault(source)),
    }
}

/// Syncs the directory of `resolve_links`, so that created, renamed and removed names survive a power failure.
fn sync_parent(place: &Path) -> io::Result<()> {
    let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Checks that [`write()`] can succeed, before the work that produces the content.
///
/// # Errors
/// When `path` is a directory, its directory is missing, or another process writes it.
pub fn check_writable(path: &Path) -> Result<(), SinkError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            Err(SinkError::Open { path: path.into(), source: io::ErrorKind::IsADirectory.into() })
        }
        Ok(found) if !found.is_file() => Ok(()),
        _ => lock_output_place(path).map(drop),
    }
}

/// Writes a file atomically. A pipe or device is written directly.
///
/// # Errors
/// When writing fails, or another process writes the file; the previous content remains.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), SinkError> {
    let fault = |source| SinkError::Write { path: path.into(), byte: 0, source };
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, bytes).map_err(fault);
    }
    let mut file = UnfinishedFile::create(path, OutputFileMode::Shared)?;
    file.write_all(bytes).map_err(fault)?;
    file.sync()?;
    file.rename()
}

#[cfg(test)]
#[path = "whole_tests.rs"]
mod tests;
