//! State directory: private, locked, and protected against confusion.

use super::disk::PROBE_FILE;
use super::state_keys::StateKeys;
use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use throng_core::faults::crash_point;

/// Error of a state directory. An existing state is never replaced by a new one.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(
        "state directory {path}: {source} (check that the directory exists, is on a writable disk and belongs to this user)"
    )]
    Io { path: PathBuf, source: std::io::Error },
    #[error("state directory {0} is in use by another throng process (stop it, or set another `state.path`)")]
    Locked(PathBuf),
    #[error(
        "there is no throng state in {0} (name its directory with `state.path`; a relative one is below the working directory)"
    )]
    Missing(PathBuf),
    #[error("{0} is not empty and holds no throng state (set `state.path` to a separate directory)")]
    NotAState(PathBuf),
    #[error(
        "state directory {path} has format {found}, this throng reads format {expected} (use the version that wrote it, or start with a new directory)"
    )]
    Version { path: PathBuf, found: String, expected: u32 },
    #[error(
        "the secret does not belong to state directory {0} (restore the secret that it was created with, or start with a new directory)"
    )]
    WrongSecret(PathBuf),
    #[error(
        "state directory {0} belongs to another stream: the record schema, a hierarchy or the source is not the one it was created with (restore them, or start with a new directory: releases of the other stream do not count for this one)"
    )]
    OtherStream(PathBuf),
    #[error(
        "state directory {0} has released to another topic or file: the consumers of this sink have not received its releases (restore the previous `[sink]`, or start with a new directory)"
    )]
    OtherSink(PathBuf),
    #[error(
        "state directory {path} has released other groups than these, and its release log refers to their attributes (put its groups into the configuration, with plan.groups = \"given\", or start with a new directory and another sink):\n{groups}"
    )]
    OtherGroups { path: PathBuf, groups: String },
    #[error(
        "state directory {0} has the cohorts of other series: their signals, ranges, strata, noise or k are not those of this configuration (restore them, or start with a new directory and another sink: new cohorts of the same people are a second release)"
    )]
    OtherSeries(PathBuf),
    #[error(
        "state directory {path} is damaged: {what} (restore it from a backup; with a topic as the source, start with a new directory; for a job over files, a new directory loses the record of its releases)"
    )]
    Damaged { path: PathBuf, what: String },
    #[error(
        "state directory {path} does not match its topics: {what} (restore the group and topics that it was created with, or the newest state of this id; if there is none, start with a new directory. --accept-rewind does not accept this: a topic cannot be rolled back, and the held records of an older copy would be released a second time)"
    )]
    OtherMarker { path: PathBuf, what: String },
    #[error(
        "topic {topic:?} holds entries of group {group:?} that cannot be read: they were written under another secret, or by another version (give all instances of a group one secret with state.secret_file or THRONG_SECRET, or use another group with a new topic)"
    )]
    OtherChangelog { topic: String, group: String },
    #[error(
        "the changelog of the group belongs to {0} (restore the configuration, or use another group with a new topic)"
    )]
    OtherBinding(&'static str),
    #[error(
        "partition {partition} of topic {topic:?} continues at offset {offset}, but the changelog has records up to {known} only: it has lost entries, or the offsets were moved forward. Limits per subject and window may be lost with them (restore the offsets, or accept it with --accept-rewind)"
    )]
    ShortChangelog { topic: String, partition: i32, offset: i64, known: i64 },
    #[error("state directory {path}: cannot determine if its last batch was released: {what}")]
    Marker { path: PathBuf, what: String },
    #[error(
        "state directory {path}: the database failed: {source} (check its disk, then restart: nothing is lost, it continues after the last batch)"
    )]
    Database { path: PathBuf, source: sled::Error },
    #[error(
        "state directory {path}: its disk is full: {free} bytes are free and the next write may need {needed} (free disk space, then restart: nothing is lost, it continues after the last batch)"
    )]
    DiskFull { path: PathBuf, free: u64, needed: u64 },
    #[error(
        "state directory {path}: its disk has not answered for {seconds} s: {cause} (repair it, then restart: nothing is lost, it continues after the last batch)"
    )]
    DiskUnresponsive { path: PathBuf, seconds: u64, cause: String },
    #[error("state directory {path}: the database was stopped: {why}")]
    DatabaseStopped { path: PathBuf, why: String },
    #[error(
        "state directory {0}: the last batch is pending, and only a start determines if it was released (start `throng run` with this configuration, and retry while it runs or after a clean stop)"
    )]
    UndecidedBatch(PathBuf),
}

