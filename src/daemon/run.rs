//! Runs one daemon from its configuration to its end, with any number of reloads.

use super::engine::build::assemble::AssemblyError;
use super::erasure::ErasureReceiver;
use super::reload::{NextConfig, ReloadThread};
use super::requests::RequestSender;
pub use super::run_error::RunError;
use super::state::directory::StateError;
use super::stream::stream_loop::ReadProgressWatcher;
use super::stream::{PipelineContext, run_source};
pub use crate::daemon::engine::build::assemble::RunOptions;
use crate::daemon::http::page_server::PageServer;
pub use crate::daemon::reload::ReloadInputs;
use crate::start::checked_config::CheckedConfig;
use crate::start::record_formats::format_label;
pub use crate::start::run_findings::RunFinding;
use crate::start::schema_warnings;
use crate::telemetry::{ErasureLag, PartitionsChanged, SchemaWarning, Telemetry};
use crossbeam_channel::Receiver;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::faults::{self, crash_point};

/// Minimum time limit for a start with a new configuration, in addition to [`START_TIMEOUT_FACTOR`] times the previous
/// start. An unreachable broker must not block the return to the old configuration.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const START_TIMEOUT_FACTOR: u32 = 10;
/// Maximum time for which threads of the ended pipeline may keep the state locked.
const UNLOCK_TIMEOUT: Duration = Duration::from_secs(10);
const PIPELINE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs until the source ends or `stop` is set, and returns findings about the records for the operator. The pages
/// are served meanwhile. With `reloading`, the pipeline can be restarted with another configuration.
pub fn run(
    checked: CheckedConfig,
    options: &RunOptions,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
    watcher: &dyn ReadProgressWatcher,
    reloading: Option<ReloadInputs>,
) -> Result<Vec<RunFinding>, RunError> {
    let (reloader, requests, next) = match reloading {
        Some(reloading) => {
            let (reloader, requests, next) =
                ReloadThread::start(reloading, checked.clone(), telemetry).map_err(RunError::Thread)?;
            (Some(reloader), Some(requests), next)
        }
        None => (None, None, crossbeam_channel::never()),
    };
    let (request_erasure, erasures) = RequestSender::channel(1);
    let serve = |checked: &CheckedConfig| {
        PageServer::serve(&checked.config, telemetry, request_erasure.clone(), requests.clone())
    };
    let pages = serve(&checked)?;
    let mut supervisor = PipelineSupervisor {
        options,
        telemetry,
        stop,
        watcher,
        erasures: &erasures,
        next: &next,
        serve: &serve,
        pages,
    };
    let outcome = supervisor.run(checked);
    let pages = supervisor.pages;
    // The stream has ended. Pending reload and erasure requests must end before the pages do.
    drop((next, reloader, erasures));
    pages.end();
    outcome
}

struct PipelineSupervisor<'a> {
    options: &'a RunOptions,
    telemetry: &'a Telemetry,
    stop: &'a Arc<AtomicBool>,
    watcher: &'a dyn ReadProgressWatcher,
    erasures: &'a ErasureReceiver,
    next: &'a Receiver<NextConfig>,
    serve: &'a dyn Fn(&CheckedConfig) -> Result<PageServer, RunError>,
    pages: PageServer,
}

struct PipelineStart {
    since: Instant,
    /// Time limit of the start. `None` for the first configuration of the process, which has no fallback.
    timeout: Option<Duration>,
    /// Duration of the start; `None` until the stream has begun.
    took: Option<Duration>,
}

impl PipelineSupervisor<'_> {
    /// Runs pipelines until one ends without a reload.
    fn run(&mut self, mut current: CheckedConfig) -> Result<Vec<RunFinding>, RunError> {
        let mut attempt: Option<NextConfig> = None;
        let (mut ended, mut last_start) = (Instant::now(), Duration::ZERO);
        loop {
            let timeout = attempt.as_ref().map(|_| start_timeout() + last_start * START_TIMEOUT_FACTOR);
            let mut start = PipelineStart { since: ended, timeout, took: None };
            let outcome = self.run_pipeline(&mut current, &mut attempt, &mut start);
            let is_locked = matches!(&outcome, Err(RunError::Assembly(AssemblyError::State(StateError::Locked(_)))));
            if is_locked && last_start > Duration::ZERO && ended.elapsed() < UNLOCK_TIMEOUT {
                std::thread::sleep(PIPELINE_POLL_INTERVAL);
                continue;
            }
            if self.stop.load(Ordering::Acquire) {
                return outcome;
            }
            last_start = start.took.unwrap_or(last_start);
            match (outcome, attempt.take()) {
                (Err(RunError::Panicked), _) => return Err(RunError::Panicked),
                (outcome, Some(failed)) => {
                    failed.report(Err(start_failure_reasons(outcome.err())));
                    tracing::warn!("restarting with the previous configuration");
                }
                // Without an error or a stop, a pipeline ends early only for a reload.
                (Ok(findings), None) => match self.next.try_recv() {
                    Ok(next) => attempt = Some(next),
                    Err(_) => return Ok(findings),
                },
                (Err(error), None) => return Err(error),
            }
            crash_point("reload-ended");
            self.telemetry.set_readiness(|readiness| readiness.assignment = false);
            PartitionsChanged::emit_consumer_end(self.telemetry);
            ended = Instant::now();
        }
    }

    /// Runs one pipeline with the configuration of `attempt`, if there is one. That configuration replaces `current`
    /// once the stream has begun.
    fn run_pipeline(
        &mut self,
        current: &mut CheckedConfig,
        attempt: &mut Option<NextConfig>,
        start: &mut PipelineStart,
    ) -> Result<Vec<RunFinding>, RunError> {
        let checked = attempt.as_ref().map_or(&*current, |next| &next.checked).clone();
        self.publish_configuration(&checked);
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
                    std::thread::park_timeout(PIPELINE_POLL_INTERVAL);
                }
            });
            let mut supervision = PipelineContext { options, erasures, next, on_start: &mut on_start };
            // A panic in a treatment invalidates the whole run: none of its pending output may be delivered.
            let outcome =
                catch_unwind(AssertUnwindSafe(|| run_source(checked, &mut supervision, telemetry, &halt, watcher)));
            over.store(true, Ordering::Release);
            watch.thread().unpark();
            outcome.unwrap_or(Err(RunError::Panicked))
        })
    }

    /// Publishes a configuration to the pages and the log before it is started.
    fn publish_configuration(&self, checked: &CheckedConfig) {
        let telemetry = self.telemetry;
        telemetry.set_readiness(|r| r.schema = true);
        telemetry.set_record_encoding(format_label(checked.config.source.format()));
        if checked.config.erasure.is_enabled() {
            // Must precede any page that would report an empty erasure queue.
            ErasureLag(None).emit(telemetry);
        }
        for doubt in schema_warnings::configuration_warnings(&checked.config, &checked.schema) {
            SchemaWarning(doubt).emit(telemetry);
        }
    }
}

/// Returns [`START_TIMEOUT`], or the shorter timeout in seconds set by a test.
fn start_timeout() -> Duration {
    let seconds = faults::number("start-timeout").and_then(|seconds| u64::try_from(seconds).ok());
    seconds.map_or(START_TIMEOUT, Duration::from_secs)
}

fn start_failure_reasons(error: Option<RunError>) -> Vec<String> {
    match error {
        Some(RunError::Configuration(problems)) => problems.iter().map(ToString::to_string).collect(),
        Some(error) => vec![error.to_string()],
        None => vec!["the start timed out (is the broker or the schema registry unreachable?)".to_owned()],
    }
}
