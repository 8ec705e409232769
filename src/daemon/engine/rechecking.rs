//! The engine's side of the exact re-check: when it begins, what it is told, and what becomes of its evidence.

use super::fields::Engine;
use super::recheck::Recheck;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::evidence::{EvidenceInput, WindowModel};
use crate::counting::{Arrival, KeptWindow, Wanted, shared_device};
use crate::daemon::http::plan_page::{by_size, involvement, shown_qids};
use crate::records::codebook::{Code, Codebook};
use crate::records::subject::NO_SUBJECT;
use crate::records::table::Batch;
use crate::telemetry::{EvidenceGathered, in_steps};
use crossbeam_channel::TryRecvError;

impl Engine {
    /// Begins to gather evidence for the plan in force from the window as it is, unless there is nothing in it yet or the
    /// evidence for another plan is still being gathered: then that plan's has to do until the next.
    pub(super) fn begin_recheck(&mut self) {
        if self.planning.recheck.as_ref().is_some_and(Recheck::is_pending) || self.learning.model.window().rows() == 0 {
            return;
        }
        self.settle_model();
        if self.planning.recheck.is_none() {
            // A device keeps as many records as there may be; below a limit of bytes the window may have fewer.
            let limited = self.settings.model.value_bytes.is_some();
            let backend = if limited { Wanted::Cpu } else { self.settings.search.backend };
            let counting = KeptWindow::new(backend, shared_device);
            match Recheck::begin(counting, self.telemetry.clone()) {
                Ok(recheck) => self.planning.recheck = Some(recheck),
                Err(error) => tracing::warn!(%error, "the exact re-check has no thread"),
            }
        }
        let Some(mut recheck) = self.planning.recheck.take() else { return };
        let (settings, budget) = (self.settings.planner, self.settings.search.budget);
        if recheck.ask(self.evidence_input(&recheck), settings, budget) {
            self.planning.recheck = Some(recheck);
        } else {
            tracing::warn!("the exact re-check has ended; the next plan has another");
        }
    }

    /// Takes over evidence that is there.
    pub(super) fn take_evidence(&mut self) -> Option<Evidence> {
        let recheck = self.planning.recheck.as_mut().filter(|recheck| recheck.is_pending())?;
        match recheck.answer() {
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
                let qids = shown_qids(&evidence, self.telemetry.draws());
                // Identifiers of the plan were not searched: they are in none.
                let involved = involvement(&qids, self.learning.model.attributes()).into_iter();
                EvidenceGathered {
                    plan: evidence.plan,
                    complete: evidence.complete,
                    qids: qids.len() as u64,
                    by_size: by_size(&qids),
                    involvement: involved.map(|(at, share)| (self.schema.attributes[at].name.clone(), share)).collect(),
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
    fn evidence_input(&self, recheck: &Recheck) -> EvidenceInput {
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
        let recount = recheck.follows() && counted.left_out_pairs().is_empty() && counts.iter().all(|counts| *counts);
        let model = if recount {
            WindowModel::Recount(counted.limits())
        } else {
            WindowModel::Counted(self.learning.model.adjacency().clone())
        };
        EvidenceInput {
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
