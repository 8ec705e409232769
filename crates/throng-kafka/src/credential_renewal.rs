//! Renewal of credentials: tokens before their expiry, and changed password files.

use super::managed_client::{ClientCredential, CredentialDistributor};
use super::refusal::ConnectionRefusal;
use super::refusal_log::RefusalLog;
use super::token::TokenProvider;
use crate::security::SecurityConfig;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use zeroize::Zeroizing;

const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(15);

const EXPIRY_TOLERANCE_MS: i64 = 1_000;

/// Ends the renewal thread on drop.
pub(super) struct RenewalGuard(#[allow(dead_code, reason = "dropping it ends the renewal thread")] Sender<()>);

/// `None` if the credentials cannot change.
pub(super) fn start_renewal(
    security: &SecurityConfig,
    clients: &Arc<CredentialDistributor>,
    hearing: &Arc<RefusalLog>,
) -> Result<Option<RenewalGuard>, std::io::Error> {
    let provider = TokenProvider::of(security);
    let files = [&security.ca_file, &security.certificate_file, &security.key_file];
    let changes = security.password_file.is_some() || files.iter().any(|file| file.is_some());
    if provider.is_none() && !changes {
        return Ok(None);
    }
    let (kept, gone) = crossbeam_channel::bounded(0);
    let keeper = CredentialRenewal {
        security: security.clone(),
        clients: Arc::clone(clients),
        token_refusals: Arc::clone(hearing),
        gone,
    };
    let thread = std::thread::Builder::new().name("throng-keys".to_owned());
    thread.spawn(move || match provider {
        Some(provider) => keeper.renew_tokens(&provider),
        None => keeper.watch_files(),
    })?;
    Ok(Some(RenewalGuard(kept)))
}

struct CredentialRenewal {
    security: SecurityConfig,
    clients: Arc<CredentialDistributor>,
    token_refusals: Arc<RefusalLog>,
    gone: Receiver<()>,
}

impl CredentialRenewal {
    fn wait(&self, pause: Duration) -> bool {
        self.gone.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
    }

    fn renew_tokens(&self, provider: &TokenProvider) {
        let mut wait = FIRST_RETRY_DELAY;
        let mut last = (Zeroizing::new(String::new()), i64::MIN);
        loop {
            let taken = provider.token(&self.security).and_then(|token| {
                let (pause, this) = (provider.renewal_wait(&token), (token.value.clone(), token.expires_ms));
                // The same token may have a later expiry.
                if this.0 != last.0 || this.1 > last.1 + EXPIRY_TOLERANCE_MS {
                    if !self.clients.distribute_credential(ClientCredential::Token(token)) {
                        tracing::debug!("a Kafka client rejected a new token");
                        return Err(ConnectionRefusal::NoToken);
                    }
                    tracing::debug!("broker token renewed");
                    last = this;
                    self.token_refusals.clear_token_refusal();
                }
                Ok(pause)
            });
            let pause = taken.unwrap_or_else(|refusal| {
                self.token_refusals.note(refusal);
                wait
            });
            wait = if taken.is_ok() { FIRST_RETRY_DELAY } else { (wait * 2).min(MAX_RETRY_DELAY) };
            if !self.wait(pause) {
                return;
            }
        }
    }

    fn watch_files(&self) {
        let SecurityConfig { username, ca_file, certificate_file, key_file, .. } = &self.security;
        let user = username.clone().unwrap_or_default();
        let of_tls = [ca_file, certificate_file, key_file];
        let changed = |file: &Path| std::fs::metadata(file).and_then(|file| file.modified()).ok();
        let stamps =
            || -> Vec<Option<SystemTime>> { of_tls.iter().filter_map(|file| file.as_deref()).map(changed).collect() };
        let mut last = self.security.password().ok().flatten();
        let mut stood = stamps();
        while self.wait(FILE_CHECK_INTERVAL) {
            if let Ok(Some(password)) = self.security.password()
                && last.as_ref() != Some(&password)
            {
                last = Some(password.clone());
                if self.clients.distribute_credential(ClientCredential::Password(user.clone(), password)) {
                    tracing::info!("broker password changed: using the new one");
                }
            }
            let now = stamps();
            if now != stood {
                stood = now;
                tracing::warn!(
                    "a TLS file for the brokers has changed: new producers use it now, the consumer after the next start (docs/deploy.md)"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managed_client::CredentialReceiver;
    use crate::security::SaslMechanism;
    use crate::token::endpoint::tests::serve_tokens;
    use std::sync::Mutex;
    use std::time::Instant;

    #[derive(Default)]
    struct ExpiryRecorder(Arc<Mutex<Vec<i64>>>);

    impl CredentialReceiver for ExpiryRecorder {
        fn take(&self, key: &ClientCredential) -> bool {
            if let ClientCredential::Token(token) = key {
                self.0.lock().expect("a list").push(token.expires_ms);
            }
            true
        }
    }

    #[test]
    fn reused_token_with_later_expiry_is_distributed_again() {
        let body = |seconds| format!("{{\"access_token\":\"opaque\",\"expires_in\":{seconds}}}");
        let (oauth, _folder, _served) = serve_tokens(vec![("200 OK", body(1)), ("200 OK", body(600))]);
        let security =
            SecurityConfig { mechanism: Some(SaslMechanism::Oauthbearer), oauth, ..SecurityConfig::default() };
        let (clients, hearing) = (Arc::new(CredentialDistributor::default()), Arc::new(RefusalLog::default()));
        let taken: Arc<Mutex<Vec<i64>>> = Arc::default();
        let _client = clients.register_client(ExpiryRecorder(Arc::clone(&taken)));
        let _kept =
            start_renewal(&security, &clients, &hearing).expect("a thread").expect("there is something to keep");
        let deadline = Instant::now() + Duration::from_secs(60);
        while taken.lock().expect("a list").len() < 2 {
            assert!(Instant::now() < deadline, "the later end was not handed out");
            std::thread::sleep(Duration::from_millis(20));
        }
        let taken = taken.lock().expect("a list");
        assert!(taken[1] > taken[0] + 500_000, "{taken:?}");
    }
}
