//! The protected attributes under the plan in force.

use super::fields::Engine;
use crate::anonymity::plan::Plan;
use crate::anonymity::planner::reference::{ReferenceCounts, resolve};
use crate::anonymity::privacy::protection::{ClassJudge, Protection, Reference};
use crate::anonymity::treatment::treat::Protected;
use crate::daemon::engine::terms::group_terms;
use crate::telemetry::{Limit, LimitReached};

impl Engine {
    /// The distributions that the plan in force compares classes with.
    #[must_use]
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
        let limits = self.line_limits(plan);
        self.in_force.terms.iter_mut().zip(limits).for_each(|(terms, limit)| terms.lines = limit);
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
