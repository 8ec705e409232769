//! Recount of ℓ-diversity (docs/internals/methods.md §8, §11.5). Other models need a sample or population.

use super::cell_validation::PrintedCellKind;
use super::group_reader::GroupLines;
use super::line_lineage::LineLineage;
use super::violation_log::ViolationLog;
use crate::config::{DiversityKind, ModelKind, PrivacyModel};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::plan::GroupShape;
use throng_core::values::schema::Schema;

const SLACK: f64 = 1e-9;
const DIVERSITY_RULE: &str = "a class has values as diverse as `privacy.model` requires";

type ValueSubjects<'a> = BTreeMap<&'a str, BTreeSet<u32>>;

pub(super) fn is_checkable(model: &PrivacyModel) -> bool {
    matches!(model.kind, ModelKind::LDiversity)
}

/// `told` is indexed by line. Without subjects a line counts as one.
pub(super) fn check_models(
    (schema, models): (&Schema, &[PrivacyModel]),
    (group, shape): (&GroupLines, &GroupShape),
    told: &[LineLineage],
    people: bool,
    findings: &mut ViolationLog,
) {
    for model in models.iter().filter(|model| is_checkable(model)) {
        let attribute = model.attribute.as_deref().and_then(|name| schema.position(name));
        let column = attribute.filter(|attribute| shape.sensitive.contains(attribute));
        let column = column.and_then(|attribute| group.attributes.iter().position(|own| *own == attribute));
        let Some(column) = column else { continue };
        let quasi: Vec<usize> =
            (0..group.attributes.len()).filter(|at| shape.quasi.contains(&group.attributes[*at])).collect();
        let mut classes: BTreeMap<(u64, Vec<&str>), (usize, ValueSubjects<'_>)> = BTreeMap::new();
        for (line, told) in told.iter().enumerate() {
            // Without a subject, a record does not count.
            let person = if people { told.person } else { Some(line as u32) };
            let Some(person) = person.filter(|_| group.cell_kinds[line][column] == PrintedCellKind::Exact) else {
                continue;
            };
            let class = quasi.iter().map(|&at| group.lines[line][at].as_str()).collect();
            let (_, values) = classes.entry((told.batch, class)).or_insert_with(|| (line, ValueSubjects::new()));
            values.entry(group.lines[line][column].as_str()).or_default().insert(person);
        }
        for (first, values) in classes.values().filter(|(_, values)| !is_diverse(values, model)) {
            let l = model.l.map_or(0, |l| l.ceil() as usize);
            let name = group.names[column].as_str();
            findings.add_violation(
                DIVERSITY_RULE,
                &group.file,
                group.line_number(*first),
                Some(name),
                Some([values.len(), l]),
            );
        }
    }
}

fn is_diverse(values: &ValueSubjects<'_>, model: &PrivacyModel) -> bool {
    let l = model.l.unwrap_or(1.0);
    let mut counts: Vec<f64> = values.values().map(|people| people.len() as f64).collect();
    counts.sort_by(|a, b| b.total_cmp(a));
    let all: f64 = counts.iter().sum();
    let least = l.ceil() as usize;
    let is_met = match model.diversity {
        DiversityKind::Distinct => values.len() >= least,
        DiversityKind::Entropy => counts.iter().map(|n| n / all * (all / n).ln()).sum::<f64>() >= l.ln() - SLACK,
        DiversityKind::Recursive => {
            let tail: f64 = counts.get(least.max(1) - 1..).map_or(0.0, |tail| tail.iter().sum());
            model.c.is_some_and(|c| counts[0] < c * tail + SLACK)
        }
    };
    is_met && can_assign_subjects(values, least)
}

/// Bipartite matching (Kuhn's augmenting paths).
fn can_assign_subjects(values: &ValueSubjects<'_>, least: usize) -> bool {
    let people: Vec<&BTreeSet<u32>> = values.values().collect();
    let mut owner: BTreeMap<u32, usize> = BTreeMap::new();
    let given = (0..people.len()).filter(|&value| augment(value, &people, &mut owner, &mut BTreeSet::new()));
    given.take(least).count() >= least
}

fn augment(
    value: usize,
    people: &[&BTreeSet<u32>],
    owner: &mut BTreeMap<u32, usize>,
    seen: &mut BTreeSet<u32>,
) -> bool {
    for &person in people[value] {
        if !seen.insert(person) {
            continue;
        }
        let is_free = match owner.get(&person).copied() {
            None => true,
            Some(other) => augment(other, people, owner, seen),
        };
        if is_free {
            owner.insert(person, value);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diversity_counts_distinct_subjects() {
        let values = |shown: &[(&'static str, u32)]| {
            let mut values = ValueSubjects::new();
            shown.iter().for_each(|(value, person)| {
                values.entry(value).or_default().insert(*person);
            });
            values
        };
        let model = |diversity, l| PrivacyModel {
            kind: ModelKind::LDiversity,
            l: Some(l),
            diversity,
            c: Some(2.0),
            ..PrivacyModel::default()
        };
        let distinct =
            |shown: &[(&'static str, u32)], l| is_diverse(&values(shown), &model(DiversityKind::Distinct, l));
        assert!(distinct(&[("a", 1), ("b", 2)], 2.0) && !distinct(&[("a", 1), ("a", 2)], 2.0));
        assert!(!distinct(&[("a", 1), ("b", 1)], 2.0), "one person's many values");
        assert!(distinct(&[("a", 1), ("b", 1), ("b", 2), ("c", 2), ("c", 3)], 3.0));
        let entropy = |shown: &[(&'static str, u32)]| is_diverse(&values(shown), &model(DiversityKind::Entropy, 2.0));
        assert!(entropy(&[("a", 1), ("b", 2)]) && !entropy(&[("a", 1), ("a", 2), ("b", 3)]));
        let recursive =
            |shown: &[(&'static str, u32)]| is_diverse(&values(shown), &model(DiversityKind::Recursive, 2.0));
        assert!(recursive(&[("a", 1), ("b", 2)]) && recursive(&[("a", 1), ("a", 2), ("b", 3)]));
        assert!(!recursive(&[("a", 1), ("a", 2), ("a", 3), ("b", 4)]));
    }
}
