//! A file that is there whole or not at all: written beside its place, brought to the disk, then named.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::SinkError;
use crate::config;

/// What is at a fixed name is not followed, and not waited for.
const AS_IT_IS: i32 = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()) as i32;

/// Access to a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The mode of the file that it replaces; of a new one 0666 less the process's umask.
    Shared,
    /// Mode 0600.
    Private,
}

/// A file beside its place that has not got its name yet. It is removed when it goes out of use without.
#[derive(Debug)]
pub(super) struct UnfinishedFile {
    /// As it was given, for messages.
    pub path: PathBuf,
    place: PathBuf,
    unfinished: PathBuf,
    access: Access,
    file: File,
    /// Bytes written so far.
    pub written: u64,
    pub is_named: bool,
    _claimed: Option<File>,
}

impl UnfinishedFile {
    /// Begins a file that will replace what is at `path`. Both are locked for as long as it lives.
    ///
    /// # Errors
    /// When something else than a regular file is at `path`, when another process writes it, and when it cannot be opened.
    pub fn create(path: &Path, access: Access) -> Result<Self, SinkError> {
        let fault = |source| SinkError::Open { path: path.into(), source };
        regular(path)?;
        let (place, unfinished) = place_and_unfinished(path).map_err(fault)?;
        let claimed = claim(&place, path)?;
        remove_leftover(&unfinished, path)?;
        let mode = if access == Access::Private { 0o600 } else { 0o666 };
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).custom_flags(AS_IT_IS).open(&unfinished);
        let file = file.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => SinkError::Locked { path: path.into() },
            _ => fault(source),
        })?;
        lock(&file, &unfinished, path)?;
        let (path, written, is_named) = (path.to_owned(), 0, false);
        Ok(Self { path, place, unfinished, access, file, written, is_named, _claimed: claimed })
    }

    /// Brings it to the disk.
    pub fn sync(&self) -> Result<(), SinkError> {
        self.file.sync_all().map_err(|source| SinkError::Sync { path: self.path.clone(), source })
    }

    /// Looks whether it can be put in its place: nothing but a regular file is there, and its own name is still its own.
    pub fn check_place(&self) -> Result<(), SinkError> {
        regular(&self.path)?;
        let fault = |source| SinkError::Open { path: self.path.clone(), source };
        let (named, own) =
            (fs::symlink_metadata(&self.unfinished).map_err(fault)?, self.file.metadata().map_err(fault)?);
        if inode(&named) == inode(&own) { Ok(()) } else { Err(SinkError::InTheWay { path: self.unfinished.clone() }) }
    }

    /// Puts it in its place, with the mode of what it replaces. Call it behind a [`sync`](Self::sync).
    pub fn rename(&mut self) -> Result<(), SinkError> {
        self.check_place()?;
        let fault = |source| SinkError::Write { path: self.path.clone(), byte: self.written, source };
        if let (Access::Shared, Ok(replaced)) = (self.access, fs::metadata(&self.place)) {
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
            // It is locked, so it is ours. The error that led here is the one to tell.
            let (Ok(()) | Err(_)) = fs::remove_file(&self.unfinished);
        }
    }
}

/// Removes what a killed process has left at `unfinished`, `path` in messages: a regular file of this user, with one name and no lock.
///
/// # Errors
/// [`SinkError::InTheWay`] for anything else; [`SinkError::Locked`] where another process writes it.
fn remove_leftover(unfinished: &Path, path: &Path) -> Result<(), SinkError> {
    let fault = |source| SinkError::Open { path: path.into(), source };
    let in_the_way = || SinkError::InTheWay { path: unfinished.into() };
    match fs::symlink_metadata(unfinished) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(fault(source)),
        Ok(found) if !is_own(&found) => return Err(in_the_way()),
        Ok(_) => {}
    }
    let file = match open_as_it_is(unfinished) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(SinkError::Locked { path: path.into() }),
        opened => opened.map_err(fault)?,
    };
    if !is_own(&file.metadata().map_err(fault)?) {
        return Err(in_the_way());
    }
    lock(&file, unfinished, path)?;
    fs::remove_file(unfinished).map_err(fault)
}

