//! Secrets, which are never printed, and their files.

use rand::{TryRngCore, rngs::OsRng};
use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Shorter secrets can be guessed.
const LEAST_BYTES: usize = 16;

const MIN_DISTINCT_BYTES: usize = 4;

/// Reason to refuse a secret.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum SecretError {
    #[error("the secret has {0} bytes; give at least {LEAST_BYTES}, drawn at random")]
    Short(usize),
    #[error("the secret has only {0} different bytes and can be guessed; draw it at random")]
    Repetitive(usize),
}

/// Secret bytes, never printed, wiped after the last drop.
#[derive(Clone)]
pub struct Secret(Arc<Zeroizing<Vec<u8>>>);

impl Secret {
    /// Creates a secret of at least 16 bytes, 4 of them different.
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

    /// Reads a secret from a file, which its group may read, as Kubernetes mounts it.
    ///
    /// # Errors
    /// [`AccessError`]: unreadable, open to others than owner and group, or too short.
    pub fn read(path: &Path) -> Result<Self, AccessError> {
        Ok(Self::new(secret_bytes(path)?.to_vec())?)
    }

    /// Generates 32 random bytes as 64 hexadecimal digits.
    ///
    /// # Errors
    /// Without randomness.
    pub fn generate() -> std::io::Result<Self> {
        let mut bytes = Zeroizing::new([0_u8; 32]);
        OsRng.try_fill_bytes(&mut *bytes).map_err(std::io::Error::other)?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(Arc::new(Zeroizing::new(text.into_bytes()))))
    }

    /// Generates a secret into a new file of mode 0600.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        let secret = Self::generate()?;
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(&[secret.expose(), b"\n"].concat())?;
        file.sync_all()?;
        Ok(secret)
    }

    /// Returns the bytes, only to key digests and compare tokens.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        // Compares every byte: constant time.
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

/// Refuses a secret file open to others than owner and group.
pub fn check_permissions(path: &Path) -> Result<(), AccessError> {
    let mode = std::fs::metadata(path).map_err(|e| AccessError::Unreadable(e.kind()))?.permissions().mode() & 0o7777;
    let others = mode & 0o007;
    if others == 0 { Ok(()) } else { Err(AccessError::Exposed { mode }) }
}

const MAX_SECRET_FILE_BYTES: u64 = 64 << 10;

fn secret_bytes(path: &Path) -> Result<Zeroizing<Vec<u8>>, AccessError> {
    check_permissions(path)?;
    // A pipe would block.
    if !std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= MAX_SECRET_FILE_BYTES) {
        return Err(AccessError::Unreadable(std::io::ErrorKind::InvalidInput));
    }
    std::fs::read(path).map(Zeroizing::new).map_err(|error| AccessError::Unreadable(error.kind()))
}

/// Returns the text of a secret file, without last line breaks.
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
