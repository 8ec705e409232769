//! The guard against its definition, the cases that a reader should see once, and what the treatment lets through.

use super::*;
use crate::anonymity::treatment::forced_pairs::{self, Above, GroupCells, Steps, withdraw_forced_pairs};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn forced_pair(groups: &[Fragments], subjects: &[u64], k: usize) -> bool {
    judge(groups, subjects, k, Records::OfLargest, 1) != Counting::Free
}

/// By group: the fragment of each row, if it has one.
type Table = Vec<Vec<Option<Vec<Option<u128>>>>>;

/// Of every other column: 0 and 1 lie below 10, 2 and 3 below 11, all of them below 12. The others have no labels.
fn above(column: usize, cell: u128) -> Vec<u128> {
    match cell {
        0 | 1 if column.is_multiple_of(2) => vec![10, 12],
        2 | 3 if column.is_multiple_of(2) => vec![11, 12],
        10 | 11 => vec![12],
        _ => Vec::new(),
    }
}

/// The groups as the verifier would hand them over; `by_row` adds one row a call, otherwise one run a call.
fn fragments(table: &Table, by_row: bool) -> Vec<Fragments> {
    let of_group = |rows: &Vec<Option<Vec<Option<u128>>>>| {
        let width = rows.iter().flatten().map(Vec::len).next().unwrap_or(0);
        let mut group = Fragments::new(width);
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

/// All non-empty sets of labels of different columns that some row of a group is below, with these rows: the definition,
/// letter by letter.
fn all_sets(rows: &[Option<Vec<Option<u128>>>]) -> BTreeMap<Vec<(usize, u128)>, BTreeSet<usize>> {
    let mut sets: BTreeMap<Vec<(usize, u128)>, BTreeSet<usize>> = BTreeMap::new();
    for (row, cells) in rows.iter().enumerate() {
        let mut of_row: Vec<Vec<(usize, u128)>> = vec![Vec::new()];
        for (column, cell) in cells.iter().flatten().enumerate() {
            let Some(cell) = *cell else { continue };
            // The cell as it is printed, and the labels that it is below, its own among them.
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

fn brute_force(table: &Table, subjects: &[u64], k: usize) -> bool {
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

fn agrees(table: &Table, subjects: &[u64], k: usize) -> Result<(), TestCaseError> {
    let expected = brute_force(table, subjects, k);
    prop_assert_eq!(forced_pair(&fragments(table, false), subjects, k), expected);
    prop_assert_eq!(forced_pair(&fragments(table, true), subjects, k), expected);
    Ok(())
}

/// Value 0 of a column is chosen `skew` times more often than each other one.
fn cell(skew: u32) -> impl Strategy<Value = Option<u128>> {
    prop_oneof![1 => Just(None), skew => Just(Some(0)), 2 => (1..4u128).prop_map(Some), 1 => (10..12u128).prop_map(Some)]
}

fn table(rows: usize) -> impl Strategy<Value = Table> {
    let group = move |(width, skews): (usize, Vec<u32>)| {
        let cells: Vec<_> = skews.into_iter().take(width).map(cell).collect();
        prop::collection::vec(prop::option::weighted(0.95, cells), rows)
    };
    prop::collection::vec((1..=4usize, prop::collection::vec(1..40u32, 4)).prop_flat_map(group), 2..=3)
}

fn batch() -> impl Strategy<Value = (Table, Vec<u64>)> {
    (1..=16usize, 1..20u64).prop_flat_map(|(rows, people)| (table(rows), prop::collection::vec(0..=people, rows)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn answers_as_the_definition_does((table, subjects) in batch(), k in 0..5usize) {
        agrees(&table, &subjects, k)?;
    }
}

/// The table as the treatment would have it: a fragment that says nothing is none.
fn treated(table: &Table, subjects: &[u64], k: usize, quasi: &[usize]) -> (Table, u64) {
    let number = |cell: Option<u128>| cell.map_or(0, |digest| digest as u32 + 1);
    let mut groups: Vec<GroupCells> = table
        .iter()
        .zip(quasi)
        .map(|(rows, &quasi)| {
            let width = rows.iter().flatten().map(Vec::len).next().unwrap_or(1);
            let cell = |row: &Option<Vec<_>>, column: usize| row.as_ref().map_or(0, |cells| number(cells[column]));
            let labels = |column: usize| -> Above {
                (0..12u128)
                    .map(|digest| (number(Some(digest)), above(column, digest).into_iter().map(|d| number(Some(d)))))
                    .map(|(cell, labels)| (cell, labels.collect()))
                    .collect()
            };
            GroupCells {
                attributes: (0..width).collect(),
                columns: (0..width).map(|column| rows.iter().map(|row| cell(row, column)).collect()).collect(),
                above: (0..width).map(labels).collect(),
                quasi: quasi.min(width),
                worth: (0..rows.len()).map(|row| [1.0, 0.5, 0.0][row % 3]).collect(),
            }
        })
        .collect();
    let (known, mut steps) = (forced_pairs::Records::OfLargest, Steps::default());
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

    /// A refusal here would stop the daemon over honest data.
    #[test]
    fn what_the_treatment_lets_through_is_not_refused(
        (table, subjects) in batch(),
        k in 1..5usize,
        quasi in prop::collection::vec(0..4usize, 3),
    ) {
        let (left, _) = treated(&table, &subjects, k, &quasi);
        prop_assert!(!brute_force(&left, &subjects, k));
        prop_assert!(!forced_pair(&fragments(&left, false), &subjects, k));
    }
}

/// The same for batches that are too large to be tried by brute force: skewed columns, and people with many rows.
#[test]
fn what_the_treatment_lets_through_of_larger_batches_is_not_refused() {
    let mut state = 11_u64;
    let mut dice = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let (mut kept, mut gone, mut refused) = (0, 0, 0);
    for _ in 0..150 {
        let (rows, people) = (60 + dice(300), 10 + dice(300));
        let table: Table = (0..2 + dice(2))
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
        refused += u64::from(forced_pair(&fragments(&table, false), &subjects, 4));
        let (left, withdrawn) = treated(&table, &subjects, 4, &[1, 9, 2]);
        assert!(!forced_pair(&fragments(&left, false), &subjects, 4));
        gone += withdrawn;
        kept += left.iter().flatten().flatten().count();
    }
    assert!(refused > 50, "{refused} of 150 would have been refused untreated");
    assert!(kept > 4 * usize::try_from(gone).expect("small"), "{kept} fragments left, {gone} withdrawn");
}

/// Rows that all carry one fragment a group, and every row its own subject.
fn alone(columns: &[&[Option<u128>]]) -> (Table, Vec<u64>) {
    let table = columns.iter().map(|column| column.iter().map(|cell| Some(vec![*cell])).collect()).collect();
    (table, (1..).take(columns[0].len()).collect())
}

#[test]
fn a_constant_column_forces_every_rare_cell() {
    let (high, young, old) = (Some(1), Some(2), Some(3));
    let (table, subjects) = alone(&[&[high; 5], &[young, young, young, young, old]]);
    assert!(forced_pair(&fragments(&table, false), &subjects, 2));
    let (recoded, subjects) = alone(&[&[high; 5], &[young, young, young, young, None]]);
    assert!(!forced_pair(&fragments(&recoded, false), &subjects, 4));
    assert!(forced_pair(&fragments(&recoded, false), &subjects, 5));
}

#[test]
fn two_classes_of_k_force_a_pair_of_one_person() {
    // docs/methods.md §10.3: pulse "high" of four people and "low" of two; age "70+" of one with a high pulse and of both others.
    let (high, low, young, old) = (Some(21), Some(22), Some(23), Some(25));
    let (table, subjects) = alone(&[&[high, high, high, high, low, low], &[young, young, young, old, old, old]]);
    assert!(forced_pair(&fragments(&table, false), &subjects, 2));
    let (withdrawn, _) = alone(&[&[high, high, high, high, low, low], &[young, young, young, None, None, None]]);
    assert!(!forced_pair(&fragments(&withdrawn, false), &subjects, 2));
}

/// Where groups leave with different people by design, no reader has a smaller N than the people of both groups.
#[test]
fn groups_of_different_people_are_judged_by_the_people_of_both() {
    let only = |rows: std::ops::Range<usize>, cell: u128| -> Vec<Option<Vec<Option<u128>>>> {
        (0..10).map(|row| rows.contains(&row).then(|| vec![Some(cell)])).collect()
    };
    let subjects: Vec<u64> = (1..=10).collect();
    let judged = |table: &Table, k| judge(&fragments(table, false), &subjects, k, Records::OfBoth, 1);
    assert_eq!(judged(&vec![only(0..4, 21), only(4..8, 23)], 2), Counting::Free);
    assert_eq!(judged(&vec![only(0..6, 21), only(4..10, 23)], 2), Counting::Free);
    assert_eq!(judged(&vec![only(0..6, 21), only(4..10, 23)], 3), Counting::Forced);
}

#[test]
fn only_people_count() {
    let (table, _) = alone(&[&[Some(1); 4], &[Some(2); 4]]);
    let groups = fragments(&table, false);
    assert!(!forced_pair(&groups, &[1, 2, 3, 3], 3));
    assert!(forced_pair(&groups, &[1, 2, 2, 2], 3));
    assert!(forced_pair(&groups, &[1, 2, 0, 0], 3));
}

#[test]
fn one_record_less_than_forced_is_free() {
    let (a, b) = (Some(1), Some(2));
    // 3 + 2 of 5 rows: the two may be apart, whoever has them in truth.
    let (free, subjects) = alone(&[&[a, a, a, b, b], &[a, b, b, a, b]]);
    assert!(!forced_pair(&fragments(&free, false), &subjects[..], 1));
    // 4 + 2 of 5: one record at least has both, and one has.
    let (forced, _) = alone(&[&[a, a, a, a, b], &[a, b, b, b, a]]);
    assert!(!forced_pair(&fragments(&forced, false), &subjects, 1));
    assert!(forced_pair(&fragments(&forced, false), &subjects, 2));
}

#[test]
fn sets_between_cell_and_tuple_are_judged() {
    // Every single cell and every full tuple of B is harmless beside the constant; its first two cells (5, 6) are not.
    let c = |values: [u128; 3]| Some(values.iter().map(|v| (*v != 0).then_some(*v)).collect::<Vec<_>>());
    let b: Vec<_> = vec![c([5, 6, 0]), c([5, 6, 0]), c([5, 0, 0]), c([5, 0, 0]), c([0, 6, 0]), c([0, 6, 0])];
    let table = vec![vec![Some(vec![Some(1)]); 6], b];
    let subjects = [1, 2, 3, 4, 5, 6];
    assert!(!forced_pair(&fragments(&table, false), &subjects, 2));
    assert!(forced_pair(&fragments(&table, false), &subjects, 3));
}

#[test]
fn labels_force_what_no_cell_does() {
    // Three of four rows are below 12 on both sides, by different cells: at least two are below both, and two are.
    let (table, subjects) = alone(&[&[Some(0), Some(12), Some(2), Some(7)], &[Some(7), Some(10), Some(11), Some(12)]]);
    assert!(!forced_pair(&fragments(&table, false), &subjects, 2));
    assert!(forced_pair(&fragments(&table, false), &subjects, 3));
}

#[test]
fn rows_of_other_groups_hide_nothing() {
    // Four rows leave in the first two groups, ten in the third: among the four, counting tells who the one with 3 is.
    let column = |cells: &[u128]| -> Vec<Option<Vec<Option<u128>>>> {
        (0..10).map(|row| cells.get(row).map(|cell| vec![Some(*cell)])).collect()
    };
    let table = vec![column(&[7, 7, 7, 7]), column(&[3, 7, 7, 7]), column(&[20, 21, 22, 23, 24, 25, 26, 27, 28, 29])];
    let subjects: Vec<u64> = (1..11).collect();
    assert!(forced_pair(&fragments(&table, false), &subjects, 2));
    assert!(!forced_pair(&fragments(&table, false), &subjects, 1));
    assert!(!forced_pair(&fragments(&table[1..].to_vec(), false), &subjects, 2), "ten different cells force nothing");
}

#[test]
fn what_contradicts_itself_is_refused() {
    let sound = || Fragments::new(1);
    let mut wide = sound();
    wide.add(&[None, None], &[0], |_| []);
    assert!(forced_pair(&[sound(), wide], &[1], 1));
    let mut twice = sound();
    twice.add(&[None], &[0], |_| []);
    twice.add(&[Some(1)], &[0], |_| []);
    assert!(forced_pair(&[sound(), twice], &[1], 1));
    let mut beyond = sound();
    beyond.add(&[None], &[1], |_| []);
    assert!(forced_pair(&[sound(), beyond], &[1], 1));
    assert!(!forced_pair(&[sound(), sound()], &[1], 1));
}

/// 960 rows of two groups with twelve columns each, nearly all of their cells the same, eight rows a tuple of either group, in
/// different eights: a batch that costs the searches more than any other that is known.
fn dear() -> (Table, Vec<u64>) {
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
fn what_takes_too_long_is_not_judged() {
    let (table, subjects) = dear();
    let told = judge_within(&fragments(&table, false), &subjects, 5, Records::OfLargest, 1 << 26);
    assert!(matches!(told, Counting::Unjudged([0, 1] | [1, 0])), "{told:?}");
}

/// However the steps end, a batch without a violation is never called one with.
#[test]
fn fewer_steps_never_change_a_verdict() {
    let (free, subjects) = alone(&[&[Some(0), Some(12), Some(2), Some(7)], &[Some(7), Some(10), Some(11), Some(12)]]);
    let groups = fragments(&free, false);
    let with = |k: usize| -> Vec<Counting> {
        let steps = (0..400).chain([1 << 20]);
        steps.map(|steps| judge_within(&groups, &subjects, k, Records::OfLargest, steps)).collect()
    };
    let told = with(2);
    assert!(told.iter().all(|told| *told != Counting::Forced) && told.last() == Some(&Counting::Free), "{told:?}");
    let told = with(3);
    assert!(told.iter().all(|told| *told != Counting::Free) && told.last() == Some(&Counting::Forced), "{told:?}");
    assert!(matches!(told[0], Counting::Unjudged(_)), "{told:?}");
}
