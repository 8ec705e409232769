//! What `plan.shared` goes with: few things, so that what holds of it is proved (docs/decisions/0044).

use super::complaint::Complaints;
use super::{Config, Grouping, Treat};
use std::collections::BTreeSet;

const KEY: &str = "plan.shared";
/// Attributes that may be shared: each divides the batch once more.
const MOST: usize = 2;

/// Complaints about the attributes that stand in several groups.
pub(super) fn shared(config: &Config, found: &mut Complaints) {
    let shared = &config.plan.shared;
    if shared.is_empty() {
        return;
    }
    let distinct: BTreeSet<&String> = shared.iter().collect();
    found.unless(distinct.len() == shared.len(), KEY, "an attribute is named twice", "name each once");
    found.unless(shared.len() <= MOST, KEY, "these are too many", &format!("name at most {MOST} attributes"));
    let chosen = matches!(config.plan.groups, Grouping::Given | Grouping::Price);
    let remedy = "set plan.groups = \"price\", or \"given\" with [[group]]s";
    found.unless(chosen, KEY, "groups by quasi-identifiers keep apart what this would join", remedy);
    let untold = |treat: Treat| treat.is_untruthful() || treat == Treat::Compartment;
    let alters = config.treatment.rules().iter().any(|rule| untold(rule.treat));
    let message = "treatments that alter numbers, or that make compartments, do not know of shared attributes";
    let remedy = "set treatment.preset = \"k-anonymous\" and rules that generalize or suppress, or remove plan.shared";
    found.unless(!alters, KEY, message, remedy);
    for (index, keep) in config.keep.iter().enumerate() {
        let apart = !keep.attributes.iter().any(|attribute| shared.contains(attribute));
        let message = "a shared attribute stands beside every changing one already";
        found.unless(apart, &format!("keep[{index}].attributes"), message, "take it out of the wish");
    }
    for (index, rule) in config.treatment.rule.iter().enumerate() {
        let plain = rule.treat == Treat::Generalize || !rule.attributes.iter().any(|name| shared.contains(name));
        let message = "a shared attribute is shown at one level: it is generalized, and nothing else";
        found.unless(plain, &format!("treatment.rule[{index}].attributes"), message, "take it out of the rule");
    }
    if config.plan.groups == Grouping::Given {
        groups(config, found);
    }
}

fn groups(config: &Config, found: &mut Complaints) {
    let shared = &config.plan.shared;
    let of = |at: usize| shared.iter().filter(|name| config.group[at].attributes.contains(name)).count();
    let remedy = "name all of plan.shared in each [[group]] in which they shall stand, two or more, or set plan.groups = \"price\"";
    let sharing: Vec<usize> = (0..config.group.len()).filter(|&at| of(at) > 0).collect();
    found.unless(sharing.len() >= 2, "plan.shared", "what is shared stands in two groups or more", remedy);
    for &at in &sharing {
        let key = format!("group[{at}].attributes");
        found.unless(of(at) == shared.len(), &key, "the group has some of the shared attributes and not all", remedy);
    }
}
