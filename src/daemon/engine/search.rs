//! Searches on threads of their own, beside the release: for the next plan, and for evidence of the plan in force.

use crate::anonymity::plan::Plan;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::evidence::{EvidenceError, EvidenceInput, gather};
use crate::anonymity::planner::sample::Sample;
use crate::anonymity::planner::{GroupShape, PlannerSettings, make_plan};
use crate::daemon::state::records::SearchRequest;
use crate::faults::crash_point;
use crate::telemetry::{DeviceUsed, Telemetry};
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use throng_core::values::codebook::Codebook;
use throng_risk::counting::{Arrival, KeptWindow, Used};

/// A search under way.
pub(super) struct Search {
    pub asked: SearchRequest,
    pub started: Instant,
    /// The oldest row that it learns from.
    pub first_row: Option<u64>,
    answer: Receiver<Plan>,
}

impl Search {
    /// Begins on copies of what it learns from. A search that cannot begin or that panics gives no answer.
    pub fn begin(
        asked: SearchRequest,
        version: u64,
        shapes: &[GroupShape],
        sample: Sample,
        books: &[Codebook],
        settings: PlannerSettings,
    ) -> Self {
        let first_row = (sample.rows() > 0).then(|| sample.ordinal(0));
        let (shapes, books) = (shapes.to_vec(), books.iter().map(Codebook::without_spellings).collect::<Vec<_>>());
        let (found, answer) = bounded(1);
        let search = move || {
            crash_point("planning");
            // One thread of its own: the treatment of the batches beside it has the others.
            let plan = || make_plan(version, &shapes, &sample, &books, &settings);
            match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
                Ok(pool) => {
                    if found.send(pool.install(plan)).is_err() {
                        tracing::debug!("a plan came too late and nobody waits for it");
                    }
                }
                Err(error) => tracing::warn!(%error, "the planner has no thread"),
            }
        };
        if let Err(error) = std::thread::Builder::new().name("planner".to_owned()).spawn(search) {
            tracing::warn!(%error, "the planner has no thread");
        }
        Self { asked, started: Instant::now(), first_row, answer }
    }

    /// The plan, waiting until `budget` after the beginning. `None` when it is late or the search has failed.
    pub fn wait(self, budget: Duration) -> Option<Plan> {
        self.answer.recv_timeout(budget.saturating_sub(self.started.elapsed())).ok()
    }
}

/// The least that a thread may claim of a busy processor (its "nice" value).
pub(super) const LEAST_PRIORITY: i32 = 19;

/// Batches on their way to the thread at most; their rows are at most those of the window.
const QUEUE: usize = 256;

/// The thread that gathers evidence.
pub(super) struct Recheck {
    work: Sender<Work>,
    answer: Receiver<Result<Evidence, EvidenceError>>,
    /// An answer is still to come.
    pending: bool,
    /// Changes with every renumbering of codes.
    pub numbering: u64,
    shared: Arc<Shared>,
}

/// What the thread tells the release.
#[derive(Default)]
struct Shared {
    /// It wants to know of every batch.
    follows: AtomicBool,
    /// Rows of the batches on their way to it.
    rows: AtomicUsize,
}

enum Work {
    Gather(Box<EvidenceInput>, PlannerSettings, Duration),
    Arrived(Arrival),
}

impl Recheck {
    /// Starts the thread.
    pub fn begin(counting: KeptWindow, telemetry: Telemetry) -> std::io::Result<Self> {
        let (work, asked) = bounded(QUEUE);
        let (found, answer) = bounded(1);
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("recheck".to_owned())
            .spawn(move || run(counting, &asked, &found, &own, &telemetry))?;
        Ok(Self { work, answer, pending: false, numbering: 0, shared })
    }

    /// Asks for evidence; false where the thread has ended.
    pub fn ask(&mut self, evidence_input: EvidenceInput, settings: PlannerSettings, budget: Duration) -> bool {
        self.pending = self.work.try_send(Work::Gather(Box::new(evidence_input), settings, budget)).is_ok();
        self.pending
    }

    /// Whether it wants to know of every batch.
    pub fn follows(&self) -> bool {
        self.shared.follows.load(Ordering::Relaxed)
    }

    /// Whether an answer is still to come.
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// The answer, where it is there.
    pub fn answer(&mut self) -> Result<Result<Evidence, EvidenceError>, TryRecvError> {
        let answer = self.answer.try_recv();
        self.pending = matches!(answer, Err(TryRecvError::Empty));
        answer
    }

    /// Tells of new rows unless the queue is full; the place for a gathering stays free.
    pub fn tell(&self, arrival: Arrival, most_rows: usize) {
        let rows = (arrival.to - arrival.from) as usize;
        let waiting = self.shared.rows.load(Ordering::Relaxed);
        if self.work.len() + 1 >= QUEUE || waiting.saturating_add(rows) > most_rows.max(rows) {
            return;
        }
        self.shared.rows.fetch_add(rows, Ordering::Relaxed);
        if self.work.try_send(Work::Arrived(arrival)).is_err() {
            tracing::debug!("the exact re-check has ended and is told of no more batches");
        }
    }
}

/// The thread, until the engine is gone.
fn run(
    mut counting: KeptWindow,
    asked: &Receiver<Work>,
    found: &Sender<Result<Evidence, EvidenceError>>,
    shared: &Shared,
    telemetry: &Telemetry,
) {
    // The release goes first wherever both want the processor.
    if let Err(error) = rustix::process::setpriority_process(None, LEAST_PRIORITY) {
        tracing::debug!(%error, "the exact re-check runs at the daemon's own priority");
    }
    let mut told = (Used::default(), 0);
    for work in asked {
        let answer = match work {
            Work::Arrived(arrival) => {
                shared.rows.fetch_sub((arrival.to - arrival.from) as usize, Ordering::Relaxed);
                counting.arrive(&arrival);
                None
            }
            Work::Gather(evidence_input, settings, budget) => {
                crate::faults::crash_point("rechecking");
                Some(gather(*evidence_input, &settings, &mut counting, budget))
            }
        };
        shared.follows.store(counting.follows(), Ordering::Relaxed);
        tell_of_device(&counting, &mut told, telemetry);
        if let Some(answer) = answer
            && found.send(answer).is_err()
        {
            // The daemon has ended, and its last word is said.
            return;
        }
    }
}

/// What the device was used for since the last time.
fn tell_of_device(counting: &KeptWindow, told: &mut (Used, u64), telemetry: &Telemetry) {
    let (used, fills) = (counting.used(), counting.fills());
    if (used, fills) == *told {
        return;
    }
    let (before, fills_before) = std::mem::replace(told, (used, fills));
    DeviceUsed {
        held_bytes: used.device_bytes,
        launches: used.launches - before.launches,
        uploaded_bytes: used.uploaded_bytes - before.uploaded_bytes,
        downloaded_bytes: used.downloaded_bytes - before.downloaded_bytes,
        fills: fills - fills_before,
        fallbacks: used.failures - before.failures,
        sets_left: used.left_to_the_cpu - before.left_to_the_cpu,
        lost: counting.is_lost(),
    }
    .emit(telemetry);
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
