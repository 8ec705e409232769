//! Reload: a validated restart of the pipeline inside the process.
//!
//! A thread takes requests (SIGHUP, `POST /reload`), has the configuration read and tested, and hands a valid one to
//! [`run`](super::run), which ends the pipeline between two batches and starts it again with the new configuration. Where validation
//! or the new start fails, the old configuration goes on.

use super::http::Site;
use super::requests::{ReloadAnswer, ReloadRequests, Request, Requests};
use crate::config;
use crate::start::changes::{changed, refusals};
use crate::start::checked::Checked;
use crate::telemetry::{ReloadOutcome, Reloaded, Telemetry};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use sha2::{Digest, Sha256};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks at SIGHUP and at the end of the daemon.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Requests that wait at most; all that wait are answered by one attempt.
const MAX_WAITING: usize = 64;

/// Reads and tests the configuration; returns every problem, or a valid configuration. Gives up when the flag is set.
pub type ReadConfig = dyn Fn(&AtomicBool) -> Result<Checked, Vec<String>> + Send + Sync;

/// How a daemon reloads its configuration.
#[derive(Clone)]
pub struct Reloading {
    /// Reads and tests it.
    pub read: Arc<ReadConfig>,
    /// Set by SIGHUP.
    pub hangup: Arc<AtomicBool>,
}

/// Time from the end of the old pipeline to the begin of the new one, or why the old configuration goes on.
type Restarted = Result<Duration, Vec<String>>;

/// A valid configuration that waits for the pipeline to end.
pub struct NextConfig {
    /// The configuration.
    pub checked: Checked,
    /// The pages have other settings, or their token or certificate is another.
    pub renews_pages: bool,
    answer: Sender<Restarted>,
}

impl NextConfig {
    /// Reports the outcome of the restart.
    pub fn report(&self, outcome: Restarted) {
        // The thread may have ended: so does the daemon.
        drop(self.answer.send(outcome));
    }
}

