//! Compares counts and verdicts with maps of tuples.

use crate::counting::{AttributeSet, ClassSummary, ComputeError, CountedTable, CpuCounter, GroupCounter};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn table(rows: usize, cardinalities: &[u32], subjects: Option<u32>, mut seed: u64) -> CountedTable {
    let mut roll = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u32
    };
    let mut columns: Vec<Vec<u32>> = Vec::new();
    for cardinality in cardinalities {
        let column = match columns.last() {
            Some(last) if *cardinality % 5 == 0 => last.iter().map(|v| v % (cardinality / 5 + 1)).collect(),
            _ => (0..rows).map(|_| (roll() % cardinality).min(roll() % cardinality)).collect(),
        };
        columns.push(column);
    }
    let subjects = subjects.map(|count| (0..rows).map(|_| roll() % count).collect());
    CountedTable::new(columns, subjects).expect("a table")
}

/// Maps each tuple to its rows.
pub(super) fn reference_count(table: &CountedTable, set: &AttributeSet, k: u32) -> (ClassSummary, Vec<u32>) {
    let mut classes: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for row in 0..table.rows() {
        classes.entry(set.iter().map(|c| table.column(c)[row]).collect()).or_default().push(row as u32);
    }
    let people = |rows: &[u32]| -> BTreeSet<u32> {
        rows.iter().map(|r| table.subject_numbers().map_or(*r, |s| s[*r as usize])).collect()
    };
    let below: Vec<&Vec<u32>> = classes.values().filter(|rows| people(rows).len() < k as usize).collect();
    let mut rows: Vec<u32> = below.iter().copied().flatten().copied().collect();
    rows.sort_unstable();
    let count = ClassSummary {
        smallest: classes.values().map(|rows| people(rows).len() as u64).min().unwrap_or(0),
        classes: classes.len() as u64,
        classes_below: below.len() as u64,
        records_below: rows.len() as u64,
        subjects_below: people(&rows).len() as u64,
    };
    (count, rows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn cpu_counts_and_verdicts_match_reference(
        rows in prop_oneof![0_usize..50, 500_usize..6000],
        cardinalities in proptest::collection::vec(prop_oneof![4 => 1_u32..8, 2 => 8_u32..40, 1 => 300_u32..90_000], 1..6),
        subjects in proptest::option::of(prop_oneof![1_u32..30, 100_u32..3000]),
        threads in 1_usize..4,
        k in 0_u32..=6,
        seed: u64,
    ) {
        let table = table(rows, &cardinalities, subjects, seed);
        let sets: Vec<AttributeSet> = (0..1_u32 << table.width())
            .map(|mask| (0..table.width()).filter(|c| mask >> c & 1 == 1).collect())
            .collect();
        let counter = CpuCounter::new(&table, threads);
        let counts = counter.count(&sets, k).expect("the columns are there");
        let verdicts = counter.judge(&sets, k, &|| false).expect("the columns are there");
        for ((set, count), verdict) in sets.iter().zip(counts).zip(verdicts) {
            let (expected, below) = reference_count(&table, set, k);
            prop_assert_eq!(count, expected, "{:?}", set);
            prop_assert_eq!(verdict, Some(expected.is_qid()), "{:?}", set);
            prop_assert_eq!(counter.records_below(set, k).expect("the columns are there"), below, "{:?}", set);
        }
    }
}

#[test]
fn judge_with_repeated_set_gives_equal_verdicts() {
    let table = table(1000, &[3, 400], None, 1);
    let counter = CpuCounter::new(&table, 1);
    for set in [AttributeSet::from_iter([0]), AttributeSet::from_iter([1]), AttributeSet::from_iter([0, 1])] {
        let once = counter.judge(std::slice::from_ref(&set), 2, &|| false).expect("judged")[0];
        assert_eq!(counter.judge(&[set.clone(), set.clone(), set], 2, &|| false), Ok(vec![once; 3]));
    }
}

#[test]
fn cpu_judge_after_stop_returns_no_verdict() {
    let table = table(1000, &[3, 4, 6], None, 1);
    let sets = [AttributeSet::from_iter([0, 1]), AttributeSet::from_iter([0, 2])];
    let counter = CpuCounter::new(&table, 1);
    assert_eq!(counter.judge(&sets, 2, &|| true), Ok(vec![None, None]));
}

#[test]
fn count_with_unknown_attribute_names_it() {
    let table = table(10, &[3], None, 1);
    let counter = CpuCounter::new(&table, 1);
    let unknown = Err(ComputeError::UnknownAttribute { attribute: 7, width: 1 });
    assert_eq!(counter.count(&[AttributeSet::from_iter([0, 7])], 2).map(|_| ()), unknown);
}
