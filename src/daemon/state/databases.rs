//! Database in force, and lock of the state directory. Another database exists only until it replaces that one; a start
//! removes it.

use super::directory::{FIRST_DATABASE, LOCK_FILE, StateError, write_file_atomically};
use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const DATABASE_FILE: &str = "database";

/// Locks the directory until the returned file is closed.
pub fn lock_directory(path: &Path) -> Result<fs::File, StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    let opened = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path.join(LOCK_FILE));
    let file = opened.map_err(io)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(std::io::Error::from) {
        Ok(()) => Ok(file),
        Err(e) if e.kind() == ErrorKind::WouldBlock => Err(StateError::Locked(path.to_owned())),
        Err(e) => Err(io(e)),
    }
}

fn database_generation(name: &str) -> Option<u64> {
    if name == FIRST_DATABASE {
        return Some(0);
    }
    name.strip_prefix(FIRST_DATABASE)?.strip_prefix('.')?.parse().ok()
}

/// Returns the name of the database in force.
pub fn database_in_force(path: &Path) -> Result<String, StateError> {
    match fs::read_to_string(path.join(DATABASE_FILE)) {
        Ok(name) if database_generation(name.trim()).is_some() => Ok(name.trim().to_owned()),
        Ok(_) => {
            Err(StateError::Damaged { path: path.to_owned(), what: "the file `database` names no database".to_owned() })
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(FIRST_DATABASE.to_owned()),
        Err(source) => Err(StateError::Io { path: path.to_owned(), source }),
    }
}

/// Returns the name of the successor of `name`.
#[must_use]
pub fn next_database(name: &str) -> String {
    format!("{FIRST_DATABASE}.{}", database_generation(name).unwrap_or(0) + 1)
}

/// Puts the database `name` into force.
///
/// # Errors
/// The previous database then stays in force.
pub fn put_database_in_force(path: &Path, name: &str) -> Result<(), StateError> {
    write_file_atomically(path, DATABASE_FILE, format!("{name}\n").as_bytes())
}

/// Syncs the database `name` and its directory entry to disk.
pub fn sync_database(path: &Path, name: &str) -> Result<(), StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    for folder in [path.join(name), path.to_owned()] {
        fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?;
    }
    Ok(())
}

/// Removes every other database. The caller must have [locked](lock_directory) the directory.
pub fn remove_other_databases(path: &Path, in_force: &str) -> Result<(), StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    let mut removed = false;
    for entry in fs::read_dir(path).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        let other = name.to_str().is_some_and(|name| database_generation(name).is_some() && name != in_force);
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