/// The thread that validates configurations.
pub struct Reloader {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Work {
    reloading: Reloading,
    requests: Receiver<Request<(), ReloadAnswer>>,
    /// Keeps the channel open where there is no page: a closed one is not waited for.
    _open: ReloadRequests,
    next: Sender<NextConfig>,
    telemetry: Telemetry,
    over: Arc<AtomicBool>,
    current: Checked,
    credentials: Credentials,
}

/// Keys of the pages that name files, with digests of what these hold: a token or certificate may be renewed in place.
#[derive(Clone, PartialEq, Eq)]
struct Credentials([(&'static str, Option<[u8; 32]>); 3]);

impl Credentials {
    /// Reads the files. One that cannot be read has no digest: the validation says why.
    fn read(pages: &config::Telemetry) -> Self {
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

    /// The keys whose files hold something else than in `other`.
    fn differing(&self, other: &Self) -> impl Iterator<Item = String> {
        let pairs = self.0.iter().zip(&other.0);
        pairs.filter(|(new, old)| new.1 != old.1).map(|((key, _), _)| (*key).to_owned())
    }
}

impl Reloader {
    /// Starts the thread beside a pipeline with the configuration `current`. Returns where reloads are requested and where
    /// [`run`](super::run) finds the next configuration.
    pub fn start(
        reloading: Reloading,
        current: Checked,
        telemetry: &Telemetry,
    ) -> std::io::Result<(Self, ReloadRequests, Receiver<NextConfig>)> {
        let (open, requests) = Requests::channel(MAX_WAITING);
        // Unbounded: a configuration that waits is dropped with the receiver, which ends the wait for its answer. One waits at most.
        let (next, nexts) = unbounded();
        let over = Arc::new(AtomicBool::new(false));
        let mut work = Work {
            reloading,
            requests,
            _open: open.clone(),
            next,
            telemetry: telemetry.clone(),
            over: Arc::clone(&over),
            credentials: Credentials::read(&current.config.telemetry),
            current,
        };
        let thread = std::thread::Builder::new().name("reload".to_owned()).spawn(move || work.run())?;
        Ok((Self { over, thread: Some(thread) }, open, nexts))
    }
}

impl Drop for Reloader {
    /// Requests that still wait end with their channels.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the reload thread panicked");
        }
    }
}

impl Work {
    fn run(&mut self) {
        while !self.over.load(Ordering::Acquire) {
            let first = self.requests.recv_timeout(POLL_INTERVAL).ok();
            let hung_up = self.reloading.hangup.swap(false, Ordering::AcqRel);
            if first.is_none() && !hung_up {
                continue;
            }
            // The file is read after all of these were sent: one attempt answers them.
            let waiting: Vec<_> = first.into_iter().chain(self.requests.try_iter()).collect();
            let Some(answer) = self.reload() else { return };
            for ((), client) in waiting {
                // The client may have gone.
                drop(client.send(answer.clone()));
            }
        }
    }

    /// Makes one attempt; none where the daemon ended meanwhile.
    fn reload(&mut self) -> Option<ReloadAnswer> {
        let start = Instant::now();
        let read = (self.reloading.read)(&self.over);
        if self.over.load(Ordering::Acquire) {
            return None;
        }
        let (keys, restarted) = match read {
            Err(reasons) => (Vec::new(), Err(reasons)),
            Ok(new) => {
                let credentials = Credentials::read(&new.config.telemetry);
                let mut keys = changed(&self.current.config, &new.config);
                keys.extend(credentials.differing(&self.credentials));
                keys.sort_unstable();
                keys.dedup();
                let renews_pages =
                    self.current.config.telemetry != new.config.telemetry || credentials != self.credentials;
                let reasons = self.refusals(&new, renews_pages);
                if !reasons.is_empty() {
                    (keys, Err(reasons))
                } else if keys.is_empty() && new.policy == self.current.policy {
                    let seconds = (start.elapsed().as_secs_f64(), 0.0);
                    return Some(self.answer(ReloadOutcome::Unchanged, keys, Vec::new(), seconds));
                } else {
                    (keys, self.restart(new, credentials, renews_pages)?)
                }
            }
        };
        let total = start.elapsed().as_secs_f64();
        Some(match restarted {
            Ok(pause) => {
                let pause = pause.as_secs_f64();
                self.answer(ReloadOutcome::Replaced, keys, Vec::new(), (total - pause, pause))
            }
            Err(reasons) => self.answer(ReloadOutcome::Refused, keys, reasons, (total, 0.0)),
        })
    }

    /// Reasons that are known without a restart.
    fn refusals(&self, new: &Checked, renews_pages: bool) -> Vec<String> {
        let mut reasons: Vec<String> =
            refusals(&self.current, new).into_iter().map(|(key, why)| format!("{key}: {why}")).collect();
        let (old, pages) = (&self.current.config.telemetry, &new.config.telemetry);
        if renews_pages {
            reasons.extend(Site::new(self.telemetry.clone(), pages).err().map(|error| error.to_string()));
        }
        if old.address() != pages.address()
            && let Some(Err(error)) = pages.address().map(TcpListener::bind)
        {
            reasons.push(format!("telemetry.listen: the address cannot be listened on: {error} (choose another)"));
        }
        reasons
    }

    /// Hands a configuration over and waits for the restart; none where the daemon ends first.
    fn restart(&mut self, checked: Checked, credentials: Credentials, renews_pages: bool) -> Option<Restarted> {
        let (answer, answered) = bounded(1);
        self.next.send(NextConfig { checked: checked.clone(), renews_pages, answer }).ok()?;
        let restarted = answered.recv().ok()?;
        if restarted.is_ok() {
            self.current = checked;
            self.credentials = credentials;
        }
        Some(restarted)
    }

    fn answer(
        &self,
        outcome: ReloadOutcome,
        changed: Vec<String>,
        reasons: Vec<String>,
        seconds: (f64, f64),
    ) -> ReloadAnswer {
        Reloaded { outcome, changed: &changed, reasons: &reasons, seconds }.emit(&self.telemetry);
        ReloadAnswer { outcome, policy: self.current.policy.short(), changed, reasons }
    }
}
