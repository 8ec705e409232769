//! One daemon from its configuration to its end, over any number of reloads.

use super::engine::assemble::AssemblyError;
use super::erasure::ErasureRequests;
use super::reload::{NextConfig, Reloader};
use super::requests::Requests;
pub use super::run_error::RunError;
use super::state::directory::StateError;
use super::stream::run::Watcher;
use super::stream::{Supervision, run_source};
pub use crate::daemon::engine::assemble::Options;
use crate::daemon::http::serve::Pages;
pub use crate::daemon::reload::Reloading;
use crate::faults::{self, crash_point};
use crate::start::checked::Checked;
use crate::start::doubts;
pub use crate::start::findings::Finding;
use crate::start::reading::written_as;
use crate::telemetry::{Doubt, ErasureLag, Rebalanced, Telemetry};
use crossbeam_channel::Receiver;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Least time that a start with a new configuration may take, beside [`TIMES_LAST_START`] of the start before: a broker or a registry that
/// it cannot reach must not keep the old configuration from going on.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const TIMES_LAST_START: u32 = 10;
/// Time for which the state may still be locked by threads of the pipeline that has ended.
const UNLOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two looks at the stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs until the source ends or `stop` is set, and says what an operator must know of the records. The pages are served
/// as long as it runs. With `reloading`, the pipeline can be started again with another configuration meanwhile.
pub fn run(
    checked: Checked,
    options: &Options,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
    watcher: &dyn Watcher,
    reloading: Option<Reloading>,
) -> Result<Vec<Finding>, RunError> {
    let (reloader, requests, next) = match reloading {
        Some(reloading) => {
            let (reloader, requests, next) =
                Reloader::start(reloading, checked.clone(), telemetry).map_err(RunError::Thread)?;
            (Some(reloader), Some(requests), next)
        }
        None => (None, None, crossbeam_channel::never()),
    };
    let (request_erasure, erasures) = Requests::channel(1);
    let serve = |checked: &Checked| Pages::serve(&checked.config, telemetry, request_erasure.clone(), requests.clone());
    let pages = serve(&checked)?;
    let mut supervisor =
        Supervisor { options, telemetry, stop, watcher, erasures: &erasures, next: &next, serve: &serve, pages };
    let outcome = supervisor.run(checked);
    let pages = supervisor.pages;
    // The stream has gone: requests for a reload or an erasure end before the pages do.
    drop((next, reloader, erasures));
    pages.end();
    outcome
}

/// Starts pipelines, one after another.
struct Supervisor<'a> {
    options: &'a Options,
    telemetry: &'a Telemetry,
    stop: &'a Arc<AtomicBool>,
    watcher: &'a dyn Watcher,
    erasures: &'a ErasureRequests,
    next: &'a Receiver<NextConfig>,
    serve: &'a dyn Fn(&Checked) -> Result<Pages, RunError>,
    pages: Pages,
}

/// A start of a pipeline.
struct Start {
    since: Instant,
    /// Time that it may take; none for the configuration of the process's start, which has no other to fall back to.
    timeout: Option<Duration>,
    /// Time that it has taken, once the stream has begun.
    took: Option<Duration>,
}

