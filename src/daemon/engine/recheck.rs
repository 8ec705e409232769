//! The slow loop beside the release: the evidence for the plan in force is gathered on a thread of its own.
//!
//! The thread lives from the first gathering on. Where it counts on a device, it keeps the window there: it is told of every
//! batch that has left, through a queue that never makes the release wait. What the queue has no room for is missing on the
//! device, and the next gathering fills it anew from the window.

use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::PlannerSettings;
use crate::anonymity::planner::evidence::{EvidenceError, EvidenceInput, gather};
use crate::counting::{Arrival, KeptWindow, Used};
use crate::telemetry::{DeviceUsed, Telemetry};
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

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
mod tests;
