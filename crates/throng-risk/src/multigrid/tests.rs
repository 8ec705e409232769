//! Compares the aggregation with sets of records.

use super::brute_force::{ReferenceCells, counts, records, tables};
use super::{AttributeAggregation, ExactAggregation};
use crate::counting::{AttributeSet, CountedTable};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn columns_of(cells: &ReferenceCells) -> CountedTable {
    let width = cells.first().map_or(0, Vec::len);
    let columns = (0..width).map(|c| cells.iter().map(|row| row[c]).collect()).collect();
    CountedTable::new(columns, None).expect("a table")
}

fn partition(cells: &ReferenceCells, column: usize) -> BTreeSet<Vec<usize>> {
    let mut classes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (row, codes) in cells.iter().enumerate() {
        classes.entry(codes[column]).or_default().push(row);
    }
    classes.into_values().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn aggregation_recovers_every_count(cells in tables()) {
        let (fine, attributes) = counts(&cells);
        let exact = ExactAggregation::of(&fine, &attributes);
        prop_assert_eq!(exact.to_fine_counts(), fine.clone());
        for u in fine.numbers() {
            for v in fine.numbers() {
                prop_assert_eq!(exact.fine_pair_records(u, v), fine.pair_records(u, v));
            }
        }
        prop_assert!(exact.coarse().nodes() <= fine.nodes());
        prop_assert!(exact.coarse().edges() <= fine.edges());
    }

    #[test]
    fn coarse_nodes_equal_their_conjunctions(cells in tables()) {
        let (fine, attributes) = counts(&cells);
        let exact = ExactAggregation::of(&fine, &attributes);
        let sets: Vec<BTreeSet<usize>> = records(&cells).into_values().collect();
        for (part, nodes) in (0..).zip(exact.conjunctions()) {
            let common = nodes.iter().map(|u| sets[*u as usize].clone()).reduce(|a, b| &a & &b).expect("a node");
            prop_assert!(common.len() >= exact.coarse().node_records(part) as usize);
        }
        for u in fine.numbers() {
            let parts = exact.parts(u);
            let total: u32 = parts.iter().map(|part| exact.coarse().node_records(*part)).sum();
            prop_assert_eq!(total, fine.node_records(u));
            for (i, j) in parts.iter().flat_map(|i| parts.iter().map(move |j| (*i, *j))).filter(|(i, j)| i != j) {
                prop_assert_eq!(exact.coarse().pair_records(i, j), 0);
            }
        }
    }

    #[test]
    fn coarsest_level_has_no_equivalent_nodes(cells in tables()) {
        let (fine, attributes) = counts(&cells);
        let exact = ExactAggregation::of(&fine, &attributes);
        let coarse = exact.coarse();
        for u in coarse.numbers() {
            for (v, together) in coarse.neighbours(u) {
                prop_assert!(*together < coarse.node_records(u) || *together < coarse.node_records(*v), "{} and {} are one", u, v);
            }
        }
    }

    #[test]
    fn attributes_merge_exactly_when_partitions_match(cells in tables()) {
        let table = columns_of(&cells);
        let width = table.width();
        let found = AttributeAggregation::of(&table, &AttributeSet::first(width));
        let partitions: Vec<BTreeSet<Vec<usize>>> = (0..width).map(|c| partition(&cells, c)).collect();
        let refines = |a: usize, b: usize| {
            partitions[a].iter().all(|class| partitions[b].iter().any(|wider| class.iter().all(|r| wider.contains(r))))
        };
        let numbers = 0..found.kept().len();
        for number in numbers.clone() {
            let column = found.kept()[number];
            let alike: BTreeSet<usize> = (0..width).filter(|c| partitions[*c] == partitions[column]).collect();
            prop_assert_eq!(found.twins(number).iter().copied().collect::<BTreeSet<_>>(), alike);
            let implied: Vec<usize> =
                numbers.clone().filter(|other| *other != number && refines(column, found.kept()[*other])).collect();
            prop_assert_eq!(found.implied(number), implied);
        }
        for number in numbers {
            prop_assert!(found.roots().iter().any(|root| *root == number || found.implied(*root).contains(&number)));
        }
    }
}

/// \[POD] Table 3.1: gender, ZIP, drug, disease.
fn table_3_1() -> ReferenceCells {
    vec![vec![0, 0, 0, 0], vec![1, 1, 1, 0], vec![0, 2, 1, 0], vec![0, 2, 0, 0]]
}

#[test]
fn equivalent_gender_and_zip_values_merge() {
    // [POD] Example 7: f ⇔ 64123 is certain.
    let (fine, attributes) = counts(&table_3_1());
    let exact = ExactAggregation::of(&fine, &attributes);
    // Nodes: m, f, 10001, 64123, 60617, remdesivir, cortisol, COVID.
    assert_eq!(exact.parts(1), exact.parts(3));
    assert_eq!(exact.parts(1).len(), 1);
    // m unites the other two ZIP codes; COVID contains all records.
    assert_eq!(exact.parts(0), [exact.parts(2), exact.parts(4)].concat());
    assert!(exact.coarse().nodes() <= 5, "{} nodes", exact.coarse().nodes());
    assert_eq!(exact.to_fine_counts(), fine);
}

#[test]
fn remainders_merge_on_the_next_level() {
    // c1 occurs where b0 occurs without a0, so both merge on the next level.
    let cells: ReferenceCells = vec![
        vec![0, 0, 0, 5],
        vec![0, 0, 0, 6],
        vec![1, 0, 1, 5],
        vec![2, 0, 1, 7],
        vec![1, 1, 0, 6],
        vec![2, 1, 2, 7],
        vec![1, 2, 2, 5],
    ];
    let (fine, attributes) = counts(&cells);
    let exact = ExactAggregation::of(&fine, &attributes);
    assert!(exact.levels().len() >= 2, "{:?}", exact.levels());
    assert_eq!(exact.to_fine_counts(), fine);
}

#[test]
fn chain_of_attributes_keeps_the_finest_values() {
    // ZIP → city → state.
    let cells: ReferenceCells = (0..24).map(|r| vec![r % 8, r % 8 / 2, r % 8 / 4, r % 3]).collect();
    let (fine, attributes) = counts(&cells);
    let exact = ExactAggregation::of(&fine, &attributes);
    assert_eq!((fine.nodes(), exact.coarse().nodes()), (17, 11));
    assert_eq!((fine.edges(), exact.coarse().edges()), (62, 24));
    assert_eq!(exact.to_fine_counts(), fine);
}
