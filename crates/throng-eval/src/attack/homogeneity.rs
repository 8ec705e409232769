//! Homogeneity attack: a class reveals a shared sensitive value \[MAC].

use super::attack_input::AttackInput;
use super::trials::{AttackTrials, AttackYield};
use std::collections::BTreeMap;
use throng_core::values::codebook::{CellId, SUPPRESSED};

/// Guesses each class's most frequent sensitive value; k gives no bound.
pub fn run(release: &AttackInput<'_>) -> Vec<AttackYield> {
    let mut yields = Vec::new();
    for (group, shape) in release.groups.iter().zip(release.shapes) {
        let quasi: Vec<&[CellId]> = shape.quasi.iter().filter_map(|&a| group.column(a)).collect();
        for &attribute in &shape.sensitive {
            let Some(values) = group.column(attribute) else { continue };
            let mut classes: BTreeMap<Vec<CellId>, BTreeMap<CellId, u64>> = BTreeMap::new();
            for line in 0..group.lines {
                let class = quasi.iter().map(|column| column[line]).collect();
                *classes.entry(class).or_default().entry(values[line]).or_default() += 1;
            }
            let counts = &release.facts[attribute].counts;
            let most = counts.iter().max().copied().unwrap_or(0) as f64 / release.original.rows().max(1) as f64;
            let mut trials = AttackTrials::default();
            for shown in classes.values() {
                let lines: u64 = shown.values().sum();
                let most_shown = shown.iter().filter(|(cell, _)| **cell != SUPPRESSED).map(|(_, n)| *n).max();
                let right = most_shown.unwrap_or(0) as f64 / lines as f64;
                (0..lines).for_each(|_| trials.add(right, most));
            }
            let name = &release.original.schema.attributes[attribute].name;
            yields.push(trials.into_yield("homogeneity", format!("the class, for {name}"), None).measured_only());
        }
    }
    yields
}
