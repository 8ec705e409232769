//! Background threads: plan search, and evidence for the plan in force.

use crate::daemon::state::records::SearchRequest;
use crate::planner::evidence::{EvidenceError, EvidenceInput, gather_evidence};
use crate::planner::planner_sample::PlannerSample;
use crate::planner::{PlannerSettings, make_plan};
use crate::telemetry::{DeviceUsed, Telemetry};
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use throng_core::faults::crash_point;
use throng_core::plan::GroupShape;
use throng_core::plan::Plan;
use throng_core::plan::evidence::PlanEvidence;
use throng_core::values::codebook::Codebook;
use throng_risk::counting::{DeviceUsage, StreamWindow, WindowArrival};

pub(crate) struct PlanSearch {
    pub asked: SearchRequest,
    pub started: Instant,
    /// Oldest sampled row.
    pub first_row: Option<u64>,
    answer: Receiver<Plan>,
}

impl PlanSearch {
    /// Starts a search on copies. A failed search returns no plan.
    pub fn begin(
        asked: SearchRequest,
        version: u64,
        shapes: &[GroupShape],
        sample: PlannerSample,
        books: &[Codebook],
        settings: PlannerSettings,
    ) -> Self {
        let first_row = (sample.rows() > 0).then(|| sample.ordinal(0));
        let (shapes, books) = (shapes.to_vec(), books.iter().map(Codebook::without_spellings).collect::<Vec<_>>());
        let (found, answer) = bounded(1);
        let search = move || {
            crash_point("planning");
            // One thread: treatment uses the others.
            let plan = || make_plan(version, &shapes, &sample, &books, &settings);
            match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
                Ok(pool) => {
                    if found.send(pool.install(plan)).is_err() {
                        tracing::debug!("discarding plan: search finished after its deadline");
                    }
                }
                Err(error) => tracing::warn!(%error, "cannot start the planner thread"),
            }
        };
        if let Err(error) = std::thread::Builder::new().name("planner".to_owned()).spawn(search) {
            tracing::warn!(%error, "cannot start the planner thread");
        }
        Self { asked, started: Instant::now(), first_row, answer }
    }

    /// Waits for the plan until `budget` after the start; `None` if late or failed.
    pub fn wait(self, budget: Duration) -> Option<Plan> {
        self.answer.recv_timeout(budget.saturating_sub(self.started.elapsed())).ok()
    }
}

pub(crate) const LEAST_PRIORITY: i32 = 19;

const RECHECK_QUEUE_LEN: usize = 256;

pub(crate) struct EvidenceRecheck {
    work: Sender<RecheckTask>,
    answer: Receiver<Result<PlanEvidence, EvidenceError>>,
    pending: bool,
    /// Increases with every renumbering.
    pub numbering: u64,
    shared: Arc<RecheckProgress>,
}

#[derive(Default)]
struct RecheckProgress {
    /// Needs every batch.
    follows: AtomicBool,
    /// Queued rows.
    rows: AtomicUsize,
}

enum RecheckTask {
    Gather(Box<EvidenceInput>, PlannerSettings, Duration),
    AppendRows(WindowArrival),
}

impl EvidenceRecheck {
    /// Starts the thread.
    pub fn begin(counting: StreamWindow, telemetry: Telemetry) -> std::io::Result<Self> {
        let (work, asked) = bounded(RECHECK_QUEUE_LEN);
        let (found, answer) = bounded(1);
        let shared = Arc::new(RecheckProgress::default());
        let own = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("recheck".to_owned())
            .spawn(move || run_recheck(counting, &asked, &found, &own, &telemetry))?;
        Ok(Self { work, answer, pending: false, numbering: 0, shared })
    }

    /// Requests evidence; false if the thread has ended.
    pub fn request_evidence(
        &mut self,
        evidence_input: EvidenceInput,
        settings: PlannerSettings,
        budget: Duration,
    ) -> bool {
        self.pending = self.work.try_send(RecheckTask::Gather(Box::new(evidence_input), settings, budget)).is_ok();
        self.pending
    }

    /// Returns whether every batch is needed.
    pub fn follows(&self) -> bool {
        self.shared.follows.load(Ordering::Relaxed)
    }

    /// Returns whether an answer is outstanding.
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// Takes the answer, if ready.
    pub fn take_answer(&mut self) -> Result<Result<PlanEvidence, EvidenceError>, TryRecvError> {
        let answer = self.answer.try_recv();
        self.pending = matches!(answer, Err(TryRecvError::Empty));
        answer
    }

    /// Queues rows unless full; one place is reserved for requests.
    pub fn append_rows(&self, arrival: WindowArrival, most_rows: usize) {
        let rows = (arrival.to - arrival.from) as usize;
        let waiting = self.shared.rows.load(Ordering::Relaxed);
        if self.work.len() + 1 >= RECHECK_QUEUE_LEN || waiting.saturating_add(rows) > most_rows.max(rows) {
            return;
        }
        self.shared.rows.fetch_add(rows, Ordering::Relaxed);
        if self.work.try_send(RecheckTask::AppendRows(arrival)).is_err() {
            tracing::debug!("the thread of the exact re-check has ended: skipping further batches");
        }
    }
}

fn run_recheck(
    mut counting: StreamWindow,
    asked: &Receiver<RecheckTask>,
    found: &Sender<Result<PlanEvidence, EvidenceError>>,
    shared: &RecheckProgress,
    telemetry: &Telemetry,
) {
    // The release has priority.
    if let Err(error) = rustix::process::setpriority_process(None, LEAST_PRIORITY) {
        tracing::debug!(%error, "cannot lower the priority of the exact re-check");
    }
    let mut told = (DeviceUsage::default(), 0);
    for work in asked {
        let answer = match work {
            RecheckTask::AppendRows(arrival) => {
                shared.rows.fetch_sub((arrival.to - arrival.from) as usize, Ordering::Relaxed);
                counting.append_arrival(&arrival);
                None
            }
            RecheckTask::Gather(evidence_input, settings, budget) => {
                throng_core::faults::crash_point("rechecking");
                Some(gather_evidence(*evidence_input, &settings, &mut counting, budget))
            }
        };
        shared.follows.store(counting.needs_arrivals(), Ordering::Relaxed);
        report_device_use(&counting, &mut told, telemetry);
        if let Some(answer) = answer
            && found.send(answer).is_err()
        {
            // The daemon has ended.
            return;
        }
    }
}

fn report_device_use(counting: &StreamWindow, told: &mut (DeviceUsage, u64), telemetry: &Telemetry) {
    let (used, fills) = (counting.usage(), counting.fills());
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
