//! Treatment and verification of a batch.
//!
//! Their searches differ: the recount may exceed its step limit for a pair of groups. The lighter group is then left
//! out, as if the counting guard had withdrawn it.

use super::core::{ActivePlan, BatchError, DurableState, Engine};
use super::gather::{BatchInstruction, GatheredBatch};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::plan::Plan;
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::release::verifier_input::VerifierInput;
use throng_core::release::verify::{BatchRefusal, Violation, verify};
use throng_core::treatment::batch_treatment::{TreatmentInput, TreatmentRules, TreatmentSettings, treat_batch};
use throng_core::treatment::group_mask::GroupMask;
use throng_core::treatment::proposal::{Proposal, ProposedGroup, UnreleasedReason};
use throng_core::values::codebook::{Codebook, SUPPRESSED};

/// Batch with proposed lines at `gathered.age_ms`.
struct TreatedBatch<'a> {
    gathered: GatheredBatch<'a>,
    proposal: Proposal,
}

/// Batch with verified lines.
pub(super) struct VerifiedBatch<'a> {
    pub gathered: GatheredBatch<'a>,
    /// Without lines: these moved to `verified`.
    pub proposal: Proposal,
    pub verified: ReleasableBatch,
}

impl Engine {
    /// Treats and verifies, while the rows are written to disk.
    pub(super) fn treat_and_verify<'a>(
        &mut self,
        gathered: GatheredBatch<'a>,
        order: &BatchInstruction<'_>,
    ) -> Result<VerifiedBatch<'a>, BatchError> {
        let (fresh, first) = (Arc::clone(&gathered.fresh), self.durable.progress.rows);
        let sequence = self.durable.progress.sequence + 1;
        let DurableState { store, packer, .. } = &mut self.durable;
        let (attributes, books) = (self.learning.model.stored_attributes(), self.coding.books.as_slice());
        let policy = &self.settings.policy;
        let treatment = BatchTreatment { in_force: &self.in_force, books, ledger: &self.ledger, policy, sequence };
        std::thread::scope(|scope| {
            let laid = scope.spawn(|| {
                let rows = (fresh.rows() > 0).then(|| packer.pack(&fresh, first, attributes, books));
                store.write_rows(sequence, rows.as_ref())
            });
            let mut treated = treatment.treat(gathered);
            // Subjects of an old intent may have lost tenure.
            let is_late = order.retry.is_some() && order.now.age_ms > treated.gathered.age_ms;
            if is_late && treatment.verify(&mut treated, order.now.age_ms, true).is_err() {
                // Class sizes have priority over identical bytes.
                treated.gathered.age_ms = order.now.age_ms;
                treated.gathered.clock_ms = treated.gathered.clock_ms.max(order.now.clock_ms);
                treated = treatment.treat(treated.gathered);
            }
            let start = Instant::now();
            let age_ms = treated.gathered.age_ms;
            let verified = treatment.verify(&mut treated, age_ms, false)?;
            let TreatedBatch { mut gathered, proposal } = treated;
            gathered.seconds.verify = start.elapsed().as_secs_f64();
            laid.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(VerifiedBatch { gathered, proposal, verified })
        })
    }
}

/// Engine parts for treatment and verification.
struct BatchTreatment<'a> {
    in_force: &'a ActivePlan,
    books: &'a [Codebook],
    ledger: &'a SubjectLedger,
    policy: &'a TreatmentSettings,
    sequence: u64,
}

impl BatchTreatment<'_> {
    fn treat<'a>(&self, mut gathered: GatheredBatch<'a>) -> TreatedBatch<'a> {
        let start = Instant::now();
        let proposal = self.propose(&gathered, &gathered.turnout.mask);
        gathered.seconds.treat += start.elapsed().as_secs_f64();
        TreatedBatch { gathered, proposal }
    }

    /// Proposes lines; `mask` selects contributing rows.
    fn propose(&self, gathered: &GatheredBatch<'_>, mask: &GroupMask) -> Proposal {
        let ActivePlan { plan, names, protected, .. } = self.in_force;
        let GatheredBatch { batch, waited, last, age_ms, .. } = gathered;
        let rules = TreatmentRules { plan, names, books: self.books, policy: self.policy, protected };
        treat_batch(&TreatmentInput { batch, mask, waited, holding_ended: *last }, &rules, &self.ledger.at(*age_ms))
    }

    /// Verifies at `age_ms`, and treats again without one group of an unjudged pair. `keeps`: the lines are needed
    /// again.
    fn verify(
        &self,
        treated: &mut TreatedBatch<'_>,
        age_ms: i64,
        keeps: bool,
    ) -> Result<ReleasableBatch, BatchRefusal> {
        let TreatedBatch { gathered, proposal } = treated;
        let mut mask = Cow::Borrowed(&gathered.turnout.mask);
        let mut left_out = Vec::new();
        loop {
            let lines: Vec<usize> = proposal.groups.iter().map(|group| group.rows.len()).collect();
            let groups = if keeps { proposal.groups.clone() } else { std::mem::take(&mut proposal.groups) };
            let verdict = self.recount(gathered, groups, age_ms);
            let Err(BatchRefusal { violation: Violation::CountingUnfinished(pair), .. }) = verdict else {
                return verdict;
            };
            let lighter = lighter_group(proposal, &self.in_force.plan, pair);
            if left_out.contains(&lighter) {
                return verdict;
            }
            left_out.push(lighter);
            mask = Cow::Owned(mask.without(lighter, proposal.unreleased.len()));
            let before = std::mem::replace(proposal, self.propose(gathered, &mask));
            proposal.guarded_fragments += lines[lighter] as u64;
            for (now, before) in proposal.unreleased.iter_mut().zip(before.unreleased) {
                if *now == Some(UnreleasedReason::NoSupport)
                    && matches!(before, None | Some(UnreleasedReason::CountingGuard))
                {
                    *now = Some(UnreleasedReason::CountingGuard);
                }
            }
        }
    }

    fn recount(
        &self,
        gathered: &GatheredBatch<'_>,
        lines: Vec<ProposedGroup>,
        age_ms: i64,
    ) -> Result<ReleasableBatch, BatchRefusal> {
        let batch = &gathered.batch;
        let given = VerifierInput {
            subjects: &batch.subjects,
            columns: &batch.columns,
            waiting: gathered.waits.len(),
            sequence: self.sequence,
            age_ms,
        };
        verify(lines, &given, &self.in_force.terms, self.books, self.ledger.at(age_ms), self.policy.k)
    }
}

/// Returns the group with fewer released cells.
fn lighter_group(proposal: &Proposal, plan: &Plan, [one, other]: [usize; 2]) -> usize {
    let says = |group: usize| {
        let group = &plan.groups[group];
        let columns = group.quasi.iter().chain(&group.sensitive).map(|&a| &proposal.cells[a]);
        columns.flatten().filter(|cell| **cell != SUPPRESSED).count()
    };
    if says(one) < says(other) { one } else { other }
}
