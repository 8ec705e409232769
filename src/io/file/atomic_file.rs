//! Atomic file replacement: write a temporary file, sync, rename.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::SinkError;
use crate::config;

const NO_FOLLOW_FLAGS: i32 = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()) as i32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputFileMode {
    /// Mode of the replaced file; for a new file 0666 minus the umask.
    Shared,
    Private,
}

/// Temporary file, removed on drop unless renamed.
#[derive(Debug)]
pub(super) struct UnfinishedFile {
    /// Path as configured, for messages.
    pub path: PathBuf,
    place: PathBuf,
    unfinished: PathBuf,
    access: OutputFileMode,
    file: File,
    pub written: u64,
    pub is_named: bool,
    _claimed: Option<File>,
}

impl UnfinishedFile {
    /// Creates a file that will replace `path`; both stay locked.
    ///
    /// # Errors
    /// If `path` is not regular, is in use, or cannot be opened.
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

    pub fn sync(&self) -> Result<(), SinkError> {
        self.file.sync_all().map_err(|source| SinkError::Sync { path: self.path.clone(), source })
    }

    /// Checks that the target is absent or regular, and the temporary name still refers to this file.
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

    /// Renames the file with the mode of the replaced one. Call [`sync`](Self::sync) first.
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
            // The file is locked, so it belongs to this process. The earlier error is reported.
            let (Ok(()) | Err(_)) = fs::remove_file(&self.unfinished);
        }
    }
}

/// Removes a temporary file of a killed process: regular, of this user, with one name and no lock.
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

/// Rejects a file of another user, or with several names.
pub(super) fn make_private(file: &File, found: &Metadata, path: &Path) -> Result<(), SinkError> {
    if !is_removable(found) {
        return Err(SinkError::ForeignFile { path: path.into() });
    }
    let made = file.set_permissions(fs::Permissions::from_mode(0o600));
    made.map_err(|source| SinkError::Open { path: path.into(), source })
}

fn is_removable(found: &Metadata) -> bool {
    found.is_file() && found.nlink() == 1 && found.uid() == rustix::process::geteuid().as_raw()
}

fn open_no_follow(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(NO_FOLLOW_FLAGS).open(path)
}

fn inode(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

pub(super) fn reject_irregular(path: &Path) -> Result<(), SinkError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(SinkError::NotRegular { path: path.into() }),
        _ => Ok(()),
    }
}

/// Returns the target of a path, through links, and its temporary name.
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

/// Locks an existing file at `path`.
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

fn lock_if_present(place: &Path, path: &Path) -> Result<Option<File>, SinkError> {
    match open_no_follow(place) {
        Ok(file) => lock(&file, place, path).map(|()| Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SinkError::Open { path: path.into(), source }),
    }
}

pub(super) fn lock(file: &File, place: &Path, path: &Path) -> Result<(), SinkError> {
    let fault = |source| SinkError::Open { path: path.into(), source };
    let locked = || SinkError::Locked { path: path.into() };
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => locked(),
        TryLockError::Error(source) => fault(source),
    })?;
    // The previous owner may have renamed the file.
    match fs::metadata(place) {
        Ok(found) if inode(&found) == inode(&file.metadata().map_err(fault)?) => Ok(()),
        Ok(_) => Err(locked()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(locked()),
        Err(source) => Err(fault(source)),
    }
}

fn sync_parent(place: &Path) -> io::Result<()> {
    let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Checks that [`write()`] can succeed.
///
/// # Errors
/// If `path` is a directory, in a missing directory, or in use.
pub fn check_writable(path: &Path) -> Result<(), SinkError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            Err(SinkError::Open { path: path.into(), source: io::ErrorKind::IsADirectory.into() })
        }
        Ok(found) if !found.is_file() => Ok(()),
        _ => lock_output_place(path).map(drop),
    }
}

/// Writes a file atomically; a pipe or device directly.
///
/// # Errors
/// If writing fails, or the file is in use; the previous content remains.
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
