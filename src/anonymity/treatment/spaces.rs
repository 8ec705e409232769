//! The spaces of a plan: which attributes make the classes that strict recoding remembers.

use super::treat::GroupNames;
use crate::anonymity::plan::Plan;
use crate::ledger::occurrences::Space;

/// The spaces of a plan; the same for all plans of the same groups.
#[must_use]
pub fn spaces(plan: &Plan, names: &GroupNames) -> Vec<Space> {
    let groups = plan.groups.iter().zip(&names.bases).filter(|(group, _)| !group.quasi.is_empty());
    let classes = groups.map(|(group, &base)| Space { base, attributes: group.quasi.clone() });
    let beside = plan.groups.iter().flat_map(|g| &g.sensitive);
    classes.chain(beside.map(|&a| Space { base: names.sensitive_bases[a], attributes: vec![a] })).collect()
}
