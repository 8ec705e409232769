//! Secrets, which are never printed, and the files that contain them.

use rand::{TryRngCore, rngs::OsRng};
use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Minimum length; shorter secrets can be guessed.
const LEAST_BYTES: usize = 16;

/// Minimum number of different bytes; fewer are not random (zeros, or one repeated character).
const MIN_DISTINCT_BYTES: usize = 4;

/// Reason to refuse a secret. No variant holds any part of it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum SecretError {
    #[error("the secret has {0} bytes; give at least {LEAST_BYTES}, drawn at random")]
    Short(usize),
    #[error("the secret has only {0} different bytes and can be guessed; draw it at random")]
    Repetitive(usize),
}

/// Secret bytes. Debug prints a placeholder, there is no Display, and the memory is wiped when the last copy is
/// dropped.
#[derive(Clone)]
pub struct Secret(Arc<Zeroizing<Vec<u8>>>);

impl Secret {
    /// Creates a secret of at least 16 bytes with at least 4 different ones. A last line break is not part of it.
    pub fn new(bytes: Vec<u8>) -> Result<Self, SecretError> {
        let mut bytes = Zeroizing::new(bytes);
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
        }
        if bytes.len() < LEAST_BYTES {
            return Err(SecretError::Short(bytes.len()));
        }
        let different = bytes.iter().collect::<BTreeSet<_>>().len();
        if different < MIN_DISTINCT_BYTES {
            return Err(SecretError::Repetitive(different));
        }
        Ok(Self(Arc::new(bytes)))
    }

    /// Reads a secret from a file. A file readable by its group is accepted (`start` warns), because Kubernetes mounts secrets with
    /// that mode.
    ///
    /// # Errors
    /// [`AccessError`]: the file cannot be read, users other than owner and group may use it, or its content is too
    /// short.
    pub fn read(path: &Path) -> Result<Self, AccessError> {
        Ok(Self::new(secret_bytes(path)?.to_vec())?)
    }

    /// Generates a secret of 32 random bytes, as 64 hexadecimal digits.
    ///
    /// # Errors
    /// Fails if the system has no randomness.
    pub fn generate() -> std::io::Result<Self> {
        let mut bytes = Zeroizing::new([0_u8; 32]);
        OsRng.try_fill_bytes(&mut *bytes).map_err(std::io::Error::other)?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(Arc::new(Zeroizing::new(text.into_bytes()))))
    }

    /// Generates a secret and writes it to a new file that only its owner may read (mode 0600).
    ///
    /// # Errors
    /// Fails if the file exists or cannot be written, or if the system has no randomness.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        let secret = Self::generate()?;
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(&[secret.expose(), b"\n"].concat())?;
        file.sync_all()?;
        Ok(secret)
    }

    /// Returns the bytes, only for keying digests and comparing tokens.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        // Compares every byte, so that the time does not reveal the position of the first difference.
        self.0.len() == other.0.len() && self.0.iter().zip(other.0.iter()).fold(0, |d, (a, b)| d | (a ^ b)) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Reason to refuse a protected file.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum AccessError {
    #[error("the file cannot be read ({0})")]
    Unreadable(std::io::ErrorKind),
    #[error("all users of this machine may read or change the file (mode {mode:04o})")]
    Exposed { mode: u32 },
    #[error("the file is empty")]
    Empty,
    #[error(transparent)]
    Token(#[from] SecretError),
    #[error("the token contains characters other than visible ASCII, which a request cannot carry")]
    Invisible,
}

/// Refuses a file that users other than its owner and group may read, change or execute. Every secret file is checked
/// here, including private keys that a library reads.
pub fn check_permissions(path: &Path) -> Result<(), AccessError> {
    let mode = std::fs::metadata(path).map_err(|e| AccessError::Unreadable(e.kind()))?.permissions().mode() & 0o7777;
    let others = mode & 0o007;
    if others == 0 { Ok(()) } else { Err(AccessError::Exposed { mode }) }
}

const MAX_SECRET_FILE_BYTES: u64 = 64 << 10;

fn secret_bytes(path: &Path) -> Result<Zeroizing<Vec<u8>>, AccessError> {
    check_permissions(path)?;
    // A pipe would block, and a client cannot use a larger secret.
    if !std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= MAX_SECRET_FILE_BYTES) {
        return Err(AccessError::Unreadable(std::io::ErrorKind::InvalidInput));
    }
    std::fs::read(path).map(Zeroizing::new).map_err(|error| AccessError::Unreadable(error.kind()))
}

/// Returns the content of a secret file as text, without its last line breaks.
pub fn secret_text(path: &Path) -> Result<Zeroizing<String>, AccessError> {
    let bytes = secret_bytes(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| AccessError::Unreadable(std::io::ErrorKind::InvalidData))?;
    let mut text = Zeroizing::new(text.to_owned());
    if text.contains('\0') {
        return Err(AccessError::Unreadable(std::io::ErrorKind::InvalidData));
    }
    let length = text.trim_end_matches(['\r', '\n']).len();
    text.truncate(length);
    if text.is_empty() { Err(AccessError::Empty) } else { Ok(text) }
}
