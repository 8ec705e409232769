//! The guard against its definition, and the cases that a reader should see once.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// By group: the fragment of each row, if it has one.
type Table = Vec<Vec<Option<Vec<Option<u128>>>>>;

/// The groups as the verifier would hand them over; `by_row` adds one row a call, otherwise one run a call.
fn fragments(table: &Table, by_row: bool) -> Vec<Fragments> {
    let of_group = |rows: &Vec<Option<Vec<Option<u128>>>>| {
        let width = rows.iter().flatten().map(Vec::len).next().unwrap_or(0);
        let mut group = Fragments::new(width);
        let mut runs: BTreeMap<&Vec<Option<u128>>, Vec<u32>> = BTreeMap::new();
        for (row, cells) in (0..).zip(rows) {
            let Some(cells) = cells else { continue };
            if by_row {
                group.add(cells, &[row]);
            } else {
                runs.entry(cells).or_default().push(row);
            }
        }
        for (cells, rows) in runs {
            group.add(cells, &rows);
        }
        group
    };
    table.iter().map(of_group).collect()
}

/// All non-empty sets of cells that occur together in one group, with their rows: the definition, letter by letter.
fn all_sets(rows: &[Option<Vec<Option<u128>>>]) -> BTreeMap<Vec<(usize, u128)>, BTreeSet<usize>> {
    let mut sets: BTreeMap<Vec<(usize, u128)>, BTreeSet<usize>> = BTreeMap::new();
    for (row, cells) in rows.iter().enumerate() {
        let Some(cells) = cells else { continue };
        let said: Vec<(usize, u128)> = cells.iter().enumerate().filter_map(|(c, v)| v.map(|v| (c, v))).collect();
        for choice in 1..1u32 << said.len() {
            let set = said.iter().enumerate().filter(|(i, _)| choice >> i & 1 == 1).map(|(_, cell)| *cell).collect();
            sets.entry(set).or_default().insert(row);
        }
    }
    sets
}

fn brute_force(table: &Table, subjects: &[u64], k: usize) -> bool {
    let most = table.iter().map(|rows| rows.iter().flatten().count()).max().unwrap_or(0);
    let sets: Vec<_> = table.iter().map(|rows| all_sets(rows)).collect();
    let violated = |x: &BTreeSet<usize>, y: &BTreeSet<usize>| {
        let joint: BTreeSet<u64> = x.intersection(y).map(|&row| subjects[row]).filter(|s| *s != 0).collect();
        x.len() + y.len() > most && joint.len() < k
    };
    (0..sets.len())
        .any(|a| (a + 1..sets.len()).any(|b| sets[a].values().any(|x| sets[b].values().any(|y| violated(x, y)))))
}

fn agrees(table: &Table, subjects: &[u64], k: usize) -> Result<(), TestCaseError> {
    let expected = brute_force(table, subjects, k);
    prop_assert_eq!(forced_pair(&fragments(table, false), subjects, k), expected);
    prop_assert_eq!(forced_pair(&fragments(table, true), subjects, k), expected);
    Ok(())
}

/// Value 0 of a column is chosen `skew` times more often than each other one.
fn cell(skew: u32) -> impl Strategy<Value = Option<u128>> {
    prop_oneof![1 => Just(None), skew => Just(Some(0)), 2 => (1..4u128).prop_map(Some)]
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

/// Rows that all carry one fragment a group, and every row its own subject.
fn alone(columns: &[&[Option<u128>]]) -> (Table, Vec<u64>) {
    let table = columns.iter().map(|column| column.iter().map(|cell| Some(vec![*cell])).collect()).collect();
    (table, (1..).take(columns[0].len()).collect())
}

#[test]
fn a_constant_column_forces_every_rare_cell() {
    // METHODS §10: five records, pulse all "high", one age "70+".
    let (high, young, old) = (Some(1), Some(2), Some(3));
    let (table, subjects) = alone(&[&[high; 5], &[young, young, young, young, old]]);
    assert!(forced_pair(&fragments(&table, false), &subjects, 2));
    let (recoded, subjects) = alone(&[&[high; 5], &[young, young, young, young, None]]);
    assert!(!forced_pair(&fragments(&recoded, false), &subjects, 4));
    assert!(forced_pair(&fragments(&recoded, false), &subjects, 5));
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
fn what_contradicts_itself_is_refused() {
    let sound = || Fragments::new(1);
    let mut wide = sound();
    wide.add(&[None, None], &[0]);
    assert!(forced_pair(&[sound(), wide], &[1], 1));
    let mut twice = sound();
    twice.add(&[None], &[0]);
    twice.add(&[Some(1)], &[0]);
    assert!(forced_pair(&[sound(), twice], &[1], 1));
    let mut beyond = sound();
    beyond.add(&[None], &[1]);
    assert!(forced_pair(&[sound(), beyond], &[1], 1));
    assert!(!forced_pair(&[sound(), sound()], &[1], 1));
}
