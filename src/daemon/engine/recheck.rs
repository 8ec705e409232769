//! The slow loop beside the release: the evidence for the plan in force is gathered on a thread of its own.
//!
//! The thread lives from the first gathering on. Where it counts on a device, it keeps the window there: it is told of every
//! batch that has left, through a queue that never makes the release wait. What the queue has no room for is missing on the
//! device, and the next gathering fills it anew from the window.

use super::Engine;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::PlannerSettings;
use crate::anonymity::planner::evidence::{EvidenceError, WindowModel, Witnessed, gather};
use crate::counting::{Arrival, KeptWindow, Used, shared_device};
use crate::records::codebook::{Code, Codebook};
use crate::records::subject::NO_SUBJECT;
use crate::records::table::Batch;
use crate::telemetry::{DeviceUsed, EvidenceGathered, Telemetry, in_steps};
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The least that a thread may claim of a busy processor (its "nice" value).
const LEAST_PRIORITY: i32 = 19;

/// Batches on their way to the thread at most; their rows are at most those of the window.
const QUEUE: usize = 256;

/// The thread that gathers evidence.
pub(super) struct Recheck {
    work: Sender<Work>,
    answer: Receiver<Result<Evidence, EvidenceError>>,
    /// An answer is still to come.
    pending: bool,
    /// Changes with every renumbering of codes.
    numbering: u64,
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
    Gather(Box<Witnessed>, PlannerSettings, Duration),
    Arrived(Arrival),
}

