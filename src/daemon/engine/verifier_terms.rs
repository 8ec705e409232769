//! What verification is told of a plan: the attributes of each group, what each of them is, and which models protect it.

use super::core::Engine;
use crate::anonymity::plan::{Group, Plan};
use crate::anonymity::planner::reference::{ReferenceCounts, resolve};
use crate::anonymity::privacy::protection::{ClassJudge, Protection, Reference};
use crate::anonymity::treatment::treat::{GroupNames, Protected};
use crate::release::given::{GroupTerms, NarrowingTerms};
use crate::release::protected::{ProtectedTerms, Shares};
use crate::release::repetition::LineLimit;
use crate::telemetry::{Limit, LimitReached};
use throng_core::values::holders::Holders;

/// The terms of every group of `plan`, in its order. `protections` each come with the distribution that they compare
/// with, empty where there is none. Verification is told the ladders, so that it recounts what can be excluded.
pub fn group_terms(plan: &Plan, names: &GroupNames, protections: &[(Protection, Reference)]) -> Vec<GroupTerms> {
    let groups = plan.groups.iter().zip(&names.layouts).zip(&names.bases);
    let terms = groups.map(|((group, layout), &base)| {
        let attributes = group.attributes();
        GroupTerms {
            quasi: attributes.iter().map(|a| group.quasi.contains(a)).collect(),
            sensitive: attributes.iter().map(|a| group.sensitive.contains(a)).collect(),
            protected: protected_terms(group, &attributes, protections),
            ranges: group.ranges,
            narrowing: (!group.quasi.is_empty() && !group.ranges).then(|| NarrowingTerms {
                attributes: group.quasi.clone(),
                nodes: group.ladder.iter().map(|node| node.levels.clone()).collect(),
            }),
            attributes,
            layout: layout.clone(),
            base,
            sensitive_bases: names.sensitive_bases.clone(),
            lines: LineLimit::None,
            shown_beside: Vec::new(),
            holders_beside: Holders::default(),
        }
    });
    terms.collect()
}

fn protected_terms(
    group: &Group,
    attributes: &[usize],
    protections: &[(Protection, Reference)],
) -> Vec<ProtectedTerms> {
    let mine = protections.iter().filter(|(protection, _)| group.sensitive.contains(&protection.attribute));
    let terms = mine.filter_map(|(protection, reference)| {
        let column = attributes.iter().position(|a| *a == protection.attribute)?;
        let total = reference.subjects.iter().sum::<u64>() as f64;
        let shares = (!reference.values.is_empty()).then(|| Shares {
            positions: reference.values.iter().copied().zip(0..).collect(),
            shares: reference.subjects.iter().map(|subjects| *subjects as f64 / total).collect(),
        });
        Some(ProtectedTerms {
            attribute: protection.attribute,
            column,
            claims: protection.requirements.iter().map(|requirement| requirement.over(&reference.tree)).collect(),
            representatives: protection.representatives(),
            reference: shares,
        })
    });
    terms.collect()
}

impl Engine {
    /// The distributions that the plan in force compares classes with.
    pub fn references(&self) -> &[ReferenceCounts] {
        &self.in_force.references
    }

    /// Prepares treatment and verification for `plan` and for what it compares classes with.
    pub(super) fn protect(&mut self, plan: &Plan) {
        let mut protections: Vec<(Protection, Reference)> = Vec::with_capacity(self.in_force.protections.len());
        for protection in &self.in_force.protections {
            let counts = self.in_force.references.iter().find(|counts| counts.attribute == protection.attribute);
            let book = &mut self.coding.books[protection.attribute];
            let reference = counts.map(|counts| resolve(counts, protection, book)).unwrap_or_default();
            protections.push((protection.clone(), reference));
        }
        self.in_force.terms = group_terms(plan, &self.in_force.names, &protections);
        let groups = plan.groups.iter().zip(&self.in_force.turn_names);
        for (terms, (group, &name)) in self.in_force.terms.iter_mut().zip(groups) {
            terms.lines = match self.settings.repetition.max_lines {
                _ if plan.is_static(group) => LineLimit::OncePerWindow(name),
                0 => LineLimit::None,
                most => LineLimit::PerBatch(most),
            };
        }
        let protected = |(protection, reference): &(Protection, Reference)| Protected {
            attribute: protection.attribute,
            // Ranges were checked with the configuration; what still cannot be judged shows nothing.
            judge: ClassJudge::new(protection, Some(reference)).unwrap_or(None),
        };
        self.in_force.protected = protections.iter().map(protected).collect();
    }

    /// Says so when a batch of `rows` records could not have supported anything new for want of room.
    pub(super) fn tell_of_full_supporters(&self, rows: usize) {
        let rows = rows * self.in_force.plan.groups.len();
        if self.ledger.supporters.as_ref().is_some_and(|supporters| !supporters.has_room(rows)) {
            LimitReached { limit: Limit::Supporters }.emit(&self.telemetry);
        }
    }
}