impl Supervisor<'_> {
    /// Runs a pipeline until it ends; where it ended for a reload, the next one.
    fn run(&mut self, mut current: Checked) -> Result<Vec<Finding>, RunError> {
        let mut attempt: Option<NextConfig> = None;
        let (mut ended, mut last_start) = (Instant::now(), Duration::ZERO);
        loop {
            let timeout = attempt.as_ref().map(|_| start_timeout() + last_start * TIMES_LAST_START);
            let mut start = Start { since: ended, timeout, took: None };
            let outcome = self.run_pipeline(&mut current, &mut attempt, &mut start);
            let is_locked = matches!(&outcome, Err(RunError::Assembly(AssemblyError::State(StateError::Locked(_)))));
            if is_locked && last_start > Duration::ZERO && ended.elapsed() < UNLOCK_TIMEOUT {
                std::thread::sleep(POLL_INTERVAL);
                continue;
            }
            if self.stop.load(Ordering::Acquire) {
                return outcome;
            }
            last_start = start.took.unwrap_or(last_start);
            match (outcome, attempt.take()) {
                (Err(RunError::Panicked), _) => return Err(RunError::Panicked),
                (outcome, Some(failed)) => {
                    failed.report(Err(reasons(outcome.err())));
                    tracing::warn!("starting again with the old configuration");
                }
                // Only a reload ends a pipeline that could go on.
                (Ok(findings), None) => match self.next.try_recv() {
                    Ok(next) => attempt = Some(next),
                    Err(_) => return Ok(findings),
                },
                (Err(error), None) => return Err(error),
            }
            crash_point("reload-ended");
            self.telemetry.set_readiness(|readiness| readiness.assignment = false);
            Rebalanced::consumer_ended(self.telemetry);
            ended = Instant::now();
        }
    }

    /// Runs one pipeline: with the configuration of `attempt` where there is one, which takes the place of `current` once the stream has begun.
    fn run_pipeline(
        &mut self,
        current: &mut Checked,
        attempt: &mut Option<NextConfig>,
        start: &mut Start,
    ) -> Result<Vec<Finding>, RunError> {
        let checked = attempt.as_ref().map_or(&*current, |next| &next.checked).clone();
        self.announce(&checked);
        let (begun, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let (halt, stop, timeout) = (Arc::new(AtomicBool::new(false)), self.stop, start.timeout);
        let (options, telemetry, watcher, erasures, next) =
            (self.options, self.telemetry, self.watcher, self.erasures, self.next);
        let since = start.since;
        let mut on_start = || {
            start.took = Some(since.elapsed());
            begun.store(true, Ordering::Release);
            let Some(next) = attempt.take() else { return Ok(()) };
            current.clone_from(&next.checked);
            let renews_pages = next.renews_pages;
            next.report(Ok(since.elapsed()));
            crash_point("reload-done");
            if renews_pages {
                std::mem::take(&mut self.pages).end();
                self.pages = (self.serve)(current)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                while !over.load(Ordering::Acquire) && !halt.load(Ordering::Acquire) {
                    let late = timeout.is_some_and(|limit| since.elapsed() > limit) && !begun.load(Ordering::Acquire);
                    if late || stop.load(Ordering::Acquire) {
                        halt.store(true, Ordering::Release);
                    }
                    std::thread::park_timeout(POLL_INTERVAL);
                }
            });
            let mut supervision = Supervision { options, erasures, next, on_start: &mut on_start };
            // A panic in a treatment poisons the whole run: nothing that it held may still be delivered.
            let outcome =
                catch_unwind(AssertUnwindSafe(|| run_source(checked, &mut supervision, telemetry, &halt, watcher)));
            over.store(true, Ordering::Release);
            watch.thread().unpark();
            outcome.unwrap_or(Err(RunError::Panicked))
        })
    }

    /// Tells the pages and the log of a configuration before it is started.
    fn announce(&self, checked: &Checked) {
        let telemetry = self.telemetry;
        telemetry.set_readiness(|r| r.schema = true);
        telemetry.read_as(written_as(checked.config.source.format()));
        if checked.config.erasure.is_on() {
            // Before a page says that nobody waits.
            ErasureLag(None).emit(telemetry);
        }
        for doubt in doubts::of_configuration(&checked.config, &checked.schema) {
            Doubt(doubt).emit(telemetry);
        }
    }
}

/// [`START_TIMEOUT`]; a test may have less patience, in seconds.
fn start_timeout() -> Duration {
    let seconds = faults::number("start-timeout").and_then(|seconds| u64::try_from(seconds).ok());
    seconds.map_or(START_TIMEOUT, Duration::from_secs)
}

/// Why a new configuration did not start.
fn reasons(error: Option<RunError>) -> Vec<String> {
    match error {
        Some(RunError::Configuration(problems)) => problems.iter().map(ToString::to_string).collect(),
        Some(error) => vec![error.to_string()],
        None => vec!["the start took too long: is the broker or the schema registry unreachable?".to_owned()],
    }
}
