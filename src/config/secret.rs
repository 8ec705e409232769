//! A secret, which nobody prints.

use std::{fmt, path::Path, sync::Arc};

use zeroize::Zeroizing;

/// Fewer bytes than this can be guessed.
const LEAST_BYTES: usize = 16;

/// Why a secret is not accepted. No variant holds any part of it.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("the secret has {0} bytes; give at least {LEAST_BYTES}, drawn at random")]
    Short(usize),
    #[error("the secret cannot be read ({0}); name a file that this process may read")]
    Unreadable(std::io::ErrorKind),
}

/// A secret. Debug prints a placeholder, there is no Display, and its memory is wiped when the last copy goes.
#[derive(Clone)]
pub struct Secret(Arc<Zeroizing<Vec<u8>>>);

impl Secret {
    /// A secret of at least 16 bytes; a last line break is not part of it.
    ///
    /// # Errors
    /// [`SecretError::Short`].
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
        Ok(Self(Arc::new(bytes)))
    }

    /// The secret that a file holds.
    ///
    /// # Errors
    /// [`SecretError`]: the file cannot be read or is too short.
    pub fn read(path: &Path) -> Result<Self, SecretError> {
        Self::new(std::fs::read(path).map_err(|error| SecretError::Unreadable(error.kind()))?)
    }

    /// Its bytes, for keying digests and nothing else.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        // Every byte is looked at, so that the time taken tells nothing about where two secrets part.
        self.0.len() == other.0.len() && self.0.iter().zip(other.0.iter()).fold(0, |d, (a, b)| d | (a ^ b)) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::{Secret, SecretError};

    #[test]
    fn a_secret_is_never_printed() {
        let secret = Secret::new(b"canary-canary-canary\r\n".to_vec()).expect("long enough");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.expose(), b"canary-canary-canary");
        assert_ne!(secret, Secret::new(b"canary-canary-canarz".to_vec()).expect("long enough"));
    }

    #[test]
    fn a_short_secret_is_refused_without_quoting_it() {
        let error = Secret::new(b"canary\n".to_vec()).expect_err("six bytes");
        assert!(matches!(error, SecretError::Short(6)));
        assert!(!format!("{error} {error:?}").contains("canary"));
    }
}
