//! Aggregation against sets of records written out.

use super::brute_force::{Cells, classes, counts, records, tables};
use super::{Approximate, Attributes, Counts, Exact, Node, Stream, Strength};
use crate::counting::{AttributeSet, Columns};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn columns_of(cells: &Cells) -> Columns {
    let width = cells.first().map_or(0, Vec::len);
    let columns = (0..width).map(|c| cells.iter().map(|row| row[c]).collect()).collect();
    Columns::new(columns, None).expect("a table")
}

/// Rows that a column does not tell apart, as a set of sets.
fn partition(cells: &Cells, column: usize) -> BTreeSet<Vec<usize>> {
    let mut classes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (row, codes) in cells.iter().enumerate() {
        classes.entry(codes[column]).or_default().push(row);
    }
    classes.into_values().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_count_comes_back(cells in tables()) {
        let (fine, attributes) = counts(&cells);
        let exact = Exact::of(&fine, &attributes);
        prop_assert_eq!(exact.prolonged(), fine.clone());
        for u in fine.numbers() {
            for v in fine.numbers() {
                prop_assert_eq!(exact.between(u, v), fine.between(u, v));
            }
        }
        prop_assert!(exact.coarse().nodes() <= fine.nodes());
        prop_assert!(exact.coarse().edges() <= fine.edges());
    }

    #[test]
    fn coarse_nodes_are_the_conjunctions_that_they_stand_for(cells in tables()) {
        let (fine, attributes) = counts(&cells);
        let exact = Exact::of(&fine, &attributes);
        let sets: Vec<BTreeSet<usize>> = records(&cells).into_values().collect();
        // What a coarse node stands for is in all of its records; and parts are disjoint and make up the whole.
        for (part, nodes) in (0..).zip(exact.conjunctions()) {
            let common = nodes.iter().map(|u| sets[*u as usize].clone()).reduce(|a, b| &a & &b).expect("a node");
            prop_assert!(common.len() >= exact.coarse().of(part) as usize);
        }
        for u in fine.numbers() {
            let parts = exact.parts(u);
            let total: u32 = parts.iter().map(|part| exact.coarse().of(*part)).sum();
            prop_assert_eq!(total, fine.of(u));
            for (i, j) in parts.iter().flat_map(|i| parts.iter().map(move |j| (*i, *j))).filter(|(i, j)| i != j) {
                prop_assert_eq!(exact.coarse().between(i, j), 0);
            }
        }
    }

    #[test]
    fn nothing_is_left_to_merge(cells in tables()) {
        let (fine, attributes) = counts(&cells);
        let exact = Exact::of(&fine, &attributes);
        let coarse = exact.coarse();
        for u in coarse.numbers() {
            for (v, together) in coarse.neighbours(u) {
                prop_assert!(*together < coarse.of(u) || *together < coarse.of(*v), "{} and {} are one", u, v);
            }
        }
    }

    #[test]
    fn merged_rows_are_the_galerkin_product(cells in tables()) {
        // PᵀNP with P the 0/1 aggregation holds each coarse count once a pair of members.
        let (fine, _) = counts(&cells);
        let nodes: BTreeMap<(u32, u32), Node> = records(&cells).into_keys().zip(0..).collect();
        let mut stream = Stream::new(cells.first().map_or(0, Vec::len));
        cells.iter().for_each(|codes| stream.add(codes));
        let members: Vec<Vec<Node>> =
            stream.classes().iter().map(|class| class.iter().map(|value| nodes[value]).collect()).collect();
        let (coarse, _) = stream.counts();
        for (c, of_c) in (0..).zip(&members) {
            for (d, of_d) in (0..).zip(&members) {
                let sum: u32 = of_c.iter().flat_map(|u| of_d.iter().map(|v| fine.between(*u, *v))).sum();
                prop_assert_eq!(sum, coarse.between(c, d) * (of_c.len() * of_d.len()) as u32);
            }
        }
    }

    #[test]
    fn attributes_merge_exactly_where_partitions_say_so(cells in tables()) {
        let table = columns_of(&cells);
        let width = table.width();
        let found = Attributes::of(&table, &AttributeSet::first(width));
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

/// What happens to a window.
#[derive(Clone, Debug)]
enum Event {
    Add(Vec<u32>),
    /// The oldest, where there is one.
    Expire,
    /// Any, where there is one.
    Remove(prop::sample::Index),
}

fn events() -> impl Strategy<Value = (usize, Vec<Event>)> {
    (1_usize..=6).prop_flat_map(|width| {
        let codes = proptest::collection::vec(prop_oneof![3 => 0_u32..3, 1 => Just(u32::MAX), 1 => 3_u32..9], width);
        let event = prop_oneof![
            5 => codes.prop_map(Event::Add),
            3 => Just(Event::Expire),
            1 => any::<prop::sample::Index>().prop_map(Event::Remove),
        ];
        proptest::collection::vec(event, 0..40).prop_map(move |events| (width, events))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_followed_window_is_one_that_is_built_anew((width, events) in events()) {
        let mut stream = Stream::new(width);
        let mut window: Cells = Vec::new();
        for event in events {
            match event {
                Event::Add(codes) => {
                    stream.add(&codes);
                    window.push(codes);
                }
                Event::Expire if !window.is_empty() => stream.expire(&window.remove(0)),
                Event::Remove(at) if !window.is_empty() => stream.expire(&window.remove(at.index(window.len()))),
                _ => {}
            }
            prop_assert_eq!(stream.classes(), classes(&window));
            let nodes: BTreeMap<(u32, u32), Node> = records(&window).into_keys().zip(0..).collect();
            let (fine, _) = counts(&window);
            let (coarse, attributes) = stream.counts();
            let expected = stream.classes();
            for (c, class) in (0..).zip(&expected) {
                prop_assert_eq!(attributes[c as usize], class[0].0);
                for (d, other) in (0..).zip(&expected) {
                    prop_assert_eq!(coarse.between(c, d), fine.between(nodes[&class[0]], nodes[&other[0]]));
                }
            }
        }
        let (splits, merges) = stream.changes();
        prop_assert!(window.is_empty() || splits + 1 >= merges / width as u64);
    }

    #[test]
    fn deeper_levels_stand_on_the_followed_one(cells in tables()) {
        let mut stream = Stream::new(cells.first().map_or(0, Vec::len));
        cells.iter().for_each(|codes| stream.add(codes));
        let (coarse, attributes) = stream.counts();
        let (fine, fine_attributes) = counts(&cells);
        let (upon, anew) = (Exact::of(&coarse, &attributes), Exact::of(&fine, &fine_attributes));
        prop_assert_eq!(upon.coarse(), anew.coarse());
    }
}

#[test]
fn the_record_that_breaks_a_certainty_splits_its_node() {
    let mut stream = Stream::new(2);
    (0..3).for_each(|_| stream.add(&[7, 8]));
    assert_eq!(stream.classes(), [vec![(0, 7), (1, 8)]]);
    stream.add(&[7, 9]);
    assert_eq!(stream.classes(), [vec![(0, 7)], vec![(1, 8)], vec![(1, 9)]]);
    assert_eq!(stream.changes(), (1, 0));
    let (counts, _) = stream.counts();
    assert_eq!((counts.of(0), counts.between(0, 1), counts.between(0, 2), counts.between(1, 2)), (4, 3, 1, 0));
    stream.expire(&[7, 9]);
    assert_eq!((stream.classes(), stream.changes()), (vec![vec![(0, 7), (1, 8)]], (1, 1)));
}

/// [POD] Table 3.1: gender, ZIP, drug, disease.
fn table_3_1() -> Cells {
    vec![vec![0, 0, 0, 0], vec![1, 1, 1, 0], vec![0, 2, 1, 0], vec![0, 2, 0, 0]]
}

#[test]
fn female_and_her_zip_are_one_node() {
    // [POD] Example 7: f → 64123 is certain, and so is the way back.
    let (fine, attributes) = counts(&table_3_1());
    let exact = Exact::of(&fine, &attributes);
    // Nodes: m, f, 10001, 64123, 60617, remdesivir, cortisol, COVID.
    assert_eq!(exact.parts(1), exact.parts(3));
    assert_eq!(exact.parts(1).len(), 1);
    // m is who is at one of the other two ZIPs; COVID is everybody.
    assert_eq!(exact.parts(0), [exact.parts(2), exact.parts(4)].concat());
    assert!(exact.coarse().nodes() <= 5, "{} nodes", exact.coarse().nodes());
    assert_eq!(exact.prolonged(), fine);
}

#[test]
fn what_is_left_of_two_values_may_merge_on_the_next_level() {
    // a0 ⇒ b0, and c1 is where b0 is without a0: b0 without a0 is c1, two levels down.
    let cells: Cells = vec![
        vec![0, 0, 0, 5],
        vec![0, 0, 0, 6],
        vec![1, 0, 1, 5],
        vec![2, 0, 1, 7],
        vec![1, 1, 0, 6],
        vec![2, 1, 2, 7],
        vec![1, 2, 2, 5],
    ];
    let (fine, attributes) = counts(&cells);
    let exact = Exact::of(&fine, &attributes);
    assert!(exact.levels().len() >= 2, "{:?}", exact.levels());
    assert_eq!(exact.prolonged(), fine);
}

#[test]
fn a_chain_leaves_its_finest_link() {
    // ZIP → city → state: what is said of cities and states is a sum over ZIPs.
    let cells: Cells = (0..24).map(|r| vec![r % 8, r % 8 / 2, r % 8 / 4, r % 3]).collect();
    let (fine, attributes) = counts(&cells);
    let exact = Exact::of(&fine, &attributes);
    assert_eq!((fine.nodes(), exact.coarse().nodes()), (17, 11));
    assert_eq!((fine.edges(), exact.coarse().edges()), (62, 24));
    assert_eq!(exact.prolonged(), fine);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn an_estimate_is_right_where_only_equals_were_merged(cells in tables()) {
        let (fine, attributes) = counts(&cells);
        let found = Approximate::of(&fine, &attributes, Strength::Symmetric { theta: 1.0 }, 5);
        prop_assert!(found.defects().iter().all(|defect| *defect < 1e-12), "{:?}", found.defects());
        for u in fine.numbers() {
            for v in fine.numbers() {
                prop_assert!((found.estimate(u, v) - f64::from(fine.between(u, v))).abs() < 1e-9);
            }
        }
        // θ = 1 merges what has the same records, and nothing else.
        let aggregates: BTreeSet<Node> = fine.numbers().map(|u| found.aggregate(u)).collect();
        prop_assert_eq!(aggregates.len(), classes(&cells).len());
    }

    #[test]
    fn aggregates_hold_a_value_of_an_attribute_and_defects_are_shares(
        cells in tables(),
        tau in 0.0_f64..1.0,
        classical: bool,
    ) {
        let (fine, attributes) = counts(&cells);
        let strength = if classical { Strength::Classical { tau } } else { Strength::Symmetric { theta: tau } };
        let found = Approximate::of(&fine, &attributes, strength, 5);
        let mut held: BTreeSet<(Node, u32)> = BTreeSet::new();
        for u in fine.numbers() {
            prop_assert!(held.insert((found.aggregate(u), attributes[u as usize])));
        }
        prop_assert!(found.defects().iter().all(|defect| (0.0..=1.0 + 1e-9).contains(defect)), "{:?}", found.defects());
        prop_assert!(found.defects().len() <= 5);
    }

    #[test]
    fn the_defect_of_the_first_level_is_the_definition(cells in tables(), theta in 0.3_f64..1.0) {
        let (fine, attributes) = counts(&cells);
        let found = Approximate::of(&fine, &attributes, Strength::Symmetric { theta }, 1);
        prop_assert!((found.defects().first().copied().unwrap_or(0.0) - defect(&fine, &found)).abs() < 1e-9);
    }
}

fn defect(fine: &Counts, found: &Approximate) -> f64 {
    let all: Vec<Node> = fine.numbers().collect();
    let blocks: BTreeSet<Node> = all.iter().map(|u| found.aggregate(*u)).collect();
    let infers = |i: Node, block: Node| {
        let others: Vec<Node> = all.iter().copied().filter(|b| *b != i && found.aggregate(*b) == block).collect();
        let sum: f64 = others.iter().map(|b| f64::from(fine.between(i, *b)) / f64::from(fine.of(i))).sum();
        if others.is_empty() { 0.0 } else { sum / others.len() as f64 }
    };
    let mut most = 0.0_f64;
    for (i, j) in all.iter().flat_map(|i| all.iter().map(move |j| (*i, *j))) {
        if i != j && found.aggregate(i) == found.aggregate(j) {
            blocks.iter().for_each(|block| most = most.max((infers(i, *block) - infers(j, *block)).abs()));
        }
    }
    most
}
