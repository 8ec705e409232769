//! Reference: nodes as sets of records, independent of the aggregation.

use super::{NodeCounts, NodeNumber};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// `cells[record][attribute]`.
pub type ReferenceCells = Vec<Vec<u32>>;

/// Records by (attribute, code).
pub fn records(cells: &[Vec<u32>]) -> BTreeMap<(u32, u32), BTreeSet<usize>> {
    let mut records: BTreeMap<(u32, u32), BTreeSet<usize>> = BTreeMap::new();
    for (record, codes) in cells.iter().enumerate() {
        for (attribute, code) in codes.iter().enumerate() {
            records.entry((attribute as u32, *code)).or_default().insert(record);
        }
    }
    records
}

/// Counts of all values, and the attribute of each node.
pub fn counts(cells: &[Vec<u32>]) -> (NodeCounts, Vec<u32>) {
    let records = records(cells);
    let sets: Vec<&BTreeSet<usize>> = records.values().collect();
    let mut pairs = Vec::new();
    for (u, of_u) in sets.iter().enumerate() {
        for (v, of_v) in sets.iter().enumerate().skip(u + 1) {
            pairs.push((u as NodeNumber, v as NodeNumber, of_u.intersection(of_v).count() as u32));
        }
    }
    let nodes = sets.iter().map(|set| set.len() as u32).collect();
    (NodeCounts::new(nodes, pairs), records.keys().map(|(attribute, _)| *attribute).collect())
}

/// Small tables with dependencies, rare and missing values.
pub fn tables() -> impl Strategy<Value = ReferenceCells> {
    (1_usize..=7, 0_usize..24).prop_flat_map(|(width, rows)| {
        let cell = prop_oneof![4 => 0_u32..4, 2 => Just(0), 1 => 4_u32..12, 1 => Just(u32::MAX)];
        let drawn = proptest::collection::vec(proptest::collection::vec(cell, width), rows);
        let made = proptest::collection::vec((0_u32..5, any::<prop::sample::Index>()), width);
        let changed = proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4);
        (drawn, made, changed).prop_map(move |(mut cells, made, changed)| {
            for (column, (how, from)) in made.iter().enumerate().skip(1) {
                let from = from.index(column);
                for codes in &mut cells {
                    match how {
                        0 => codes[column] = codes[from] ^ 1,
                        1 => codes[column] = codes[from] / 2,
                        _ => {}
                    }
                }
            }
            for (row, column) in changed.iter().filter(|_| rows > 0) {
                cells[row.index(rows)][column.index(width)] ^= 1;
            }
            cells
        })
    })
}
