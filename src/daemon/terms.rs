//! What verification is told of a plan: the attributes of each group and what each of them is.

use crate::anonymity::plan::Plan;
use crate::anonymity::treatment::treat::GroupNames;
use crate::release::verify::GroupTerms;

/// The terms of every group of `plan`, in its order.
#[must_use]
pub fn group_terms(plan: &Plan, names: &GroupNames) -> Vec<GroupTerms> {
    let groups = plan.groups.iter().zip(&names.layouts).zip(&names.bases);
    let terms = groups.map(|((group, layout), &base)| {
        let attributes = group.attributes();
        GroupTerms {
            quasi: attributes.iter().map(|a| group.quasi.contains(a)).collect(),
            sensitive: attributes.iter().map(|a| group.sensitive.contains(a)).collect(),
            attributes,
            layout: layout.clone(),
            base,
            beside: names.beside.clone(),
        }
    });
    terms.collect()
}
