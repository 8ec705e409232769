//! A file that is there whole or not at all: written beside its place, brought to the disk, then named.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::SinkError;
use super::append::lock;

/// Where a file is written before it has its name. What a link leads to is replaced, not the link.
///
/// # Errors
/// When `path` has no name, or something is there that is not a file or directory.
pub fn beside(path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let place = match fs::canonicalize(path) {
        Ok(place) => place,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let name = place.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let mut unfinished = OsString::from(".");
    unfinished.push(name);
    unfinished.push(".unfinished");
    let unfinished = place.with_file_name(unfinished);
    Ok((place, unfinished))
}

/// Locks what is at `place`, if it is a file: somebody may be writing it.
///
/// # Errors
/// [`SinkError::Locked`] when it is open in another process as an output.
pub fn claim(place: &Path) -> Result<Option<File>, SinkError> {
    match File::open(place) {
        Ok(file) => lock(&file, place).map(|()| Some(file)),
        Err(_) => Ok(None),
    }
}

/// Gives what was written, and synced, beside its place its name, and the mode of what it replaces.
///
/// # Errors
/// When it cannot be renamed.
pub fn name(unfinished: &Path, place: &Path) -> io::Result<()> {
    if let Ok(replaced) = fs::metadata(place) {
        fs::set_permissions(unfinished, replaced.permissions())?;
    }
    fs::rename(unfinished, place)?;
    let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Removes what was written beside a place and will not get its name.
pub fn forget(unfinished: &Path) {
    let removed = if unfinished.is_dir() { fs::remove_dir_all(unfinished) } else { fs::remove_file(unfinished) };
    // The error that led here is the one to tell.
    let (Ok(()) | Err(_)) = removed;
}

/// Writes a file whole or not at all. What is no regular file (a pipe, a device) is written as it is.
///
/// # Errors
/// When it cannot be written; what was there before is there still.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, bytes);
    }
    let (place, unfinished) = beside(path)?;
    let written = File::create(&unfinished).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    match written.and_then(|()| name(&unfinished, &place)) {
        Ok(()) => Ok(()),
        Err(error) => {
            forget(&unfinished);
            Err(error)
        }
    }
}
