//! A file that is there whole or not at all: written beside its place, brought to the disk, then named.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::SinkError;
use super::append::lock;
use crate::config;

/// The place of a file, and where it is written before it has its name. What a link leads to is replaced, not the link,
/// also where nothing is there yet.
///
/// # Errors
/// When `path` has no name, or cannot be looked at.
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

/// Locks what is at `place`, if anything is: somebody may be writing it.
///
/// # Errors
/// [`SinkError::Locked`] when it is open in another process as an output; when it cannot be opened.
pub fn claim(place: &Path) -> Result<Option<File>, SinkError> {
    match File::open(place) {
        Ok(file) => lock(&file, place).map(|()| Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SinkError::Open { path: place.into(), source }),
    }
}

/// Gives what was written, and synced, beside its place its name, and the mode of what it replaces.
///
/// # Errors
/// When it cannot be renamed.
pub(super) fn name(unfinished: &Path, place: &Path) -> io::Result<()> {
    if let Ok(replaced) = fs::metadata(place) {
        fs::set_permissions(unfinished, replaced.permissions())?;
    }
    fs::rename(unfinished, place)?;
    let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Removes a file that was written beside a place and will not get its name. Only whoever has locked it may.
pub(super) fn forget(unfinished: &Path) {
    // The error that led here is the one to tell.
    let (Ok(()) | Err(_)) = fs::remove_file(unfinished);
}

/// Whether [`write()`] is likely to succeed: to be asked before the work whose result is written.
///
/// # Errors
/// When a directory is there, or none for it, or when another process writes it.
pub fn check(path: &Path) -> Result<(), SinkError> {
    let fault = |source| SinkError::Open { path: path.into(), source };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(fault(io::ErrorKind::IsADirectory.into())),
        Ok(found) if !found.is_file() => return Ok(()),
        _ => {}
    }
    let (place, _) = place_and_unfinished(path).map_err(fault)?;
    has_parent(&place).map_err(fault)?;
    claim(&place).map(drop).map_err(|error| error.at(path))
}

/// Refuses a place in a directory that is not there.
pub(super) fn has_parent(place: &Path) -> io::Result<()> {
    let parent = place.parent().is_none_or(|parent| parent.as_os_str().is_empty() || parent.is_dir());
    if parent { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
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
    let (place, unfinished) = place_and_unfinished(path).map_err(fault)?;
    let _claimed = claim(&place).map_err(|error| error.at(path))?;
    let open = OpenOptions::new().write(true).create(true).truncate(false).open(&unfinished);
    let mut file = open.map_err(|source| SinkError::Open { path: path.into(), source })?;
    lock(&file, &unfinished).map_err(|error| error.at(path))?;
    let written = file.set_len(0).and_then(|()| file.write_all(bytes)).and_then(|()| file.sync_all());
    let named = written.and_then(|()| name(&unfinished, &place));
    if named.is_err() {
        forget(&unfinished);
    }
    named.map_err(fault)
}

#[cfg(test)]
#[path = "whole_tests.rs"]
mod tests;
