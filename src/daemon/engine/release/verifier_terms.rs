//! Verifier terms of a plan: attributes, roles and privacy models of each group.

use crate::daemon::engine::core::ActivePlan;
use crate::planner::closeness_counts::resolve_reference;
use throng_core::plan::{Plan, PlanGroup};
use throng_core::privacy::protection::{ClosenessReference, ProtectionJudge, SensitiveProtection};
use throng_core::release::line_limits::LineLimit;
use throng_core::release::protected_attributes::{ProtectedTerms, ReferenceShares};
use throng_core::release::verifier_input::{GroupTerms, NarrowingTerms};
use throng_core::treatment::batch_treatment::{GroupNames, ProtectedAttribute};
use throng_core::values::codebook::Codebook;
use throng_core::values::subjects_by_value::SubjectsByValue;

/// Returns the terms of every group.
pub fn group_terms(
    plan: &Plan,
    names: &GroupNames,
    protections: &[(SensitiveProtection, ClosenessReference)],
) -> Vec<GroupTerms> {
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
            shown_elsewhere: Vec::new(),
            holders_elsewhere: SubjectsByValue::default(),
        }
    });
    terms.collect()
}

fn protected_terms(
    group: &PlanGroup,
    attributes: &[usize],
    protections: &[(SensitiveProtection, ClosenessReference)],
) -> Vec<ProtectedTerms> {
    let mine = protections.iter().filter(|(protection, _)| group.sensitive.contains(&protection.attribute));
    let terms = mine.filter_map(|(protection, reference)| {
        let column = attributes.iter().position(|a| *a == protection.attribute)?;
        let total = reference.subjects.iter().sum::<u64>() as f64;
        let shares = (!reference.values.is_empty()).then(|| ReferenceShares {
            positions: reference.values.iter().copied().zip(0..).collect(),
            shares: reference.subjects.iter().map(|subjects| *subjects as f64 / total).collect(),
        });
        Some(ProtectedTerms {
            attribute: protection.attribute,
            column,
            claims: protection
                .requirements
                .iter()
                .map(|requirement| requirement.with_ground_metric(&reference.tree))
                .collect(),
            representatives: protection.min_representatives(),
            reference: shares,
        })
    });
    terms.collect()
}

impl ActivePlan {
    pub(crate) fn prepare_protections(&mut self, plan: &Plan, books: &mut [Codebook], max_lines: usize) {
        let mut protections: Vec<(SensitiveProtection, ClosenessReference)> =
            Vec::with_capacity(self.protections.len());
        for protection in &self.protections {
            let counts = self.references.iter().find(|counts| counts.attribute == protection.attribute);
            let book = &mut books[protection.attribute];
            let reference = counts.map(|counts| resolve_reference(counts, protection, book)).unwrap_or_default();
            protections.push((protection.clone(), reference));
        }
        self.terms = group_terms(plan, &self.names, &protections);
        let groups = plan.groups.iter().zip(&self.group_keys);
        for (terms, (group, &name)) in self.terms.iter_mut().zip(groups) {
            terms.lines = match max_lines {
                _ if plan.is_static(group) => LineLimit::OncePerWindow(name),
                0 => LineLimit::None,
                most => LineLimit::PerBatch(most),
            };
        }
        let protected = |(protection, reference): &(SensitiveProtection, ClosenessReference)| ProtectedAttribute {
            attribute: protection.attribute,
            // Unjudged values are not shown.
            judge: ProtectionJudge::new(protection, Some(reference)).unwrap_or(None),
        };
        self.protected = protections.iter().map(protected).collect();
    }
}
