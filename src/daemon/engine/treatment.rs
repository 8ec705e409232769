//! Treatment and verification of a batch.
//!
//! Treatment and recount search in different ways, so that what one has cleared may cost the other more steps than a batch
//! has. Nothing leaves unverified: of two groups that cannot be judged together the lighter one is left out, as if the
//! counting guard had withdrawn it.

use super::core::{BatchError, Durable, Engine, InForce};
use super::gather::{Gathered, Order};
use crate::anonymity::plan::Plan;
use crate::anonymity::treatment::mask::Mask;
use crate::anonymity::treatment::proposal::{Proposal, ProposedGroup, Unreleased};
use crate::anonymity::treatment::treat::{Policy, Records, Rules, treat};
use crate::release::given::Given;
use crate::release::verified::Verified;
use crate::release::verify::{Refusal, Violation, verify};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;
use throng_core::ledger::per_subject::Ledger;
use throng_core::values::codebook::{Codebook, SUPPRESSED};

/// A batch with a proposal of what may leave of it at `gathered.age_ms`.
struct Treated<'a> {
    gathered: Gathered<'a>,
    proposal: Proposal,
}

/// A batch of which verified lines may leave.
pub(super) struct VerifiedBatch<'a> {
    pub gathered: Gathered<'a>,
    /// Without its lines: those are verified now.
    pub proposal: Proposal,
    pub verified: Verified,
}

impl Engine {
    /// Treats and verifies. Rows are large and must be on disk before the batch leaves: that is waited for beside the treatment.
    pub(super) fn treat_and_verify<'a>(
        &mut self,
        gathered: Gathered<'a>,
        order: &Order<'_>,
    ) -> Result<VerifiedBatch<'a>, BatchError> {
        let (fresh, first) = (Arc::clone(&gathered.fresh), self.durable.progress.rows);
        let sequence = self.durable.progress.sequence + 1;
        let Durable { store, packer, .. } = &mut self.durable;
        let (attributes, books) = (self.learning.model.kept(), self.coding.books.as_slice());
        let policy = &self.settings.policy;
        let treatment = BatchTreatment { in_force: &self.in_force, books, ledger: &self.ledger, policy, sequence };
        std::thread::scope(|scope| {
            let laid = scope.spawn(|| {
                let rows = (fresh.rows() > 0).then(|| packer.pack(&fresh, first, attributes, books));
                store.lay_rows(sequence, rows.as_ref())
            });
            let mut treated = treatment.treat(gathered);
            // The intent may be old: who was settled then need not be any more.
            let is_late = order.retry.is_some() && order.now.age_ms > treated.gathered.age_ms;
            if is_late && treatment.verify(&mut treated, order.now.age_ms, true).is_err() {
                // Other bytes than those of the attempt before: the crowd is worth more.
                treated.gathered.age_ms = order.now.age_ms;
                treated.gathered.clock_ms = treated.gathered.clock_ms.max(order.now.clock_ms);
                treated = treatment.treat(treated.gathered);
            }
            let start = Instant::now();
            let age_ms = treated.gathered.age_ms;
            let verified = treatment.verify(&mut treated, age_ms, false)?;
            let Treated { mut gathered, proposal } = treated;
            gathered.seconds.verify = start.elapsed().as_secs_f64();
            laid.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(VerifiedBatch { gathered, proposal, verified })
        })
    }
}

/// What treatment and verification take of an engine.
struct BatchTreatment<'a> {
    in_force: &'a InForce,
    books: &'a [Codebook],
    ledger: &'a Ledger,
    policy: &'a Policy,
    sequence: u64,
}

impl BatchTreatment<'_> {
    fn treat<'a>(&self, mut gathered: Gathered<'a>) -> Treated<'a> {
        let start = Instant::now();
        let proposal = self.propose(&gathered, &gathered.turnout.mask);
        gathered.seconds.treat += start.elapsed().as_secs_f64();
        Treated { gathered, proposal }
    }

    /// What may leave of a batch in which `mask` says who takes part.
    fn propose(&self, gathered: &Gathered<'_>, mask: &Mask) -> Proposal {
        let InForce { plan, names, protected, .. } = self.in_force;
        let Gathered { batch, waited, last, age_ms, .. } = gathered;
        let rules = Rules { plan, names, books: self.books, policy: self.policy, protected };
        treat(&Records { batch, mask, waited, last: *last }, &rules, &self.ledger.at(*age_ms))
    }

    /// Verifies a treated batch as of `age_ms`; where that cannot be judged, treats it again without one more group. `keeps`: the lines
    /// are needed again.
    fn verify(&self, treated: &mut Treated<'_>, age_ms: i64, keeps: bool) -> Result<Verified, Refusal> {
        let Treated { gathered, proposal } = treated;
        let mut mask = Cow::Borrowed(&gathered.turnout.mask);
        let mut left_out = Vec::new();
        loop {
            let lines: Vec<usize> = proposal.groups.iter().map(|group| group.rows.len()).collect();
            let groups = if keeps { proposal.groups.clone() } else { std::mem::take(&mut proposal.groups) };
            let verdict = self.recount(gathered, groups, age_ms);
            let Err(Refusal { violation: Violation::Unjudged(pair), .. }) = verdict else { return verdict };
            let lighter = lighter(proposal, &self.in_force.plan, pair);
            if left_out.contains(&lighter) {
                return verdict;
            }
            left_out.push(lighter);
            mask = Cow::Owned(mask.without(lighter, proposal.unreleased.len()));
            let before = std::mem::replace(proposal, self.propose(gathered, &mask));
            proposal.guarded_fragments += lines[lighter] as u64;
            for (now, before) in proposal.unreleased.iter_mut().zip(before.unreleased) {
                if *now == Some(Unreleased::NoSupport) && matches!(before, None | Some(Unreleased::Guard)) {
                    *now = Some(Unreleased::Guard);
                }
            }
        }
    }

    fn recount(&self, gathered: &Gathered<'_>, lines: Vec<ProposedGroup>, age_ms: i64) -> Result<Verified, Refusal> {
        let batch = &gathered.batch;
        let given = Given {
            subjects: &batch.subjects,
            columns: &batch.columns,
            waiting: gathered.waits.len(),
            sequence: self.sequence,
            age_ms,
        };
        verify(lines, &given, &self.in_force.terms, self.books, self.ledger.at(age_ms), self.policy.k)
    }
}

/// The one of two groups that says less: by the cells of it that leave.
fn lighter(proposal: &Proposal, plan: &Plan, [one, other]: [usize; 2]) -> usize {
    let says = |group: usize| {
        let group = &plan.groups[group];
        let columns = group.quasi.iter().chain(&group.sensitive).map(|&a| &proposal.cells[a]);
        columns.flatten().filter(|cell| **cell != SUPPRESSED).count()
    };
    if says(one) < says(other) { one } else { other }
}
