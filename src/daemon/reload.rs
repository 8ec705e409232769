//! Reload: a validated restart of the pipeline inside the process.
//!
//! A thread receives requests (SIGHUP, `POST /reload`) and validates the configuration. It passes a valid one to
//! [`run`](super::run), which ends the pipeline between two batches and restarts it. If the validation or the restart
//! fails, the old configuration stays in force.

use super::http::PageSite;
use super::requests::{PendingRequest, ReloadAnswer, ReloadSender, RequestSender};
use crate::config;
use crate::start::checked_config::CheckedConfig;
use crate::start::config_changes::{changed_keys, reload_refusals};
use crate::telemetry::{ConfigReloaded, ReloadOutcome, Telemetry};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use sha2::{Digest, Sha256};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const HANGUP_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of queued requests. One attempt answers all queued requests.
const MAX_QUEUED_RELOADS: usize = 64;

/// Reads and validates the configuration. Returns all problems, or a valid configuration. Stops when the flag is set.
pub type ReadConfig = dyn Fn(&AtomicBool) -> Result<CheckedConfig, Vec<String>> + Send + Sync;

/// Inputs for configuration reloads.
#[derive(Clone)]
pub struct ReloadInputs {
    /// Reads and validates the configuration.
    pub read: Arc<ReadConfig>,
    /// Set by SIGHUP.
    pub hangup: Arc<AtomicBool>,
}

/// Pause between the old pipeline and the new one, or the reasons for keeping the old configuration.
type RestartOutcome = Result<Duration, Vec<String>>;

/// A valid configuration that is queued until the pipeline ends.
pub struct NextConfig {
    /// The configuration.
    pub checked: CheckedConfig,
    /// True if the settings, the token or the certificate of the pages have changed.
    pub renews_pages: bool,
    answer: Sender<RestartOutcome>,
}

impl NextConfig {
    /// Reports the outcome of the restart.
    pub fn report(&self, outcome: RestartOutcome) {
        // If the receiver has ended, so does the daemon.
        drop(self.answer.send(outcome));
    }
}

