//! Token and exposure of the pages.

use super::TelemetryConfig;
pub use throng_kafka::secret_file::{AccessError, Secret, SecretError};

impl TelemetryConfig {
    /// Reads the token of the pages, if configured.
    ///
    /// # Errors
    /// Fails if the file is unreadable, open to others, or has no valid token.
    pub fn token(&self) -> Result<Option<Secret>, AccessError> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let token = Secret::read(path)?;
        let visible = token.expose().iter().all(u8::is_ascii_graphic);
        if visible { Ok(Some(token)) } else { Err(AccessError::Invisible) }
    }

    /// Returns true if other machines can reach the pages.
    pub fn is_reachable(&self) -> bool {
        self.address().is_some_and(|address| !address.ip().is_loopback())
    }

    /// Warns of pages that are open to other machines.
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