impl StateError {
    /// Returns true if the disk contains other data than was written.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }

    /// Returns true if a retry needs a change by the operator.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Missing(_)
                | Self::NotAState(_)
                | Self::WrongSecret(_)
                | Self::OtherStream(_)
                | Self::OtherSink(_)
                | Self::OtherGroups { .. }
                | Self::OtherSeries(_)
                | Self::OtherChangelog { .. }
                | Self::OtherBinding(_)
                | Self::ShortChangelog { .. }
                | Self::Version { .. }
        )
    }
}

const CREATION_MARKER: &str = "making";

/// Format of the state, incremented for incompatible changes.
pub const STATE_FORMAT: u32 = 10;

pub(super) const FIRST_DATABASE: &str = "db";
pub(super) const LOCK_FILE: &str = "lock";

/// Checks for a complete state.
///
/// # Errors
/// [`StateError::MissingSpellings`].
pub fn require_state(path: &Path) -> Result<(), StateError> {
    let is_there =
        path.join("format").try_exists().map_err(|source| StateError::Io { path: path.to_owned(), source })?;
    if is_there { Ok(()) } else { Err(StateError::Missing(path.to_owned())) }
}

/// Opens or creates the directory (mode 0700); true if new.
pub fn prepare_directory(path: &Path) -> Result<bool, StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    if !path.exists() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
    }
    let names: Vec<String> = fs::read_dir(path)
        .map_err(io)?
        .map(|entry| entry.map(|e| e.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_, _>>()
        .map_err(io)?;
    let is_there = |name: &str| names.iter().any(|n| n == name);
    let known = is_there("format");
    // A killed creation has left one of these, and has released no batch.
    let unfinished = is_there(CREATION_MARKER) || is_there("check");
    let made_first = ["secret", "making.new"];
    let made_later =
        [CREATION_MARKER, LOCK_FILE, "secret.new", "check", "check.new", FIRST_DATABASE, "format.new", PROBE_FILE];
    let ours = |n: &String| made_first.contains(&n.as_str()) || (unfinished && made_later.contains(&n.as_str()));
    if !known && !names.iter().all(ours) {
        return Err(StateError::NotAState(path.to_owned()));
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io)?;
    if !known && !unfinished {
        write_file_atomically(path, CREATION_MARKER, b"")?;
    }
    Ok(!known)
}

/// Detects a wrong secret; in a new directory, writes the check value.
pub fn check_secret(path: &Path, check: &[u8; 32], new: bool) -> Result<(), StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    let file = path.join("check");
    let text: String = check.iter().map(|byte| format!("{byte:02x}")).collect();
    match fs::read_to_string(&file) {
        Ok(found) if found.trim() == text => Ok(()),
        Ok(found) if new && found.trim().len() < text.len() => write_file_atomically(path, "check", text.as_bytes()),
        Ok(_) => Err(StateError::WrongSecret(path.to_owned())),
        Err(e) if e.kind() == ErrorKind::NotFound && new => write_file_atomically(path, "check", text.as_bytes()),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            Err(StateError::Damaged { path: path.to_owned(), what: "its check value is missing".to_owned() })
        }
        Err(e) => Err(io(e)),
    }
}

/// Checks the `format` file, the last one written at a creation.
pub fn check_format(path: &Path) -> Result<(), StateError> {
    let file = path.join("format");
    let text = fs::read_to_string(&file).map_err(|source| StateError::Io { path: file, source })?;
    if text.trim() == format!("throng-state {STATE_FORMAT}") {
        return Ok(());
    }
    let mut found: String = text.trim().chars().take(40).filter(|c| !c.is_control()).collect();
    if found.is_empty() {
        found = "nothing".to_owned();
    }
    Err(StateError::Version { path: path.to_owned(), found, expected: STATE_FORMAT })
}

