//! Secrets: bytes that nobody prints, and the files that hold them. What a configuration leaves open to others.

use super::Telemetry;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
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

/// Why a file that only we may read is not accepted.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each says it")]
pub enum AccessError {
    #[error("the file cannot be read ({0})")]
    Unreadable(std::io::ErrorKind),
    #[error("everybody on this machine may read or change the file (mode {mode:04o})")]
    Exposed { mode: u32 },
    #[error("the file is empty")]
    Empty,
    #[error(transparent)]
    Token(#[from] SecretError),
    #[error("the token holds other characters than the visible ones of ASCII, which no request could carry")]
    Invisible,
}

/// Nobody but owner and group may read, change or execute the file.
pub(super) fn guarded(path: &Path) -> Result<(), AccessError> {
    let mode = std::fs::metadata(path).map_err(|e| AccessError::Unreadable(e.kind()))?.permissions().mode() & 0o7777;
    let others = mode & 0o007;
    if others == 0 { Ok(()) } else { Err(AccessError::Exposed { mode }) }
}

/// Bytes of a secret's file.
const MOST_BYTES: u64 = 64 << 10;

/// The content of a file that only we may read, without its last line break.
pub(super) fn secret_text(path: &Path) -> Result<Zeroizing<String>, AccessError> {
    guarded(path)?;
    // A pipe would be waited for, and what a client cannot take is told here.
    if !std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= MOST_BYTES) {
        return Err(AccessError::Unreadable(std::io::ErrorKind::InvalidInput));
    }
    let mut text = Zeroizing::new(std::fs::read_to_string(path).map_err(|e| AccessError::Unreadable(e.kind()))?);
    if text.contains('\0') {
        return Err(AccessError::Unreadable(std::io::ErrorKind::InvalidData));
    }
    let length = text.trim_end_matches(['\r', '\n']).len();
    text.truncate(length);
    if text.is_empty() { Err(AccessError::Empty) } else { Ok(text) }
}

impl Telemetry {
    /// The token that opens the pages, where one is configured.
    ///
    /// # Errors
    /// When its file cannot be read, is open to everybody, or holds no token.
    pub fn token(&self) -> Result<Option<Secret>, AccessError> {
        let Some(path) = &self.token_file else { return Ok(None) };
        guarded(path)?;
        let token = Secret::read(path)?;
        let visible = token.expose().iter().all(u8::is_ascii_graphic);
        if visible { Ok(Some(token)) } else { Err(AccessError::Invisible) }
    }

    /// Whether the pages can be reached from other machines.
    pub fn is_reachable(&self) -> bool {
        self.address().is_some_and(|address| !address.ip().is_loopback())
    }

    /// What the configuration leaves open, for whoever runs it to know.
    pub fn warnings(&self) -> Vec<String> {
        if !self.is_reachable() {
            return Vec::new();
        }
        let listen = &self.listen;
        match (&self.token_file, &self.tls.cert_file) {
            (None, _) => vec![format!(
                "telemetry.listen = \"{listen}\" can be reached from other machines and no token is asked for: whoever \
                 reaches it sees the pages (set telemetry.token_file, or listen on 127.0.0.1)"
            )],
            (Some(_), None) => vec![format!(
                "telemetry.listen = \"{listen}\" can be reached from other machines without TLS: whoever listens on the way \
                 learns the token (set telemetry.tls, or have a proxy do it)"
            )],
            (Some(_), Some(_)) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Security;
    use crate::config::parse;
    use crate::config::security::{of_pages, of_table};
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

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

    fn with_token(text: &str, mode: u32) -> (tempfile::TempDir, Telemetry) {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("token");
        std::fs::write(&path, text).expect("a file");
        set_permissions(&path, Permissions::from_mode(mode)).expect("our own file");
        (home, Telemetry { token_file: Some(path), ..Telemetry::default() })
    }

    #[test]
    fn a_token_is_read_and_a_bad_one_named_without_quoting_it() {
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
            let found = of_pages(&telemetry);
            let [("token_file", error, _)] = &found[..] else { panic!("one problem: {found:?}") };
            assert!(error.to_string().contains(said) && !format!("{error:?}").contains("canary"), "{error}");
        }
        let missing = Telemetry { token_file: Some("no/such/token".into()), ..Telemetry::default() };
        assert_eq!(of_pages(&missing).len(), 1);
    }

    #[test]
    fn what_is_open_is_said() {
        let at = |listen: &str| Telemetry { listen: listen.into(), ..Telemetry::default() };
        assert!(at("127.0.0.1:9464").warnings().is_empty() && at("[::1]:9464").warnings().is_empty());
        for listen in ["0.0.0.0:9464", "[::]:9464", "10.1.2.3:9464"] {
            assert!(at(listen).warnings()[0].contains("no token"), "{listen}");
        }
        let token = Telemetry { token_file: Some("token".into()), ..at("0.0.0.0:9464") };
        assert!(token.warnings()[0].contains("without TLS"));
        let tls = super::super::PagesTls { cert_file: Some("c".into()), key_file: Some("k".into()) };
        assert!(Telemetry { tls, ..token }.warnings().is_empty());
    }

    #[test]
    fn half_of_tls_and_odd_names_are_refused() {
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
    fn a_password_that_others_may_read_is_refused_without_quoting_it() {
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
            let security = Security { password_file: Some(path.clone()), ..Security::default() };
            let found = of_table(&security);
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
