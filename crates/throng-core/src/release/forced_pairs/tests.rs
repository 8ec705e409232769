use super::*;
use crate::treatment::forced_pairs::{self, GroupCells, LabelsAbove, StepBudget, withdraw_forced_pairs};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn counting_forces_pair(groups: &[GroupFragments], subjects: &[u64], k: usize) -> bool {
    check_forced_pairs(groups, subjects, k, RecordCountBound::OfLargest, 1) != CountingResult::Free
}

type FragmentTable = Vec<Vec<Option<Vec<Option<u128>>>>>;

/// 0 and 1 are below 10, 2 and 3 below 11, in even columns; 10 and 11 below 12.
fn above(column: usize, cell: u128) -> Vec<u128> {
    match cell {
        0 | 1 if column.is_multiple_of(2) => vec![10, 12],
        2 | 3 if column.is_multiple_of(2) => vec![11, 12],
        10 | 11 => vec![12],
        _ => Vec::new(),
    }
}

fn fragments(table: &FragmentTable, by_row: bool) -> Vec<GroupFragments> {
    let of_group = |rows: &Vec<Option<Vec<Option<u128>>>>| {
        let width = rows.iter().flatten().map(Vec::len).next().unwrap_or(0);
        let mut group = GroupFragments::new(width);
        let mut runs: BTreeMap<&Vec<Option<u128>>, Vec<u32>> = BTreeMap::new();
        for (row, cells) in (0..).zip(rows) {
            let Some(cells) = cells else { continue };
            if by_row {
                group.add(cells, &[row], |column| above(column, cells[column].unwrap_or_default()));
            } else {
                runs.entry(cells).or_default().push(row);
            }
        }
        for (cells, rows) in runs {
            group.add(cells, &rows, |column| above(column, cells[column].unwrap_or_default()));
        }
        group
    };
    table.iter().map(of_group).collect()
}

fn all_sets(rows: &[Option<Vec<Option<u128>>>]) -> BTreeMap<Vec<(usize, u128)>, BTreeSet<usize>> {
    let mut sets: BTreeMap<Vec<(usize, u128)>, BTreeSet<usize>> = BTreeMap::new();
    for (row, cells) in rows.iter().enumerate() {
        let mut of_row: Vec<Vec<(usize, u128)>> = vec![Vec::new()];
        for (column, cell) in cells.iter().flatten().enumerate() {
            let Some(cell) = *cell else { continue };
            let labels: Vec<u128> = [cell + 1_000, cell].into_iter().chain(above(column, cell)).collect();
            let with = |set: &Vec<_>, label: &u128| [set.as_slice(), &[(column, *label)]].concat();
            let more: Vec<_> = of_row.iter().flat_map(|set| labels.iter().map(|label| with(set, label))).collect();
            of_row.extend(more);
        }
        for set in of_row.into_iter().filter(|set| !set.is_empty()) {
            sets.entry(set).or_default().insert(row);
        }
    }
    sets
}

fn brute_force(table: &FragmentTable, subjects: &[u64], k: usize) -> bool {
    let most = table.iter().map(|rows| rows.iter().flatten().count()).max().unwrap_or(0);
    let sets: Vec<_> = table.iter().map(|rows| all_sets(rows)).collect();
    let pairs = (0..sets.len()).flat_map(|a| (a + 1..sets.len()).map(move |b| (a, b)));
    pairs.into_iter().any(|(a, b)| {
        let in_one = (0..subjects.len()).filter(|&row| table[a][row].is_some() || table[b][row].is_some()).count();
        let violated = |x: &BTreeSet<usize>, y: &BTreeSet<usize>| {
            let joint: BTreeSet<u64> = x.intersection(y).map(|&row| subjects[row]).filter(|s| *s != 0).collect();
            x.len() + y.len() > most.min(in_one) && joint.len() < k
        };
        sets[a].values().any(|x| sets[b].values().any(|y| violated(x, y)))
    })
}

fn agrees(table: &FragmentTable, subjects: &[u64], k: usize) -> Result<(), TestCaseError> {
    let expected = brute_force(table, subjects, k);
    prop_assert_eq!(counting_forces_pair(&fragments(table, false), subjects, k), expected);
    prop_assert_eq!(counting_forces_pair(&fragments(table, true), subjects, k), expected);
    Ok(())
}

