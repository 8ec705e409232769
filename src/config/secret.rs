//! Secrets, which are never printed, and the files that contain them. Warns of a configuration that exposes the
//! pages.

use super::TelemetryConfig;
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
pub(super) fn check_permissions(path: &Path) -> Result<(), AccessError> {
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
pub(super) fn secret_text(path: &Path) -> Result<Zeroizing<String>, AccessError> {
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

impl TelemetryConfig {
    /// Reads the token of the pages, if configured.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is open to other users, or contains no valid token.
    pub fn token(&self) -> Result<Option<Secret>, AccessError> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let token = Secret::read(path)?;
        let visible = token.expose().iter().all(u8::is_ascii_graphic);
        if visible { Ok(Some(token)) } else { Err(AccessError::Invisible) }
    }

    /// Returns true if the pages can be reached from other machines.
    pub fn is_reachable(&self) -> bool {
        self.address().is_some_and(|address| !address.ip().is_loopback())
    }

    /// Returns warnings about pages that are open to other machines.
    pub fn exposure_warnings(&self) -> Vec<String> {
        if !self.is_reachable() {
            return Vec::new();
        }
        let listen = &self.listen;
        match (&self.token_file, &self.tls.cert_file) {
            (None, _) => vec![format!(
                "telemetry.listen = \"{listen}\" can be reached from other machines and requires no token: all \
                 clients can read the pages (set telemetry.token_file, or listen on 127.0.0.1)"
            )],
            (Some(_), None) => vec![format!(
                "telemetry.listen = \"{listen}\" can be reached from other machines without TLS: an eavesdropper \
                 learns the token (set telemetry.tls, or terminate TLS in a proxy)"
            )],
            (Some(_), Some(_)) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SecurityConfig;
    use crate::config::parse;
    use crate::config::security::{page_file_flaws, security_file_flaws};
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn secret_debug_shows_placeholder() {
        let secret = Secret::new(b"canary-canary-canary\r\n".to_vec()).expect("long enough");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.expose(), b"canary-canary-canary");
        assert_ne!(secret, Secret::new(b"canary-canary-canarz".to_vec()).expect("long enough"));
    }

    #[test]
    fn secret_file_open_to_others_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, "canary-canary-canary").expect("a file");
        for (mode, taken) in [
            (0o600, true),
            (0o640, true),
            (0o660, true),
            (0o644, false),
            (0o604, false),
            (0o602, false),
            (0o601, false),
        ] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("our file");
            match Secret::read(&path) {
                Ok(_) => assert!(taken, "{mode:o}"),
                Err(error) => assert!(!taken && matches!(error, AccessError::Exposed { .. }), "{mode:o}: {error}"),
            }
        }
    }

    #[test]
    fn created_secret_is_random_private_and_never_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let made = Secret::create(&path).expect("a new file");
        assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        assert!(Secret::read(&path).expect("a secret") == made && made.expose().len() == 64);
        assert!(Secret::generate().expect("randomness") != made);
        assert!(Secret::create(&path).is_err(), "a state may depend on it");
    }

    #[test]
    fn weak_secret_is_refused_without_quoting() {
        for guessed in [vec![0; 64], b"AAAAAAAAAAAAAAAA=\n".to_vec()] {
            assert!(matches!(Secret::new(guessed), Err(SecretError::Repetitive(..=2))));
        }
        let error = Secret::new(b"canary\n".to_vec()).expect_err("six bytes");
        assert!(matches!(error, SecretError::Short(6)));
        assert!(!format!("{error} {error:?}").contains("canary"));
    }

    fn with_token(text: &str, mode: u32) -> (tempfile::TempDir, TelemetryConfig) {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("token");
        std::fs::write(&path, text).expect("a file");
        set_permissions(&path, Permissions::from_mode(mode)).expect("our own file");
        (home, TelemetryConfig { token_file: Some(path), ..TelemetryConfig::default() })
    }

    #[test]
    fn invalid_token_is_reported_without_quoting() {
        for mode in [0o600, 0o400, 0o640] {
            let (_home, telemetry) = with_token("canary-canary-canary\n", mode);
            let token = telemetry.token().expect("a token").expect("one is configured");
            assert_eq!(token.expose(), b"canary-canary-canary");
        }
        for (text, mode, said) in [
            ("canary-canary-canary", 0o644, "0644"),
            ("canary-canary-canary", 0o602, "0602"),
            ("canary", 0o600, "6 bytes"),
            ("canary canary canary", 0o600, "visible"),
        ] {
            let (_home, telemetry) = with_token(text, mode);
            let found = page_file_flaws(&telemetry);
            let [("token_file", error, _)] = &found[..] else { panic!("one problem: {found:?}") };
            assert!(error.to_string().contains(said) && !format!("{error:?}").contains("canary"), "{error}");
        }
        let missing = TelemetryConfig { token_file: Some("no/such/token".into()), ..TelemetryConfig::default() };
        assert_eq!(page_file_flaws(&missing).len(), 1);
    }

    #[test]
    fn reachable_pages_without_protection_give_warning() {
        let at = |listen: &str| TelemetryConfig { listen: listen.into(), ..TelemetryConfig::default() };
        assert!(at("127.0.0.1:9464").exposure_warnings().is_empty() && at("[::1]:9464").exposure_warnings().is_empty());
        for listen in ["0.0.0.0:9464", "[::]:9464", "10.1.2.3:9464"] {
            assert!(at(listen).exposure_warnings()[0].contains("no token"), "{listen}");
        }
        let token = TelemetryConfig { token_file: Some("token".into()), ..at("0.0.0.0:9464") };
        assert!(token.exposure_warnings()[0].contains("without TLS"));
        let tls = super::super::PagesTls { cert_file: Some("c".into()), key_file: Some("k".into()) };
        assert!(TelemetryConfig { tls, ..token }.exposure_warnings().is_empty());
    }

    #[test]
    fn incomplete_tls_and_invalid_hosts_are_refused() {
        let problems = |text: &str| {
            let text = format!(
                "[source]\nkind = \"file\"\npath = \"a.ndjson\"\n[schema]\nfile = \"s.toml\"\n[telemetry]\n{text}"
            );
            let problems = parse(&text, "throng.toml", std::iter::empty()).err().unwrap_or_default();
            problems.into_iter().map(|p| p.key).filter(|key| key.starts_with("telemetry")).collect::<Vec<_>>()
        };
        assert_eq!(problems("tls.cert_file = \"a.crt\""), ["telemetry.tls"]);
        assert_eq!(problems("allowed_hosts = [\"http://throng\"]"), ["telemetry.allowed_hosts"]);
        assert_eq!(problems("allowed_hosts = [\"*\"]"), ["telemetry.allowed_hosts"]);
        assert!(problems("allowed_hosts = [\"throng\", \"throng.internal.example\"]").is_empty());
    }

    #[test]
    fn readable_password_file_is_refused_without_quoting() {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("password");
        for (text, mode, said) in [
            ("canary-71\n", 0o644, "0644"),
            ("\n", 0o600, "empty"),
            ("canary-71\n", 0o640, ""),
            ("canary-71", 0o600, ""),
        ] {
            std::fs::write(&path, text).expect("a file");
            set_permissions(&path, Permissions::from_mode(mode)).expect("our own file");
            let security = SecurityConfig { password_file: Some(path.clone()), ..SecurityConfig::default() };
            let found = security_file_flaws(&security);
            assert_eq!(found.is_empty(), said.is_empty(), "{found:?}");
            for (key, error, _) in found {
                assert!(key == "password_file" && error.to_string().contains(said), "{error}");
                assert!(!format!("{error:?}").contains("canary"));
            }
            if said.is_empty() {
                assert_eq!(security.password().expect("readable").expect("given").as_str(), "canary-71");
            }
        }
    }
}
