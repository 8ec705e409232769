//! Compares the coarse window with the fine model.

use super::{CoarseAdjacency, CoarseError, MergePolicy};
use crate::adjacency::{Adjacency, AdjacencyLimits, ValueNode};
use crate::multigrid::brute_force::{ReferenceCells, tables};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::Code;

/// Whole batches, first in, first out.
#[derive(Clone, Debug)]
enum CoarseWindowEvent {
    Add(Vec<Vec<Code>>),
    Expire,
    Coarsen(MergePolicy),
}

fn events() -> impl Strategy<Value = (usize, Vec<CoarseWindowEvent>)> {
    let what = prop_oneof![4 => Just(0), 2 => Just(1), 2 => Just(2), 1 => Just(3)];
    (tables(), proptest::collection::vec((what, 1_usize..5), 1..16)).prop_map(|(cells, what)| {
        let width = cells.first().map_or(2, Vec::len);
        let small = |codes: &Vec<u32>| codes.iter().map(|code| code % 16).collect::<Vec<Code>>();
        let mut rows = cells.iter().map(small).cycle();
        let events = what.into_iter().map(|(what, count)| match what {
            0 => CoarseWindowEvent::Add(rows.by_ref().take(count).collect()),
            1 => CoarseWindowEvent::Expire,
            2 => CoarseWindowEvent::Coarsen(MergePolicy::Determined),
            _ => CoarseWindowEvent::Coarsen(MergePolicy::Identical),
        });
        (width, events.collect())
    })
}

fn columns(rows: &[Vec<Code>], width: usize) -> Vec<Vec<Code>> {
    (0..width).map(|c| rows.iter().map(|row| row[c]).collect()).collect()
}

fn roots(rows: &ReferenceCells, width: usize) -> usize {
    let determines = |a: usize, b: usize| rows.iter().all(|x| rows.iter().all(|y| x[a] != y[a] || x[b] == y[b]));
    let is_root = |b: &usize| (0..width).all(|a| !determines(a, *b) || determines(*b, a) && a >= *b);
    (0..width).filter(is_root).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn coarse_window_equals_fine_model((width, events) in events()) {
        let attributes: Vec<usize> = (0..width).collect();
        let mut coarse = CoarseAdjacency::new(&attributes, AdjacencyLimits::default()).expect("attributes");
        let mut fine = Adjacency::new(&attributes, AdjacencyLimits::default()).expect("attributes");
        let mut batches: Vec<Vec<Vec<Code>>> = Vec::new();
        for event in events {
            match event {
                CoarseWindowEvent::Add(rows) => {
                    let batch = columns(&rows, width);
                    let before: BTreeSet<usize> = coarse.derived().map(|(attribute, _)| attribute).collect();
                    let broken = coarse.add(&batch).expect("a batch");
                    let after: BTreeSet<usize> = coarse.derived().map(|(attribute, _)| attribute).collect();
                    prop_assert_eq!(before.difference(&after).copied().collect::<Vec<_>>(), broken);
                    fine.add(&batch).expect("a batch");
                    batches.push(rows);
                }
                CoarseWindowEvent::Expire if !batches.is_empty() => {
                    let batch = columns(&batches.remove(0), width);
                    coarse.subtract(&batch).expect("counted");
                    fine.subtract(&batch).expect("counted");
                }
                CoarseWindowEvent::Coarsen(merging) => {
                    let window = batches.concat();
                    let before: Vec<(usize, usize)> = coarse.derived().collect();
                    coarse.coarsen(&columns(&window, width), merging).expect("a window");
                    if merging == MergePolicy::Identical {
                        let alike = |a: usize, b: usize| {
                            let splits = |x: &Vec<Code>, y: &Vec<Code>| (x[a] == y[a]) == (x[b] == y[b]);
                            window.iter().all(|x| window.iter().all(|y| splits(x, y)))
                        };
                        let is_known = |attribute| before.iter().any(|(derived, _)| *derived == attribute);
                        for (attribute, host) in coarse.derived().filter(|(attribute, _)| !is_known(*attribute)) {
                            prop_assert!(alike(attribute, host), "{attribute} and {host}");
                        }
                        for (n, a) in coarse.counted().attributes().iter().enumerate() {
                            let rest = &coarse.counted().attributes()[..n];
                            prop_assert!(window.is_empty() || rest.iter().all(|b| !alike(*a, *b)));
                        }
                    } else if !window.is_empty() {
                        prop_assert_eq!(coarse.counted().attributes().len(), roots(&window, width));
                    }
                }
                CoarseWindowEvent::Expire => {}
            }
            prop_assert_eq!(&coarse.to_fine_adjacency().expect("whole"), &fine);
            prop_assert!(coarse.counted().edge_count() <= fine.edge_count());
            let values: Vec<ValueNode> =
                attributes.iter().flat_map(|a| (0..16).map(|code| ValueNode { attribute: *a, code })).collect();
            for u in &values {
                prop_assert_eq!(coarse.n(*u), fine.n(*u));
                for v in values.iter().filter(|_| fine.n(*u) > 0) {
                    prop_assert_eq!(coarse.n_both(*u, *v), fine.n_both(*u, *v), "{:?} {:?}", u, v);
                }
            }
        }
    }

    #[test]
    fn remapped_window_equals_window_of_new_codes(cells in tables(), keys in proptest::collection::vec(any::<u32>(), 16)) {
        let width = cells.first().map_or(2, Vec::len);
        let rows: ReferenceCells = cells.iter().map(|codes| codes.iter().map(|code| code % 16).collect()).collect();
        let attributes: Vec<usize> = (0..width).collect();
        let mut coarse = CoarseAdjacency::new(&attributes, AdjacencyLimits::default()).expect("attributes");
        coarse.add(&columns(&rows, width)).expect("a batch");
        coarse.coarsen(&columns(&rows, width), MergePolicy::Determined).expect("a window");
        let mut order: Vec<Code> = (0..16).collect();
        order.sort_by_key(|code| (keys[*code as usize], *code));
        let map: BTreeMap<Code, Code> = order.into_iter().zip(0..).collect();
        let renumbered: ReferenceCells = rows.iter().map(|codes| codes.iter().map(|code| map[code]).collect()).collect();
        for attribute in &attributes {
            coarse.remap(*attribute, &map.values().copied().collect::<Vec<_>>()).expect("all are kept");
        }
        let mut fine = Adjacency::new(&attributes, AdjacencyLimits::default()).expect("attributes");
        fine.add(&columns(&renumbered, width)).expect("a batch");
        prop_assert_eq!(coarse.to_fine_adjacency().expect("whole"), fine.clone());
        let derived = coarse.derived().count();
        coarse.add(&columns(&renumbered, width)).expect("the same again");
        fine.add(&columns(&renumbered, width)).expect("a batch");
        prop_assert_eq!(coarse.derived().count(), derived);
        prop_assert_eq!(coarse.to_fine_adjacency().expect("whole"), fine);
    }
}