fn cell(skew: u32) -> impl Strategy<Value = Option<u128>> {
    prop_oneof![1 => Just(None), skew => Just(Some(0)), 2 => (1..4u128).prop_map(Some), 1 => (10..12u128).prop_map(Some)]
}

fn table(rows: usize) -> impl Strategy<Value = FragmentTable> {
    let group = move |(width, skews): (usize, Vec<u32>)| {
        let cells: Vec<_> = skews.into_iter().take(width).map(cell).collect();
        prop::collection::vec(prop::option::weighted(0.95, cells), rows)
    };
    prop::collection::vec((1..=4usize, prop::collection::vec(1..40u32, 4)).prop_flat_map(group), 2..=3)
}

fn batch() -> impl Strategy<Value = (FragmentTable, Vec<u64>)> {
    (1..=16usize, 1..20u64).prop_flat_map(|(rows, people)| (table(rows), prop::collection::vec(0..=people, rows)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn forced_pairs_match_brute_force((table, subjects) in batch(), k in 0..5usize) {
        agrees(&table, &subjects, k)?;
    }
}

fn treated(table: &FragmentTable, subjects: &[u64], k: usize, quasi: &[usize]) -> (FragmentTable, u64) {
    let number = |cell: Option<u128>| cell.map_or(0, |digest| digest as u32 + 1);
    let mut groups: Vec<GroupCells> = table
        .iter()
        .zip(quasi)
        .map(|(rows, &quasi)| {
            let width = rows.iter().flatten().map(Vec::len).next().unwrap_or(1);
            let cell = |row: &Option<Vec<_>>, column: usize| row.as_ref().map_or(0, |cells| number(cells[column]));
            let labels = |column: usize| -> LabelsAbove {
                (0..12u128)
                    .map(|digest| (number(Some(digest)), above(column, digest).into_iter().map(|d| number(Some(d)))))
                    .map(|(cell, labels)| (cell, labels.collect()))
                    .collect()
            };
            GroupCells {
                attributes: (0..width).collect(),
                columns: (0..width).map(|column| rows.iter().map(|row| cell(row, column)).collect()).collect(),
                labels_by_cell: (0..width).map(labels).collect(),
                quasi: quasi.min(width),
                worth: (0..rows.len()).map(|row| [1.0, 0.5, 0.0][row % 3]).collect(),
            }
        })
        .collect();
    let (known, mut steps) = (forced_pairs::GuardRecordBound::LargestGroup, StepBudget::default());
    let withdrawn = withdraw_forced_pairs(&mut groups, subjects, k, known, &mut steps);
    let fragment = |group: &GroupCells, row: usize| {
        let cells: Vec<Option<u128>> =
            group.columns.iter().map(|column| u128::from(column[row]).checked_sub(1)).collect();
        cells.iter().any(Option::is_some).then_some(cells)
    };
    let left = groups.iter().map(|group| (0..subjects.len()).map(|row| fragment(group, row)).collect()).collect();
    (left, withdrawn)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn treated_batch_is_accepted(
        (table, subjects) in batch(),
        k in 1..5usize,
        quasi in prop::collection::vec(0..4usize, 3),
    ) {
        let (left, _) = treated(&table, &subjects, k, &quasi);
        prop_assert!(!brute_force(&left, &subjects, k));
        prop_assert!(!counting_forces_pair(&fragments(&left, false), &subjects, k));
    }
}

#[test]
fn large_treated_batch_is_not_refused() {
    let mut state = 11_u64;
    let mut dice = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let (mut kept, mut gone, mut refused) = (0, 0, 0);
    for _ in 0..150 {
        let (rows, people) = (60 + dice(300), 10 + dice(300));
        let table: FragmentTable = (0..2 + dice(2))
            .map(|_| {
                let skews: Vec<u64> = (0..=dice(5)).map(|_| 2 + dice(60) * dice(4)).collect();
                let mut row = || -> Vec<Option<u128>> {
                    let mut cell = |skew: u64| match dice(skew + 3) {
                        0 => Some(u128::from(1 + dice(3))),
                        1 => Some(u128::from(10 + dice(2))),
                        2 => None,
                        _ => Some(0),
                    };
                    skews.iter().map(|&skew| cell(skew)).collect()
                };
                (0..rows).map(|_| Some(row()).filter(|cells| cells.iter().any(Option::is_some))).collect()
            })
            .collect();
        let subjects: Vec<u64> = (0..rows).map(|_| 1 + dice(people)).collect();
        refused += u64::from(counting_forces_pair(&fragments(&table, false), &subjects, 4));
        let (left, withdrawn) = treated(&table, &subjects, 4, &[1, 9, 2]);
        assert!(!counting_forces_pair(&fragments(&left, false), &subjects, 4));
        gone += withdrawn;
        kept += left.iter().flatten().flatten().count();
    }
    assert!(refused > 50, "{refused} of 150 would have been refused untreated");
    assert!(kept > 4 * usize::try_from(gone).expect("small"), "{kept} fragments left, {gone} withdrawn");
}

fn single_column_groups(columns: &[&[Option<u128>]]) -> (FragmentTable, Vec<u64>) {
    let table = columns.iter().map(|column| column.iter().map(|cell| Some(vec![*cell])).collect()).collect();
    (table, (1..).take(columns[0].len()).collect())
}

#[test]
fn constant_column_forces_rare_cell() {
    let (high, young, old) = (Some(1), Some(2), Some(3));
    let (table, subjects) = single_column_groups(&[&[high; 5], &[young, young, young, young, old]]);
    assert!(counting_forces_pair(&fragments(&table, false), &subjects, 2));
    let (recoded, subjects) = single_column_groups(&[&[high; 5], &[young, young, young, young, None]]);
    assert!(!counting_forces_pair(&fragments(&recoded, false), &subjects, 4));
    assert!(counting_forces_pair(&fragments(&recoded, false), &subjects, 5));
}

#[test]
fn classes_of_size_k_force_pair_of_one_subject() {
    // docs/internals/methods.md §10.3.
    let (high, low, young, old) = (Some(21), Some(22), Some(23), Some(25));
    let (table, subjects) =
        single_column_groups(&[&[high, high, high, high, low, low], &[young, young, young, old, old, old]]);
    assert!(counting_forces_pair(&fragments(&table, false), &subjects, 2));
    let (withdrawn, _) =
        single_column_groups(&[&[high, high, high, high, low, low], &[young, young, young, None, None, None]]);
    assert!(!counting_forces_pair(&fragments(&withdrawn, false), &subjects, 2));
}

#[test]
fn groups_of_different_subjects_are_judged_by_rows_of_both() {
    let only = |rows: std::ops::Range<usize>, cell: u128| -> Vec<Option<Vec<Option<u128>>>> {
        (0..10).map(|row| rows.contains(&row).then(|| vec![Some(cell)])).collect()
    };
    let subjects: Vec<u64> = (1..=10).collect();
    let judged = |table: &FragmentTable, k| {
        check_forced_pairs(&fragments(table, false), &subjects, k, RecordCountBound::OfBoth, 1)
    };
    assert_eq!(judged(&vec![only(0..4, 21), only(4..8, 23)], 2), CountingResult::Free);
    assert_eq!(judged(&vec![only(0..6, 21), only(4..10, 23)], 2), CountingResult::Free);
    assert_eq!(judged(&vec![only(0..6, 21), only(4..10, 23)], 3), CountingResult::Forced);
}

#[test]
fn rows_without_subject_are_not_counted() {
    let (table, _) = single_column_groups(&[&[Some(1); 4], &[Some(2); 4]]);
    let groups = fragments(&table, false);
    assert!(!counting_forces_pair(&groups, &[1, 2, 3, 3], 3));
    assert!(counting_forces_pair(&groups, &[1, 2, 2, 2], 3));
    assert!(counting_forces_pair(&groups, &[1, 2, 0, 0], 3));
}

#[test]
fn threshold_minus_one_record_is_free() {
    let (a, b) = (Some(1), Some(2));
    // The two of 3 + 2 may be disjoint.
    let (free, subjects) = single_column_groups(&[&[a, a, a, b, b], &[a, b, b, a, b]]);
    assert!(!counting_forces_pair(&fragments(&free, false), &subjects[..], 1));
    let (forced, _) = single_column_groups(&[&[a, a, a, a, b], &[a, b, b, b, a]]);
    assert!(!counting_forces_pair(&fragments(&forced, false), &subjects, 1));
    assert!(counting_forces_pair(&fragments(&forced, false), &subjects, 2));
}

#[test]
fn partial_tuple_is_judged() {
    // Only (5, 6) of B is harmful.
    let c = |values: [u128; 3]| Some(values.iter().map(|v| (*v != 0).then_some(*v)).collect::<Vec<_>>());
    let b: Vec<_> = vec![c([5, 6, 0]), c([5, 6, 0]), c([5, 0, 0]), c([5, 0, 0]), c([0, 6, 0]), c([0, 6, 0])];
    let table = vec![vec![Some(vec![Some(1)]); 6], b];
    let subjects = [1, 2, 3, 4, 5, 6];
    assert!(!counting_forces_pair(&fragments(&table, false), &subjects, 2));
    assert!(counting_forces_pair(&fragments(&table, false), &subjects, 3));
}

#[test]
fn label_forces_pair_without_cell() {
    let (table, subjects) =
        single_column_groups(&[&[Some(0), Some(12), Some(2), Some(7)], &[Some(7), Some(10), Some(11), Some(12)]]);
    assert!(!counting_forces_pair(&fragments(&table, false), &subjects, 2));
    assert!(counting_forces_pair(&fragments(&table, false), &subjects, 3));
}

#[test]
fn rows_of_third_group_do_not_hide_forced_pair() {
    // Among four rows, counting identifies the row with 3.
    let column = |cells: &[u128]| -> Vec<Option<Vec<Option<u128>>>> {
        (0..10).map(|row| cells.get(row).map(|cell| vec![Some(*cell)])).collect()
    };
    let table = vec![column(&[7, 7, 7, 7]), column(&[3, 7, 7, 7]), column(&[20, 21, 22, 23, 24, 25, 26, 27, 28, 29])];
    let subjects: Vec<u64> = (1..11).collect();
    assert!(counting_forces_pair(&fragments(&table, false), &subjects, 2));
    assert!(!counting_forces_pair(&fragments(&table, false), &subjects, 1));
    assert!(
        !counting_forces_pair(&fragments(&table[1..].to_vec(), false), &subjects, 2),
        "ten different cells force nothing"
    );
}

#[test]
fn contradictory_fragments_are_refused() {
    let sound = || GroupFragments::new(1);
    let mut wide = sound();
    wide.add(&[None, None], &[0], |_| []);
    assert!(counting_forces_pair(&[sound(), wide], &[1], 1));
    let mut twice = sound();
    twice.add(&[None], &[0], |_| []);
    twice.add(&[Some(1)], &[0], |_| []);
    assert!(counting_forces_pair(&[sound(), twice], &[1], 1));
    let mut beyond = sound();
    beyond.add(&[None], &[1], |_| []);
    assert!(counting_forces_pair(&[sound(), beyond], &[1], 1));
    assert!(!counting_forces_pair(&[sound(), sound()], &[1], 1));
}

fn expensive_batch() -> (FragmentTable, Vec<u64>) {
    let mut state = 3_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut tuples = || -> Vec<Vec<Option<u128>>> {
        let mut cell = || if next() % 20 > 0 { 1 } else { next() as u128 % 16 };
        (0..120).map(|_| (0..12).map(|_| Some(cell())).collect()).collect()
    };
    let (one, other) = (tuples(), tuples());
    let first = (0..960).map(|row| Some(one[row / 8].clone())).collect();
    let second = (0..960).map(|row| Some(other[row * 7_919 % 120].clone())).collect();
    (vec![first, second], (1..=960).collect())
}

#[test]
fn exhausted_steps_leave_batch_unjudged() {
    let (table, subjects) = expensive_batch();
    let told = check_within_steps(&fragments(&table, false), &subjects, 5, RecordCountBound::OfLargest, 1 << 26);
    assert!(matches!(told, CountingResult::StepsExhausted([0, 1] | [1, 0])), "{told:?}");
}

#[test]
fn step_limit_never_changes_verdict() {
    let (free, subjects) =
        single_column_groups(&[&[Some(0), Some(12), Some(2), Some(7)], &[Some(7), Some(10), Some(11), Some(12)]]);
    let groups = fragments(&free, false);
    let with = |k: usize| -> Vec<CountingResult> {
        let steps = (0..400).chain([1 << 20]);
        steps.map(|steps| check_within_steps(&groups, &subjects, k, RecordCountBound::OfLargest, steps)).collect()
    };
    let told = with(2);
    assert!(
        told.iter().all(|told| *told != CountingResult::Forced) && told.last() == Some(&CountingResult::Free),
        "{told:?}"
    );
    let told = with(3);
    assert!(
        told.iter().all(|told| *told != CountingResult::Free) && told.last() == Some(&CountingResult::Forced),
        "{told:?}"
    );
    assert!(matches!(told[0], CountingResult::StepsExhausted(_)), "{told:?}");
}
