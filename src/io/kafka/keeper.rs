//! Keeps the keys of a cluster's clients: renews tokens before they end, and reads a password again that may have changed.

use super::hearing::Hearing;
use super::live::{Clients, Key};
use super::refusal::Refusal;
use super::token::Provider;
use crate::config::Security;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use zeroize::Zeroizing;

/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long a provider that gave no token is left alone, at first and at most.
const AGAIN: Duration = Duration::from_millis(500);
const AT_MOST: Duration = Duration::from_secs(15);

/// Tells one end of a token from another.
const A_MOMENT_MS: i64 = 1_000;

/// Lives as long as the keeper is needed: its thread ends when this goes.
pub(super) struct Kept(#[allow(dead_code, reason = "its end is heard")] Sender<()>);

/// Keeps the keys of `clients`; none where nothing of theirs can change.
pub(super) fn keep(
    security: &Security,
    clients: &Arc<Clients>,
    hearing: &Arc<Hearing>,
) -> Result<Option<Kept>, std::io::Error> {
    let provider = Provider::of(security);
    let files = [&security.ca_file, &security.certificate_file, &security.key_file];
    let changes = security.password_file.is_some() || files.iter().any(|file| file.is_some());
    if provider.is_none() && !changes {
        return Ok(None);
    }
    let (kept, gone) = crossbeam_channel::bounded(0);
    let keeper =
        Keeper { security: security.clone(), clients: Arc::clone(clients), hearing: Arc::clone(hearing), gone };
    let thread = std::thread::Builder::new().name("throng-keys".to_owned());
    thread.spawn(move || match provider {
        Some(provider) => keeper.renew(&provider),
        None => keeper.watch(),
    })?;
    Ok(Some(Kept(kept)))
}

struct Keeper {
    security: Security,
    clients: Arc<Clients>,
    hearing: Arc<Hearing>,
    gone: Receiver<()>,
}

impl Keeper {
    /// Waits; false when nobody needs the keeper any more.
    fn wait(&self, pause: Duration) -> bool {
        self.gone.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
    }

    /// Asks for tokens, one before the other has ended.
    fn renew(&self, provider: &Provider) {
        let mut wait = AGAIN;
        let mut last = (Zeroizing::new(String::new()), i64::MIN);
        loop {
            let taken = provider.token(&self.security).and_then(|token| {
                let (pause, this) = (provider.pause(&token), (token.value.clone(), token.expires_ms));
                // The same token may be good for longer than was said before.
                if this.0 != last.0 || this.1 > last.1 + A_MOMENT_MS {
                    if !self.clients.hand_out(Key::Token(token)) {
                        tracing::debug!("a client does not take a token");
                        return Err(Refusal::NoToken);
                    }
                    tracing::debug!("a new token for the brokers");
                    last = this;
                    self.hearing.token_came();
                }
                Ok(pause)
            });
            let pause = taken.unwrap_or_else(|refusal| {
                self.hearing.note(refusal);
                wait
            });
            wait = if taken.is_ok() { AGAIN } else { (wait * 2).min(AT_MOST) };
            if !self.wait(pause) {
                return;
            }
        }
    }

    /// Looks at the files of passwords and of TLS.
    fn watch(&self) {
        let Security { username, ca_file, certificate_file, key_file, .. } = &self.security;
        let user = username.clone().unwrap_or_default();
        let of_tls = [ca_file, certificate_file, key_file];
        let changed = |file: &Path| std::fs::metadata(file).and_then(|file| file.modified()).ok();
        let stamps =
            || -> Vec<Option<SystemTime>> { of_tls.iter().filter_map(|file| file.as_deref()).map(changed).collect() };
        let mut last = self.security.password().ok().flatten();
        let mut stood = stamps();
        while self.wait(LOOK) {
            // A file that is just being replaced is looked at again.
            if let Ok(Some(password)) = self.security.password()
                && last.as_ref() != Some(&password)
            {
                last = Some(password.clone());
                if self.clients.hand_out(Key::Password(user.clone(), password)) {
                    tracing::info!("the password for the brokers has changed: it is used from now on");
                }
            }
            let now = stamps();
            if now != stood {
                stood = now;
                tracing::warn!(
                    "a file of TLS for the brokers has changed: producers use it from now on, the consumer after the next start (docs/security.md)"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mechanism;
    use crate::io::kafka::live::Keyed;
    use crate::io::kafka::token::endpoint::tests::provider;
    use std::sync::Mutex;
    use std::time::Instant;

    /// Takes every key, and notes when it ends.
    #[derive(Default)]
    struct Taker(Arc<Mutex<Vec<i64>>>);

    impl Keyed for Taker {
        fn take(&self, key: &Key) -> bool {
            if let Key::Token(token) = key {
                self.0.lock().expect("a list").push(token.expires_ms);
            }
            true
        }
    }

    /// A provider that gives one token for as long as it is good may say later that it is good for longer: clients that were not told
    /// would ask for another when it ends.
    #[test]
    fn the_same_token_with_a_later_end_is_handed_out_again() {
        let body = |seconds| format!("{{\"access_token\":\"opaque\",\"expires_in\":{seconds}}}");
        let (oauth, _folder, _served) = provider(vec![("200 OK", body(1)), ("200 OK", body(600))]);
        let security = Security { mechanism: Some(Mechanism::Oauthbearer), oauth, ..Security::default() };
        let (clients, hearing) = (Arc::new(Clients::default()), Arc::new(Hearing::default()));
        let taken: Arc<Mutex<Vec<i64>>> = Arc::default();
        let _client = clients.admit(Taker(Arc::clone(&taken)));
        let _kept = keep(&security, &clients, &hearing).expect("a thread").expect("there is something to keep");
        let deadline = Instant::now() + Duration::from_secs(60);
        while taken.lock().expect("a list").len() < 2 {
            assert!(Instant::now() < deadline, "the later end was not handed out");
            std::thread::sleep(Duration::from_millis(20));
        }
        let taken = taken.lock().expect("a list");
        assert!(taken[1] > taken[0] + 500_000, "{taken:?}");
    }
}
