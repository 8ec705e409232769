//! Re-identification risk of a release against two kinds of attackers \[ELE] (docs/internals/methods.md §14.2).
//!
//! The prosecutor knows that a subject is in the release and looks for that subject: risk 1 / class size. The
//! marketer targets all subjects: the mean risk.

use super::original::OriginalData;
use crate::released_lines::{LineOrigin, ReleasedGroup};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::plan::GroupShape;
use throng_core::values::codebook::CellId;

/// Risk of the lines of one group.
#[derive(Clone, Debug, Serialize)]
pub struct GroupRisk {
    /// Name of the group.
    pub group: String,
    /// Unit of class sizes: `subjects` with a lineage and a subject, else `lines`.
    pub counted: &'static str,
    /// Size of the smallest class.
    pub smallest_class: u64,
    /// Size of the smallest class inside one batch; none without a lineage.
    pub smallest_class_in_batch: Option<u64>,
    /// Highest prosecutor risk of a line: 1 / smallest class size.
    pub prosecutor_highest: f64,
    /// Mean risk of the lines, which equals the marketer risk.
    pub prosecutor_average: f64,
    /// Share of the lines in classes below k.
    pub below_k: f64,
    /// Share of the lines in classes of size 1.
    pub unique: f64,
    /// Share of the original records that are unique by the raw values of the group's quasi-identifiers.
    pub unique_before: f64,
    /// Estimated share of the original records that are unique in a population ten times as large, by Zayatz's
    /// estimator.
    pub population_unique_before: f64,
}

/// Computes the risk of every group at `k`.
pub fn measure_risks(
    original: &OriginalData,
    shapes: &[GroupShape],
    groups: &[ReleasedGroup],
    k: usize,
) -> Vec<GroupRisk> {
    groups.iter().zip(shapes).map(|(group, shape)| group_risk(original, shape, group, k as u64)).collect()
}

fn group_risk(original: &OriginalData, shape: &GroupShape, group: &ReleasedGroup, k: u64) -> GroupRisk {
    let columns: Vec<&[CellId]> = shape.quasi.iter().filter_map(|&attribute| group.column(attribute)).collect();
    let people = original.schema.subject.is_some().then_some(group.origin.as_deref()).flatten();
    let whose = |line: usize| people.map_or(line as u64, |origins| original.batch.subjects[origins[line].row as usize]);
    let key = |line: usize| columns.iter().map(|column| column[line]).collect::<Vec<CellId>>();
    let mut classes: BTreeMap<Vec<CellId>, (u64, BTreeSet<u64>)> = BTreeMap::new();
    for line in 0..group.lines {
        let (lines, people) = classes.entry(key(line)).or_default();
        *lines += 1;
        people.insert(whose(line));
    }
    let total = group.lines.max(1) as f64;
    let sized = |wanted: &dyn Fn(u64) -> bool| {
        let of = classes.values().filter(|(_, people)| wanted(people.len() as u64));
        of.map(|(lines, _)| *lines as f64).sum::<f64>() / total
    };
    let smallest = classes.values().map(|(_, people)| people.len() as u64).min().unwrap_or(0);
    let average = classes.values().map(|(lines, people)| *lines as f64 / people.len() as f64).sum::<f64>() / total;
    let (unique_before, population_unique_before) = uniqueness(original, &shape.quasi);
    GroupRisk {
        group: group.name.clone(),
        counted: if people.is_some() { "people" } else { "lines" },
        smallest_class: smallest,
        smallest_class_in_batch: group.origin.as_deref().map(|origins| smallest_in_batch(origins, &key, &whose)),
        prosecutor_highest: if smallest == 0 { 0.0 } else { 1.0 / smallest as f64 },
        prosecutor_average: average,
        below_k: sized(&|size| size < k),
        unique: sized(&|size| size == 1),
        unique_before,
        population_unique_before,
    }
}

fn smallest_in_batch(origins: &[LineOrigin], key: &dyn Fn(usize) -> Vec<CellId>, whose: &dyn Fn(usize) -> u64) -> u64 {
    let mut classes: BTreeMap<(u64, Vec<CellId>), BTreeSet<u64>> = BTreeMap::new();
    for (line, origin) in origins.iter().enumerate() {
        classes.entry((origin.batch, key(line))).or_default().insert(whose(line));
    }
    classes.values().map(|people| people.len() as u64).min().unwrap_or(0)
}

/// Returns the share of the records with unique raw values, and the estimated share that is unique in a population of
/// ten times the size.
///
/// The estimator is that of \[ZAY]: the probability that a sample unique is a population unique follows by Bayes' rule
/// from the sampling fraction π and the class sizes of the sample.
fn uniqueness(original: &OriginalData, quasi: &[usize]) -> (f64, f64) {
    const FRACTION: f64 = 0.1;
    /// Larger classes do not contribute to the estimate.
    const LARGEST: u64 = 50;
    let rows = original.rows();
    let mut classes: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for row in 0..rows {
        *classes.entry(quasi.iter().map(|&a| original.batch.columns[a][row]).collect()).or_default() += 1;
    }
    let mut sizes = vec![0_u64; LARGEST as usize + 1];
    classes.values().filter(|size| **size <= LARGEST).for_each(|size| sizes[*size as usize] += 1);
    let all = classes.len().max(1) as f64;
    // P(one of j is in the sample) · P(a class has size j).
    let seen_once = |j: usize| j as f64 * FRACTION * (1.0 - FRACTION).powi(j as i32 - 1) * sizes[j] as f64 / all;
    let total: f64 = (1..=LARGEST as usize).map(seen_once).sum();
    let unique = sizes[1] as f64 / rows.max(1) as f64;
    (unique, if total > 0.0 { unique * seen_once(1) / total } else { 0.0 })
}