impl Recheck {
    fn begin(counting: KeptWindow, telemetry: Telemetry) -> std::io::Result<Self> {
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
    fn ask(&mut self, witnessed: Witnessed, settings: PlannerSettings, budget: Duration) -> bool {
        self.pending = self.work.try_send(Work::Gather(Box::new(witnessed), settings, budget)).is_ok();
        self.pending
    }

    fn follows(&self) -> bool {
        self.shared.follows.load(Ordering::Relaxed)
    }

    /// Tells of new rows unless the queue is full; the place for a gathering stays free.
    fn tell(&self, arrival: Arrival, most_rows: usize) {
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
            Work::Gather(witnessed, settings, budget) => {
                crate::faults::crash_point("rechecking");
                Some(gather(*witnessed, &settings, &mut counting, budget))
            }
        };
        shared.follows.store(counting.follows(), Ordering::Relaxed);
        tell_of_device(&counting, &mut told, telemetry);
        if let Some(answer) = answer
            && found.send(answer).is_err()
        {
            tracing::debug!("the daemon has ended before its evidence");
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

impl Engine {
    /// Begins to gather evidence for the plan in force from the window as it is, unless there is nothing in it yet or the
    /// evidence for another plan is still being gathered: then that plan's has to do until the next.
    pub(super) fn begin_recheck(&mut self) {
        if self.planning.recheck.as_ref().is_some_and(|recheck| recheck.pending)
            || self.learning.model.window().rows() == 0
        {
            return;
        }
        self.settle_model();
        if self.planning.recheck.is_none() {
            let counting = KeptWindow::new(self.settings.search.backend, shared_device);
            match Recheck::begin(counting, self.telemetry.clone()) {
                Ok(recheck) => self.planning.recheck = Some(recheck),
                Err(error) => tracing::warn!(%error, "the exact re-check has no thread"),
            }
        }
        let Some(mut recheck) = self.planning.recheck.take() else { return };
        let (settings, budget) = (self.settings.planner, self.settings.search.budget);
        if recheck.ask(self.witnessed(&recheck), settings, budget) {
            self.planning.recheck = Some(recheck);
        } else {
            tracing::warn!("the exact re-check has ended; the next plan has another");
        }
    }

    /// Takes over evidence that is there.
    pub(super) fn take_evidence(&mut self) -> Option<Evidence> {
        let recheck = self.planning.recheck.as_mut().filter(|recheck| recheck.pending)?;
        let answer = recheck.answer.try_recv();
        recheck.pending = matches!(answer, Err(TryRecvError::Empty));
        match answer {
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                tracing::warn!("the exact re-check has failed; its plan goes without evidence");
                self.planning.recheck = None;
                None
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the exact re-check has failed; its plan goes without evidence");
                None
            }
            Ok(Ok(evidence)) => {
                EvidenceGathered {
                    plan: evidence.plan,
                    complete: evidence.complete,
                    qids: crate::daemon::http::plan_page::shown_qids(&evidence, self.telemetry.draws()).len() as u64,
                    expected_loss: in_steps(evidence.expected_loss, 0.01, 0.5),
                    seconds: in_steps(evidence.seconds, 0.01, 0.5),
                }
                .emit(&self.telemetry);
                self.planning.evidence = Some(evidence.clone());
                self.show_plan();
                Some(evidence)
            }
        }
    }

    /// Tells the re-check of the rows of a batch that has left, where it keeps the window on a device.
    pub(super) fn tell_recheck(&self, fresh: &Batch) {
        let Some(recheck) = self.planning.recheck.as_ref().filter(|recheck| recheck.follows()) else { return };
        let to = self.durable.progress.rows;
        let counts: Vec<bool> = fresh.subjects.iter().map(|subject| *subject != NO_SUBJECT).collect();
        let arrival = Arrival {
            numbering: recheck.numbering,
            from: to - fresh.rows() as u64,
            to,
            columns: self.learning.model.attributes().iter().map(|&a| kept(fresh.columns[a].iter(), &counts)).collect(),
            subjects: self.schema.subject.map(|_| kept(fresh.subjects.iter(), &counts)),
        };
        recheck.tell(arrival, self.learning.model.window().capacity());
    }

    /// Codes have another meaning from here on.
    pub(super) fn renumbered(&mut self) {
        if let Some(recheck) = &mut self.planning.recheck {
            recheck.numbering += 1;
        }
    }

    /// Copies of what evidence is gathered from. A record without a subject supports nobody and is left out.
    fn witnessed(&self, recheck: &Recheck) -> Witnessed {
        let window = self.learning.model.window();
        let (older, newer) = window.subjects();
        let subjects = || older.iter().chain(newer);
        let counts: Vec<bool> = subjects().map(|subject| *subject != NO_SUBJECT).collect();
        let mut columns: Vec<Vec<Code>> = vec![Vec::new(); self.schema.attributes.len()];
        for &attribute in self.learning.model.attributes() {
            let (older, newer) = window.column(attribute);
            columns[attribute] = kept(older.iter().chain(newer), &counts);
        }
        let counted = self.learning.model.counted();
        // A model that is the sum of the window's rows is counted where the window lies already, rather than copied here.
        let recount = recheck.follows()
            && counted.limits().half_lives == 0
            && counted.left_out_pairs().is_empty()
            && counts.iter().all(|counts| *counts);
        let model = if recount {
            WindowModel::Recount(counted.limits())
        } else {
            WindowModel::Counted(self.learning.model.adjacency().clone())
        };
        Witnessed {
            plan: self.in_force.plan.clone(),
            sample: self.learning.sample.clone(),
            books: self.coding.books.iter().map(Codebook::without_spellings).collect(),
            columns,
            subjects: self.schema.subject.map(|_| kept(subjects(), &counts)),
            capacity: window.capacity(),
            to: self.durable.progress.rows,
            numbering: recheck.numbering,
            attributes: self.learning.model.attributes().to_vec(),
            model,
        }
    }
}

/// The elements of the rows that count for somebody.
fn kept<'a, T: Copy + 'a>(elements: impl Iterator<Item = &'a T>, counts: &[bool]) -> Vec<T> {
    elements.zip(counts).filter(|(_, counts)| **counts).map(|(element, _)| *element).collect()
}

#[cfg(test)]
mod tests;
