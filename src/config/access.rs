//! Who may see the pages: the token, the permissions of secret files, and what a configuration leaves open.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use zeroize::Zeroizing;

use super::{Problem, Secret, SecretError, Telemetry};

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
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.address().is_some_and(|address| !address.ip().is_loopback())
    }

    /// What the configuration leaves open, for whoever runs it to know.
    #[must_use]
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

/// What is wrong with the files that guard the pages.
pub(super) fn problems(telemetry: &Telemetry, file: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Err(error) = telemetry.token() {
        let remedy = "write a random token there, and `chmod 0640` or 0600 it";
        problems.push(Problem::new(file, "telemetry.token_file", error.to_string(), remedy));
    }
    if let Some(Err(error)) = telemetry.tls.key_file.as_deref().map(guarded) {
        let remedy = "name the PEM file of the key, and `chmod 0640` or 0600 it";
        problems.push(Problem::new(file, "telemetry.tls.key_file", error.to_string(), remedy));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;
    use std::fs::{Permissions, set_permissions};

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
            let found = problems(&telemetry, "throng.toml");
            let [problem] = &found[..] else { panic!("one problem: {found:?}") };
            assert_eq!(problem.key, "telemetry.token_file");
            assert!(problem.message.contains(said) && !problem.message.contains("canary"), "{problem:?}");
        }
        let missing = Telemetry { token_file: Some("no/such/token".into()), ..Telemetry::default() };
        assert_eq!(problems(&missing, "throng.toml").len(), 1);
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
}