/// Writes the `format` file, which completes the directory.
pub fn write_format(path: &Path) -> Result<(), StateError> {
    write_file_atomically(path, "format", format!("throng-state {STATE_FORMAT}\n").as_bytes())?;
    remove_if_present(path, CREATION_MARKER)
}

fn remove_if_present(path: &Path, name: &str) -> Result<(), StateError> {
    match fs::remove_file(path.join(name)) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(StateError::Io { path: path.to_owned(), source }),
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(super) fn write_file_atomically(path: &Path, name: &str, bytes: &[u8]) -> Result<(), StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    let unfinished = path.join(format!("{name}.new"));
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished).map_err(io)?;
    file.write_all(bytes).map_err(io)?;
    file.sync_all().map_err(io)?;
    crash_point("state-file-unnamed");
    fs::rename(&unfinished, path.join(name)).map_err(io)?;
    fs::File::open(path).and_then(|dir| dir.sync_all()).map_err(io)
}

/// Removes files of a killed start, with snapshots that sled would take for its newest. In an incomplete directory,
/// removes the database.
///
/// # Errors
/// [`StateError::Locked`]; [`StateError::Io`].
pub fn clear_unfinished(path: &Path, new: bool, in_force: &str) -> Result<(), StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    remove_if_present(path, PROBE_FILE)?;
    if !new {
        remove_if_present(path, CREATION_MARKER)?;
    }
    let void = new && path.join(CREATION_MARKER).exists();
    let folder = path.join(in_force);
    let names = match fs::read_dir(&folder) {
        Ok(names) => names.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(io)?,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(io(e)),
    };
    let unfinished: Vec<PathBuf> =
        names.into_iter().filter(|n| n.extension().is_some_and(|e| e == "generating")).collect();
    if unfinished.is_empty() && !void {
        return Ok(());
    }
    let held = match fs::OpenOptions::new().read(true).write(true).open(folder.join("db")) {
        Ok(file) => Some(file),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(io(e)),
    };
    if let Some(file) = &held
        && let Err(e) = flock(file, FlockOperation::NonBlockingLockExclusive)
    {
        let e = std::io::Error::from(e);
        return Err(if e.kind() == ErrorKind::WouldBlock { StateError::Locked(path.to_owned()) } else { io(e) });
    }
    if void {
        return fs::remove_dir_all(&folder).map_err(io);
    }
    unfinished.iter().try_for_each(fs::remove_file).map_err(io)
}

/// Derives the keys from `secret`, or from the directory's secret, which is created if `new`.
pub fn directory_keys(path: &Path, secret: Option<&[u8]>, new: bool) -> Result<StateKeys, StateError> {
    Ok(match secret {
        Some(secret) => StateKeys::derive(secret),
        None => StateKeys::derive(&local_secret(path, new)?),
    })
}

/// Only a secret from outside the directory protects the state at rest.
fn local_secret(path: &Path, new: bool) -> Result<Vec<u8>, StateError> {
    use rand::{TryRngCore, rngs::OsRng};
    let file = path.join("secret");
    let io = |source| StateError::Io { path: file.clone(), source };
    match fs::read(&file) {
        Ok(secret) if secret.len() >= 16 => Ok(secret),
        Ok(_) => Err(StateError::Damaged { path: path.to_owned(), what: "its secret is truncated".to_owned() }),
        Err(e) if e.kind() != ErrorKind::NotFound => Err(io(e)),
        Err(_) if !new => Err(StateError::WrongSecret(path.to_owned())),
        Err(_) => {
            let mut secret = vec![0u8; 32];
            OsRng.try_fill_bytes(&mut secret).map_err(|e| io(std::io::Error::other(e.to_string())))?;
            write_file_atomically(path, "secret", &secret)?;
            Ok(secret)
        }
    }
}
