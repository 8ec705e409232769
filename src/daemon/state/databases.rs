//! Which database of a state directory is in force, and who has the directory.
//!
//! There is one, but for the moments in which an erasure, or another secret, puts another in its place. The name of the one in force is a file of its own,
//! written whole or not at all; any other is removed by whoever opens the directory next.

use super::directory::{FIRST, LOCK, StateError, put};
use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Names the database that is in force, where that is not the first one.
const DATABASE: &str = "database";

/// Takes the directory for this process, for as long as the file is open.
pub fn lock(path: &Path) -> Result<fs::File, StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    let opened = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path.join(LOCK));
    let file = opened.map_err(io)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(std::io::Error::from) {
        Ok(()) => Ok(file),
        Err(e) if e.kind() == ErrorKind::WouldBlock => Err(StateError::Locked(path.to_owned())),
        Err(e) => Err(io(e)),
    }
}

/// The number of a database by its name; none for other names.
fn generation(name: &str) -> Option<u64> {
    if name == FIRST {
        return Some(0);
    }
    name.strip_prefix(FIRST)?.strip_prefix('.')?.parse().ok()
}

/// The name of the database that is in force.
pub fn database(path: &Path) -> Result<String, StateError> {
    match fs::read_to_string(path.join(DATABASE)) {
        Ok(name) if generation(name.trim()).is_some() => Ok(name.trim().to_owned()),
        Ok(_) => {
            Err(StateError::Damaged { path: path.to_owned(), what: "the file `database` names no database".to_owned() })
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(FIRST.to_owned()),
        Err(source) => Err(StateError::Io { path: path.to_owned(), source }),
    }
}

/// The name of the database that takes the place of `name`.
#[must_use]
pub fn next_database(name: &str) -> String {
    format!("{FIRST}.{}", generation(name).unwrap_or(0) + 1)
}

/// Puts the database `name` into force: from here on a start opens this one.
///
/// # Errors
/// When the file cannot be written; the one before is in force then.
pub fn name_database(path: &Path, name: &str) -> Result<(), StateError> {
    put(path, DATABASE, format!("{name}\n").as_bytes())
}

/// Brings the folder of the database `name`, and that it is there, onto the disk.
pub fn onto_disk(path: &Path, name: &str) -> Result<(), StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    for folder in [path.join(name), path.to_owned()] {
        fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?;
    }
    Ok(())
}

/// Removes every database but the one that is in force: one that was never finished, or whose place another has taken. For whoever has
/// [locked](lock) the directory.
pub fn clear_databases(path: &Path, in_force: &str) -> Result<(), StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    let mut removed = false;
    for entry in fs::read_dir(path).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        let other = name.to_str().is_some_and(|name| generation(name).is_some() && name != in_force);
        if other && entry.path().is_dir() {
            fs::remove_dir_all(entry.path()).map_err(io)?;
            removed = true;
        }
    }
    if removed {
        fs::File::open(path).and_then(|dir| dir.sync_all()).map_err(io)?;
    }
    Ok(())
}
