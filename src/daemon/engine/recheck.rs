//! The slow loop beside the release: the evidence for the plan in force is gathered on a thread of its own.

use super::Engine;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::evidence::{EvidenceError, Witnessed, gather};
use crate::records::codebook::Codebook;
use crate::records::subject::NO_SUBJECT;
use crate::telemetry::EvidenceGathered;
use crossbeam_channel::{Receiver, TryRecvError, bounded};

/// The least that a thread may claim of a busy processor (its "nice" value).
const LEAST_PRIORITY: i32 = 19;

/// Evidence that is being gathered.
pub(super) struct Recheck {
    answer: Receiver<Result<Evidence, EvidenceError>>,
}

impl Engine {
    /// Begins to gather evidence for the plan in force from the window as it is, unless there is nothing in it yet or the
    /// evidence for another plan is still being gathered: then that plan's has to do until the next.
    pub(super) fn begin_recheck(&mut self) {
        if self.recheck.is_some() || self.model.window().rows() == 0 {
            return;
        }
        self.settle_model();
        let witnessed = self.witnessed();
        let (settings, budget) = (self.settings.planner, self.settings.search.budget);
        let backend = self.settings.search.backend;
        let (found, answer) = bounded(1);
        let search = move || {
            crate::faults::crash_point("rechecking");
            // The release goes first wherever both want the processor.
            if let Err(error) = rustix::process::setpriority_process(None, LEAST_PRIORITY) {
                tracing::debug!(%error, "the exact re-check runs at the daemon's own priority");
            }
            if found.send(gather(witnessed, &settings, backend, budget)).is_err() {
                tracing::debug!("the daemon has ended before its evidence");
            }
        };
        match std::thread::Builder::new().name("recheck".to_owned()).spawn(search) {
            Ok(_) => self.recheck = Some(Recheck { answer }),
            Err(error) => tracing::warn!(%error, "the exact re-check has no thread"),
        }
    }

    /// Takes over evidence that is there.
    pub(super) fn take_evidence(&mut self) -> Option<Evidence> {
        let answer = self.recheck.as_ref()?.answer.try_recv();
        match answer {
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                tracing::warn!("the exact re-check has failed; its plan goes without evidence");
            }
            Ok(Err(error)) => tracing::warn!(%error, "the exact re-check has failed; its plan goes without evidence"),
            Ok(Ok(evidence)) => {
                self.recheck = None;
                EvidenceGathered {
                    plan: evidence.plan,
                    complete: evidence.complete,
                    qids: evidence.qids_by_size.iter().sum(),
                    evaluated: evidence.evaluated,
                    expected_loss: evidence.expected_loss,
                    seconds: evidence.seconds,
                }
                .emit(&self.telemetry);
                self.evidence = Some(evidence.clone());
                self.show_plan();
                return Some(evidence);
            }
        }
        self.recheck = None;
        None
    }

    /// Copies of what evidence is gathered from. A record without a subject supports nobody and is left out.
    fn witnessed(&self) -> Witnessed {
        let window = self.model.window();
        let (older, newer) = window.subjects();
        let subjects: Vec<u64> = older.iter().chain(newer).copied().collect();
        let counts_for_somebody: Vec<bool> = subjects.iter().map(|subject| *subject != NO_SUBJECT).collect();
        let kept = |column: usize| {
            let codes = window.codes(column).zip(&counts_for_somebody);
            codes.filter(|(_, counts)| **counts).map(|(code, _)| code).collect()
        };
        let mut columns = vec![Vec::new(); self.schema.attributes.len()];
        for &attribute in self.model.attributes() {
            columns[attribute] = kept(attribute);
        }
        let numbered = self.schema.subject.map(|_| {
            let mut numbers = hashbrown::HashMap::new();
            let of_somebody = subjects.iter().filter(|subject| **subject != NO_SUBJECT);
            of_somebody
                .map(|&subject| {
                    let next = numbers.len() as u32;
                    *numbers.entry(subject).or_insert(next)
                })
                .collect()
        });
        Witnessed {
            plan: self.plan.clone(),
            sample: self.sample.clone(),
            books: self.books.iter().map(Codebook::without_spellings).collect(),
            columns,
            subjects: numbered,
            model: self.model.adjacency().clone(),
        }
    }
}
