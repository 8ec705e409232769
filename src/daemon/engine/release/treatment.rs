//! Treatment and verification of a batch. If the recount exceeds its step limit for a pair of groups, the lighter group
//! is left out.

use crate::daemon::engine::core::ActivePlan;
use crate::daemon::engine::gather::gathered_batch::GatheredBatch;
use std::borrow::Cow;
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
pub(crate) struct TreatedBatch<'a> {
    pub gathered: GatheredBatch<'a>,
    pub proposal: Proposal,
}

pub(crate) struct VerifiedBatch<'a> {
    pub gathered: GatheredBatch<'a>,
    /// Without the lines in `verified`.
    pub proposal: Proposal,
    pub verified: ReleasableBatch,
}

pub(crate) struct BatchTreatment<'a> {
    pub in_force: &'a ActivePlan,
    pub books: &'a [Codebook],
    pub ledger: &'a SubjectLedger,
    pub policy: &'a TreatmentSettings,
    pub sequence: u64,
}

impl BatchTreatment<'_> {
    pub fn treat<'a>(&self, mut gathered: GatheredBatch<'a>) -> TreatedBatch<'a> {
        let start = Instant::now();
        let proposal = self.propose(&gathered, &gathered.turnout.mask);
        gathered.seconds.treat += start.elapsed().as_secs_f64();
        TreatedBatch { gathered, proposal }
    }

    fn propose(&self, gathered: &GatheredBatch<'_>, mask: &GroupMask) -> Proposal {
        let ActivePlan { plan, names, protected, .. } = self.in_force;
        let GatheredBatch { batch, waited, flush, age_ms, .. } = gathered;
        let rules = TreatmentRules { plan, names, books: self.books, policy: self.policy, protected };
        treat_batch(
            &TreatmentInput { batch, mask, waited, holding_ended: flush.ends_holding() },
            &rules,
            &self.ledger.at(*age_ms),
        )
    }

    /// Verifies at `age_ms`; without one group of an unjudged pair. `keeps`: the lines are needed again.
    pub fn verify(
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

fn lighter_group(proposal: &Proposal, plan: &Plan, [one, other]: [usize; 2]) -> usize {
    let says = |group: usize| {
        let group = &plan.groups[group];
        let columns = group.quasi.iter().chain(&group.sensitive).map(|&a| &proposal.cells[a]);
        columns.flatten().filter(|cell| **cell != SUPPRESSED).count()
    };
    if says(one) < says(other) { one } else { other }
}