#[test]
fn contradicting_record_restores_derived_attribute() {
    // ZIP, city, sign.
    let window: [Vec<Code>; 3] = [vec![3, 4, 5, 3], vec![7, 7, 8, 7], vec![3, 4, 3, 4]];
    let mut coarse = CoarseAdjacency::new(&[0, 1, 2], AdjacencyLimits::default()).expect("attributes");
    coarse.add(&window).expect("a batch");
    assert_eq!(coarse.coarsen(&window, MergePolicy::Determined), Ok(1));
    assert_eq!((coarse.counted().attributes(), coarse.derived().collect::<Vec<_>>()), (&[0, 2][..], vec![(1, 0)]));
    let [city, sign] = [ValueNode { attribute: 1, code: 7 }, ValueNode { attribute: 2, code: 4 }];
    assert_eq!((coarse.n(city), coarse.n_both(city, sign)), (3, Some(2)));
    // A new ZIP may be in any city; a known one may not move.
    assert_eq!(coarse.add(&[vec![6], vec![9], vec![3]]), Ok(vec![]));
    assert_eq!(coarse.add(&[vec![5, 4], vec![8, 8], vec![3, 3]]), Ok(vec![1]));
    assert_eq!(coarse.counted().attributes(), [0, 1, 2]);
    assert_eq!(coarse.n_both(ValueNode { attribute: 0, code: 4 }, ValueNode { attribute: 1, code: 8 }), Some(1));
    assert_eq!((coarse.n(city), coarse.n_both(city, sign)), (3, Some(2)));
}

#[test]
fn invalid_batch_leaves_coarse_window_unchanged() {
    let mut coarse = CoarseAdjacency::new(&[0, 1], AdjacencyLimits::default()).expect("attributes");
    let window: [Vec<Code>; 2] = [vec![3, 4], vec![5, 6]];
    coarse.add(&window).expect("a batch");
    coarse.coarsen(&window, MergePolicy::Determined).expect("a window");
    assert!(coarse.add(&[vec![3]]).is_err());
    assert!(coarse.add(&[vec![3], vec![]]).is_err());
    assert!(coarse.add(&[vec![3], vec![Code::MAX]]).is_err());
    assert_eq!((coarse.counted().records(), coarse.derived().count()), (2, 1));
    let shorter = coarse.coarsen(&[vec![3], vec![5]], MergePolicy::Determined);
    assert_eq!(shorter, Err(CoarseError::Window { rows: 1, counted: 2 }));
    assert!(coarse.subtract(&[vec![3], vec![6]]).is_ok(), "a value of its own is not looked at beside another");
    assert!(coarse.subtract(&[vec![4], vec![6]]).is_err(), "no record has a 6 any more");
}
