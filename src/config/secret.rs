//! A secret, which nobody prints.

use std::{fmt, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use zeroize::Zeroizing;

/// Fewer bytes than this can be guessed.
const LEAST_BYTES: usize = 16;

/// Why a secret is not accepted. No variant holds any part of it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each says it")]
pub enum SecretError {
    #[error("the secret has {0} bytes; give at least {LEAST_BYTES}, drawn at random")]
    Short(usize),
    #[error(
        "everybody may write this file (mode {0:o}), so anybody may have chosen the secret; make a new one (chmod 600)"
    )]
    Writable(u32),
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

    /// The secret that a file holds. Where a group may write it, or others may read it, that is told elsewhere and loudly: in
    /// many containers secrets are mounted so, and every user is alone there.
    ///
    /// # Errors
    /// [`SecretError`]: the file cannot be read, everybody may write it, or it is too short.
    pub fn read(path: &Path) -> Result<Self, SecretError> {
        let metadata = std::fs::metadata(path).map_err(|error| SecretError::Unreadable(error.kind()))?;
        let mode = metadata.permissions().mode() & 0o777;
        if metadata.is_file() && mode & 0o002 != 0 {
            return Err(SecretError::Writable(mode));
        }
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
    fn a_secret_that_anybody_may_have_written_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, "canary-canary-canary").expect("a file");
        for (mode, taken) in [(0o600, true), (0o640, true), (0o664, true), (0o666, false), (0o602, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("our file");
            match Secret::read(&path) {
                Ok(_) => assert!(taken, "{mode:o}"),
                Err(error) => assert!(!taken && matches!(error, SecretError::Writable(_)), "{mode:o}: {error}"),
            }
        }
    }

    #[test]
    fn a_short_secret_is_refused_without_quoting_it() {
        let error = Secret::new(b"canary\n".to_vec()).expect_err("six bytes");
        assert!(matches!(error, SecretError::Short(6)));
        assert!(!format!("{error} {error:?}").contains("canary"));
    }
}