/// Makes a file that was there before `path` was opened private. One of another user, or with other names, is not.
pub(super) fn make_private(file: &File, found: &Metadata, path: &Path) -> Result<(), SinkError> {
    if !is_own(found) {
        return Err(SinkError::InTheWay { path: path.into() });
    }
    let made = file.set_permissions(fs::Permissions::from_mode(0o600));
    made.map_err(|source| SinkError::Open { path: path.into(), source })
}

/// Whether it is a regular file of this user with one name.
fn is_own(found: &Metadata) -> bool {
    found.is_file() && found.nlink() == 1 && found.uid() == rustix::process::geteuid().as_raw()
}

/// Opens a file for reading; no link, and without waiting for the other end of a pipe.
fn open_as_it_is(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(AS_IT_IS).open(path)
}

fn inode(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Refuses a place at which something else than a regular file is.
pub(super) fn regular(path: &Path) -> Result<(), SinkError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(SinkError::NotRegular { path: path.into() }),
        _ => Ok(()),
    }
}

/// The place of a file, and where it is written before it has its name. What a link leads to is replaced, not the link,
/// also where nothing is there yet.
pub fn place_and_unfinished(path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let place = match fs::canonicalize(path) {
        Ok(place) => place,
        Err(error) if error.kind() == io::ErrorKind::NotFound => config::place(path),
        Err(error) => return Err(error),
    };
    let name = place.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let mut unfinished = OsString::from(".");
    unfinished.push(name);
    unfinished.push(".unfinished");
    let unfinished = place.with_file_name(unfinished);
    Ok((place, unfinished))
}

/// Locks what is at the place of `path`, if anything is: another process may be writing it.
///
/// # Errors
/// As [`claim`]; when there is no directory for it.
pub(super) fn claim_place(path: &Path) -> Result<Option<File>, SinkError> {
    let fault = |source| SinkError::Open { path: path.into(), source };
    let (place, unfinished) = place_and_unfinished(path).map_err(fault)?;
    if fs::symlink_metadata(&unfinished).is_ok_and(|found| !is_own(&found)) {
        return Err(SinkError::InTheWay { path: unfinished });
    }
    if place.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
        return Err(fault(io::ErrorKind::NotFound.into()));
    }
    claim(&place, path)
}

/// Locks what is at `place`, `path` in messages, if anything is.
///
/// # Errors
/// [`SinkError::Locked`] when it is open in another process as an output; when it cannot be opened.
fn claim(place: &Path, path: &Path) -> Result<Option<File>, SinkError> {
    match open_as_it_is(place) {
        Ok(file) => lock(&file, place, path).map(|()| Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SinkError::Open { path: path.into(), source }),
    }
}

/// Keeps other processes away from what is written at `place`, `path` in messages, for as long as the file is open.
pub(super) fn lock(file: &File, place: &Path, path: &Path) -> Result<(), SinkError> {
    let fault = |source| SinkError::Open { path: path.into(), source };
    let locked = || SinkError::Locked { path: path.into() };
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => locked(),
        TryLockError::Error(source) => fault(source),
    })?;
    // Whoever had the lock until now may have given the file another name since it was opened here.
    match fs::metadata(place) {
        Ok(found) if inode(&found) == inode(&file.metadata().map_err(fault)?) => Ok(()),
        Ok(_) => Err(locked()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(locked()),
        Err(source) => Err(fault(source)),
    }
}

/// Makes names created, renamed or removed in the directory of `place` survive a power failure.
fn sync_parent(place: &Path) -> io::Result<()> {
    let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Whether [`write()`] is likely to succeed: to be asked before the work whose result is written.
///
/// # Errors
/// When a directory is there, or none for it, or when another process writes it.
pub fn check(path: &Path) -> Result<(), SinkError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            Err(SinkError::Open { path: path.into(), source: io::ErrorKind::IsADirectory.into() })
        }
        Ok(found) if !found.is_file() => Ok(()),
        _ => claim_place(path).map(drop),
    }
}

/// Writes a file whole or not at all. What is no regular file (a pipe, a device) is written as it is.
///
/// # Errors
/// When it cannot be written, or another process writes it; what was there before is there still.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), SinkError> {
    let fault = |source| SinkError::Write { path: path.into(), byte: 0, source };
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, bytes).map_err(fault);
    }
    let mut file = UnfinishedFile::create(path, Access::Shared)?;
    file.write_all(bytes).map_err(fault)?;
    file.sync()?;
    file.rename()
}

#[cfg(test)]
#[path = "whole_tests.rs"]
mod tests;