/// The thread that validates configurations.
pub struct ReloadThread {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct ReloadWorker {
    reloading: ReloadInputs,
    requests: Receiver<PendingRequest<(), ReloadAnswer>>,
    /// Keeps the channel open if there is no page; `recv_timeout` does not wait on a closed channel.
    _open: ReloadSender,
    next: Sender<NextConfig>,
    telemetry: Telemetry,
    over: Arc<AtomicBool>,
    current: CheckedConfig,
    credentials: CredentialDigests,
}

/// Digests of the credential files of the pages, by configuration key. They detect a token or certificate that was
/// renewed in place.
#[derive(Clone, PartialEq, Eq)]
struct CredentialDigests([(&'static str, Option<[u8; 32]>); 3]);

impl CredentialDigests {
    /// Reads the files. An unreadable file has no digest; the validation reports the cause.
    fn read(pages: &config::TelemetryConfig) -> Self {
        let digest = |file: &Option<PathBuf>| {
            let bytes = std::fs::read(file.as_ref()?).ok()?;
            Some(Sha256::digest(bytes).into())
        };
        Self([
            ("telemetry.tls.cert_file", digest(&pages.tls.cert_file)),
            ("telemetry.tls.key_file", digest(&pages.tls.key_file)),
            ("telemetry.token_file", digest(&pages.token_file)),
        ])
    }

    fn changed_files(&self, other: &Self) -> impl Iterator<Item = String> {
        let pairs = self.0.iter().zip(&other.0);
        pairs.filter(|(new, old)| new.1 != old.1).map(|((key, _), _)| (*key).to_owned())
    }
}

impl ReloadThread {
    /// Starts the thread for a pipeline with the configuration `current`. Returns the sender of reload requests and
    /// the receiver from which [`run`](super::run) reads the next configuration.
    pub fn start(
        reloading: ReloadInputs,
        current: CheckedConfig,
        telemetry: &Telemetry,
    ) -> std::io::Result<(Self, ReloadSender, Receiver<NextConfig>)> {
        let (open, requests) = RequestSender::channel(MAX_QUEUED_RELOADS);
        // Unbounded: a queued configuration is dropped with the receiver, which ends the wait for its answer. At most
        // one is queued.
        let (next, nexts) = unbounded();
        let over = Arc::new(AtomicBool::new(false));
        let mut work = ReloadWorker {
            reloading,
            requests,
            _open: open.clone(),
            next,
            telemetry: telemetry.clone(),
            over: Arc::clone(&over),
            credentials: CredentialDigests::read(&current.config.telemetry),
            current,
        };
        let thread = std::thread::Builder::new().name("reload".to_owned()).spawn(move || work.run())?;
        Ok((Self { over, thread: Some(thread) }, open, nexts))
    }
}

impl Drop for ReloadThread {
    /// Stops the thread. Pending requests end with their channels.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the reload thread panicked");
        }
    }
}

impl ReloadWorker {
    fn run(&mut self) {
        while !self.over.load(Ordering::Acquire) {
            let first = self.requests.recv_timeout(HANGUP_POLL_INTERVAL).ok();
            let hung_up = self.reloading.hangup.swap(false, Ordering::AcqRel);
            if first.is_none() && !hung_up {
                continue;
            }
            // The file is read after all these requests were sent, so one attempt answers them.
            let waiting: Vec<_> = first.into_iter().chain(self.requests.try_iter()).collect();
            let Some(answer) = self.reload() else { return };
            for ((), client) in waiting {
                // The client may have disconnected.
                drop(client.send(answer.clone()));
            }
        }
    }

    /// Makes one attempt; `None` if the daemon ended meanwhile.
    fn reload(&mut self) -> Option<ReloadAnswer> {
        let start = Instant::now();
        let read = (self.reloading.read)(&self.over);
        if self.over.load(Ordering::Acquire) {
            return None;
        }
        let (keys, restarted) = match read {
            Err(reasons) => (Vec::new(), Err(reasons)),
            Ok(new) => {
                let credentials = CredentialDigests::read(&new.config.telemetry);
                let mut keys = changed_keys(&self.current.config, &new.config);
                keys.extend(credentials.changed_files(&self.credentials));
                keys.sort_unstable();
                keys.dedup();
                let renews_pages =
                    self.current.config.telemetry != new.config.telemetry || credentials != self.credentials;
                let reasons = self.refusals(&new, renews_pages);
                if !reasons.is_empty() {
                    (keys, Err(reasons))
                } else if keys.is_empty() && new.policy == self.current.policy {
                    let seconds = (start.elapsed().as_secs_f64(), 0.0);
                    return Some(self.report_outcome(ReloadOutcome::Unchanged, keys, Vec::new(), seconds));
                } else {
                    (keys, self.restart(new, credentials, renews_pages)?)
                }
            }
        };
        let total = start.elapsed().as_secs_f64();
        Some(match restarted {
            Ok(pause) => {
                let pause = pause.as_secs_f64();
                self.report_outcome(ReloadOutcome::Replaced, keys, Vec::new(), (total - pause, pause))
            }
            Err(reasons) => self.report_outcome(ReloadOutcome::Refused, keys, reasons, (total, 0.0)),
        })
    }

    /// Checks made without a restart.
    fn refusals(&self, new: &CheckedConfig, renews_pages: bool) -> Vec<String> {
        let mut reasons: Vec<String> =
            reload_refusals(&self.current, new).into_iter().map(|(key, why)| format!("{key}: {why}")).collect();
        let (old, pages) = (&self.current.config.telemetry, &new.config.telemetry);
        if renews_pages {
            reasons.extend(PageSite::new(self.telemetry.clone(), pages).err().map(|error| error.to_string()));
        }
        if old.address() != pages.address()
            && let Some(Err(error)) = pages.address().map(TcpListener::bind)
        {
            reasons.push(format!("telemetry.listen: cannot listen on the address: {error} (set it to a free address and port of this machine)"));
        }
        reasons
    }

    /// Passes a configuration to the pipeline and waits for the restart; `None` if the daemon ends first.
    fn restart(
        &mut self,
        checked: CheckedConfig,
        credentials: CredentialDigests,
        renews_pages: bool,
    ) -> Option<RestartOutcome> {
        let (answer, answered) = bounded(1);
        self.next.send(NextConfig { checked: checked.clone(), renews_pages, answer }).ok()?;
        let restarted = answered.recv().ok()?;
        if restarted.is_ok() {
            self.current = checked;
            self.credentials = credentials;
        }
        Some(restarted)
    }

    fn report_outcome(
        &self,
        outcome: ReloadOutcome,
        changed: Vec<String>,
        reasons: Vec<String>,
        seconds: (f64, f64),
    ) -> ReloadAnswer {
        ConfigReloaded { outcome, changed: &changed, reasons: &reasons, seconds }.emit(&self.telemetry);
        ReloadAnswer { outcome, policy: self.current.policy.short(), changed, reasons }
    }
}
