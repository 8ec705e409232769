//! The state directory: private, locked, and never mistaken for somebody else's.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why a state directory is refused. The state is never started afresh where one was meant to be.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(
        "state directory {path}: {source} (check that the directory exists, is on a writable disk and belongs to this user)"
    )]
    Io { path: PathBuf, source: std::io::Error },
    #[error("state directory {0} is in use by another throng process (stop it, or set another `state.path`)")]
    Locked(PathBuf),
    #[error("{0} is not empty and holds no throng state (set `state.path` to a directory of its own)")]
    Foreign(PathBuf),
    #[error(
        "state directory {path} has format {found}, this throng reads format {expected} (use the version that wrote it, or start with a new directory)"
    )]
    Version { path: PathBuf, found: String, expected: u32 },
    #[error(
        "the secret does not belong to state directory {0} (give back the secret it was made with, or start with a new directory)"
    )]
    WrongSecret(PathBuf),
    #[error(
        "state directory {0} belongs to another stream: the record schema, a hierarchy or the source is not the one it was made with (go back to them, or start with a new directory: what was released under the other schema supports nothing here)"
    )]
    OtherStream(PathBuf),
    #[error(
        "state directory {path} is damaged: {what} (restore it from a backup; starting with a new directory forgets what has been released)"
    )]
    Damaged { path: PathBuf, what: String },
    #[error("state directory {path}: whether its last batch left cannot be told: {what}")]
    Marker { path: PathBuf, what: String },
    #[error("state directory {path}: the database failed: {source}")]
    Database { path: PathBuf, source: sled::Error },
}

/// Format of the state; raised whenever a reader of the old one would misread the new one.
pub const FORMAT: u32 = 3;

/// Opens or makes the directory with mode 0700. True if it is new.
///
/// # Errors
/// When it cannot be made, or has something else in it.
pub fn prepare(path: &Path) -> Result<bool, StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    if !path.exists() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
    }
    let names: Vec<String> = fs::read_dir(path)
        .map_err(io)?
        .map(|entry| entry.map(|e| e.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_, _>>()
        .map_err(io)?;
    let known = names.iter().any(|n| n == "format");
    // A start that was killed while it made the directory has left its check file, and nothing has been released.
    let unfinished = names.iter().any(|n| n == "check");
    let ours = |n: &String| n == "secret" || (unfinished && (n == "check" || n == "db"));
    if !known && !names.iter().all(ours) {
        return Err(StateError::Foreign(path.to_owned()));
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io)?;
    Ok(!known)
}

/// Tells a wrong secret before anything else is opened; a new directory is given the check value.
///
/// # Errors
/// [`StateError::WrongSecret`], or when the file cannot be read or made.
pub fn check_secret(path: &Path, check: &[u8; 32], new: bool) -> Result<(), StateError> {
    use std::fmt::Write as _;
    let io = |source| StateError::Io { path: path.to_owned(), source };
    let file = path.join("check");
    let mut text = String::with_capacity(64);
    for byte in check {
        // Writing into a string does not fail.
        let (Ok(()) | Err(_)) = write!(text, "{byte:02x}");
    }
    match fs::read_to_string(&file) {
        Ok(found) if found.trim() == text => Ok(()),
        Ok(found) if new && found.trim().len() < text.len() => fs::write(&file, text).map_err(io),
        Ok(_) => Err(StateError::WrongSecret(path.to_owned())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && new => {
            let mut out = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file).map_err(io)?;
            out.write_all(text.as_bytes()).map_err(io)?;
            out.sync_all().map_err(io)
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(StateError::Damaged { path: path.to_owned(), what: "its check value is missing".to_owned() })
        }
        Err(e) => Err(io(e)),
    }
}

/// Reads the `format` file, or writes it last of all, when everything else is in place.
///
/// # Errors
/// When the format is another.
pub fn check_format(path: &Path) -> Result<(), StateError> {
    let file = path.join("format");
    let text = fs::read_to_string(&file).map_err(|source| StateError::Io { path: file, source })?;
    if text.trim() == format!("throng-state {FORMAT}") {
        return Ok(());
    }
    let mut found: String = text.trim().chars().take(40).filter(|c| !c.is_control()).collect();
    if found.is_empty() {
        found = "nothing".to_owned();
    }
    Err(StateError::Version { path: path.to_owned(), found, expected: FORMAT })
}

/// Writes the `format` file.
///
/// # Errors
/// When it cannot be written.
pub fn write_format(path: &Path) -> Result<(), StateError> {
    let io = |source| StateError::Io { path: path.to_owned(), source };
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path.join("format")).map_err(io)?;
    file.write_all(format!("throng-state {FORMAT}\n").as_bytes()).map_err(io)?;
    file.sync_all().map_err(io)?;
    fs::File::open(path).and_then(|dir| dir.sync_all()).map_err(io)
}

/// The secret kept in the directory itself, made on first use: enough to key digests, but whoever has the directory has it
/// too. A secret from elsewhere protects the state at rest as well.
///
/// # Errors
/// When it cannot be read or made.
pub fn local_secret(path: &Path, new: bool) -> Result<Vec<u8>, StateError> {
    use rand::{TryRngCore, rngs::OsRng};
    let file = path.join("secret");
    let io = |source| StateError::Io { path: file.clone(), source };
    match fs::read(&file) {
        Ok(secret) if secret.len() >= 16 => Ok(secret),
        Ok(_) => Err(StateError::Damaged { path: path.to_owned(), what: "its secret is cut short".to_owned() }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && new => {
            let mut secret = vec![0u8; 32];
            OsRng.try_fill_bytes(&mut secret).map_err(|e| io(std::io::Error::other(e.to_string())))?;
            let mut out = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file).map_err(io)?;
            out.write_all(&secret).map_err(io)?;
            out.sync_all().map_err(io)?;
            Ok(secret)
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(StateError::WrongSecret(path.to_owned())),
        Err(e) => Err(io(e)),
    }
}
