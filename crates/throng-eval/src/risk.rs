//! Re-identification risk \[ELE] (docs/internals/methods.md §14.2): prosecutor (1 / class size) and marketer (mean).

use super::original::OriginalData;
use crate::released_lines::{LineOrigin, ReleasedGroup};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::plan::GroupShape;
use throng_core::values::codebook::CellId;

/// Risk of one group.
#[derive(Clone, Debug, Serialize)]
pub struct GroupRisk {
    /// Group name.
    pub group: String,
    /// Unit of classes: `people` with lineage and subject, else `lines`.
    pub counted: &'static str,
    /// Smallest class.
    pub smallest_class: u64,
    /// Smallest class in a batch, with a lineage.
    pub smallest_class_in_batch: Option<u64>,
    /// Highest prosecutor risk: 1 / smallest class.
    pub prosecutor_highest: f64,
    /// Mean prosecutor risk, equal to the marketer risk.
    pub prosecutor_average: f64,
    /// Share of lines in classes below k.
    pub below_k: f64,
    /// Share of lines in classes of size 1.
    pub unique: f64,
    /// Share of original records with unique raw quasi-identifiers.
    pub unique_before: f64,
    /// Estimated share of original records unique in a tenfold population.
    pub population_unique_before: f64,
}

/// Computes every group's risk at `k`.
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

/// Shares unique in the sample, and in a tenfold population by \[ZAY].
fn uniqueness(original: &OriginalData, quasi: &[usize]) -> (f64, f64) {
    const FRACTION: f64 = 0.1;
    const LARGEST: u64 = 50;
    let rows = original.rows();
    let mut classes: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for row in 0..rows {
        *classes.entry(quasi.iter().map(|&a| original.batch.columns[a][row]).collect()).or_default() += 1;
    }
    let mut sizes = vec![0_u64; LARGEST as usize + 1];
    classes.values().filter(|size| **size <= LARGEST).for_each(|size| sizes[*size as usize] += 1);
    let all = classes.len().max(1) as f64;
    // P(one of j is sampled) · P(class size j).
    let seen_once = |j: usize| j as f64 * FRACTION * (1.0 - FRACTION).powi(j as i32 - 1) * sizes[j] as f64 / all;
    let total: f64 = (1..=LARGEST as usize).map(seen_once).sum();
    let unique = sizes[1] as f64 / rows.max(1) as f64;
    (unique, if total > 0.0 { unique * seen_once(1) / total } else { 0.0 })
}
