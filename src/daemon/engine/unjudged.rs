//! What verification has no time to judge: of two groups one does not leave in this batch.
//!
//! The treatment and the recount search in different ways, so that what one has cleared may cost the other more steps than a
//! batch has. Nothing leaves unverified: the lighter of the two groups is left out, as if the counting guard had withdrawn it.

use crate::anonymity::plan::Plan;
use crate::anonymity::treatment::mask::Mask;
use crate::anonymity::treatment::proposal::{Proposal, ProposedGroup, Unreleased};
use crate::records::codebook::SUPPRESSED;
use crate::release::verified::Verified;
use crate::release::verify::{Refusal, Violation};
use std::borrow::Cow;

/// Verifies `proposal`, made with `mask`; where that cannot be judged, treats the batch again without one more group. `keeps`:
/// the groups are needed again.
pub(super) fn judged(
    proposal: &mut Proposal,
    plan: &Plan,
    mask: &Mask,
    keeps: bool,
    treated: impl Fn(&Mask) -> Proposal,
    verified: impl Fn(Vec<ProposedGroup>) -> Result<Verified, Refusal>,
) -> Result<Verified, Refusal> {
    let mut mask = Cow::Borrowed(mask);
    let mut left_out = Vec::new();
    loop {
        let lines: Vec<usize> = proposal.groups.iter().map(|group| group.rows.len()).collect();
        let groups = if keeps { proposal.groups.clone() } else { std::mem::take(&mut proposal.groups) };
        let verdict = verified(groups);
        let Err(Refusal { violation: Violation::Unjudged(pair), .. }) = verdict else { return verdict };
        let lighter = lighter(proposal, plan, pair);
        if left_out.contains(&lighter) {
            return verdict;
        }
        left_out.push(lighter);
        mask = Cow::Owned(mask.without(lighter, proposal.unreleased.len()));
        let before = std::mem::replace(proposal, treated(&mask));
        proposal.guarded_fragments += lines[lighter] as u64;
        for (now, before) in proposal.unreleased.iter_mut().zip(before.unreleased) {
            if *now == Some(Unreleased::NoSupport) && matches!(before, None | Some(Unreleased::Guard)) {
                *now = Some(Unreleased::Guard);
            }
        }
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
