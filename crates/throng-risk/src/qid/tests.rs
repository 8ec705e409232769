//! Compares every strategy with the brute force.

use super::brute_force::BruteForceTable;
use super::{CountedTable, QidBorders, QidSearchRequest, search, search_on_backend, search_without_aggregation};
use crate::counting::{AttributeSet, ClassSummary, ComputeError, CpuCounter, GroupCounter};
use crate::multigrid::AttributeAggregation;
use crate::multigrid::brute_force::tables as related;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

pub(super) fn tables() -> impl Strategy<Value = BruteForceTable> {
    let shape = (1_usize..=9, 0_usize..40, 1_u32..7, 1_u32..12);
    shape.prop_flat_map(|(width, rows, values, subjects)| {
        // A missing value has the code u32::MAX.
        let cell = prop_oneof![6 => 0..values, 3 => Just(0), 1 => Just(u32::MAX)];
        let cells = proptest::collection::vec(proptest::collection::vec(cell, width), rows);
        let whose = proptest::option::of(proptest::collection::vec(0..subjects, rows));
        (cells, whose).prop_map(|(cells, subjects)| BruteForceTable { cells, subjects })
    })
}

pub(super) fn columns_of(rows: &BruteForceTable) -> CountedTable {
    let width = rows.cells.first().map_or(0, Vec::len);
    let columns = (0..width).map(|c| rows.cells.iter().map(|row| row[c]).collect()).collect();
    CountedTable::new(columns, rows.subjects.clone()).expect("a table")
}

pub(super) fn question(k: u32, strategy: super::QidStrategy, threads: usize, width: usize) -> QidSearchRequest {
    QidSearchRequest { k, strategy, threads, budget: None, memory: None, columns: AttributeSet::first(width) }
}

pub(super) fn numbers(sets: &[AttributeSet]) -> Vec<Vec<usize>> {
    sets.iter().map(|set| set.iter().collect()).collect()
}

pub(super) const STRATEGIES: [super::QidStrategy; 3] =
    [super::QidStrategy::Border, super::QidStrategy::Greedy, super::QidStrategy::Exhaustive];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_strategy_equals_brute_force(rows in tables(), k in 2_u32..=6) {
        let table = columns_of(&rows);
        let (minimal, maximal) = rows.borders(k);
        for strategy in STRATEGIES {
            for threads in [1, 3] {
                let found = search(&table, &question(k, strategy, threads, table.width()), &|_| ());
                prop_assert!(found.complete);
                prop_assert_eq!(numbers(&found.minimal_qids), minimal.clone(), "{:?} {}", strategy, threads);
                prop_assert_eq!(numbers(&found.maximal_non_qids), maximal.clone(), "{:?} {}", strategy, threads);
            }
        }
    }
}

/// Columns are functions of each other, some except for one cell.
fn related_tables() -> impl Strategy<Value = BruteForceTable> {
    (related(), 1_u32..12, any::<bool>()).prop_map(|(cells, subjects, has_subjects)| {
        let whose = (0..cells.len() as u32).map(|row| row.wrapping_mul(2_654_435_761) % subjects).collect();
        BruteForceTable { cells, subjects: has_subjects.then_some(whose) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn coarse_table_borders_expand_to_fine_borders(
        rows in related_tables(),
        k in 2_u32..=6,
        mask: bool,
    ) {
        let fine = if mask { columns_of(&rows).masked(k) } else { columns_of(&rows) };
        let by_definition = question(k, super::QidStrategy::Exhaustive, 1, fine.width());
        let expected = search(&fine, &by_definition, &|_| ());
        let attributes = AttributeAggregation::of(&fine, &AttributeSet::first(fine.width()));
        let coarse = attributes.coarse_table(&fine).expect("a table");
        let on_coarse = search(&coarse, &QidSearchRequest { columns: AttributeSet::first(coarse.width()), ..by_definition.clone() }, &|_| ());
        let minimal = on_coarse.minimal_qids.iter().flat_map(|set| attributes.expand_minimal_qid(set.iter()));
        prop_assert_eq!(minimal.collect::<BTreeSet<_>>(), expected.minimal_qids.iter().cloned().collect());
        let maximal = on_coarse.maximal_non_qids.iter().map(|set| attributes.expand_maximal_non_qid(set.iter()));
        prop_assert_eq!(maximal.collect::<BTreeSet<_>>(), expected.maximal_non_qids.iter().cloned().collect());
        let by_border = QidSearchRequest { strategy: super::QidStrategy::Border, ..by_definition.clone() };
        for found in [search(&fine, &by_border, &|_| ()), search_without_aggregation(&fine, &by_border, &|_| ())] {
            prop_assert_eq!(&found.minimal_qids, &expected.minimal_qids);
            prop_assert_eq!(&found.maximal_non_qids, &expected.maximal_non_qids);
        }
    }
}

/// Allows early exits and shared histograms.
pub(super) fn larger_table(rows: usize, cardinalities: &[u32], subjects: Option<u32>, mut seed: u64) -> CountedTable {
    let mut roll = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u32
    };
    let mut columns: Vec<Vec<u32>> = Vec::new();
    for (at, cardinality) in cardinalities.iter().enumerate() {
        let column = match columns.last() {
            Some(last) if at % 4 == 3 => last.iter().map(|v| v % cardinality).collect(),
            _ => (0..rows).map(|_| (roll() % cardinality).min(roll() % cardinality)).collect(),
        };
        columns.push(column);
    }
    let subjects = subjects.map(|count| (0..rows).map(|_| roll() % count).collect());
    CountedTable::new(columns, subjects).expect("a table")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn strategies_agree_on_large_tables(
        rows in 500_usize..20_000,
        cardinalities in proptest::collection::vec(prop_oneof![3 => 2_u32..5, 1 => 5_u32..30], 4..9),
        subjects in proptest::option::of(100_u32..3000),
        k in 2_u32..=6,
        seed: u64,
    ) {
        let table = larger_table(rows, &cardinalities, subjects, seed);
        let ask = |strategy, threads| search(&table, &question(k, strategy, threads, table.width()), &|_| ());
        let expected = ask(super::QidStrategy::Exhaustive, 1);
        for (strategy, threads) in [(super::QidStrategy::Border, 1), (super::QidStrategy::Border, 3), (super::QidStrategy::Greedy, 2)] {
            let found = ask(strategy, threads);
            prop_assert_eq!(&found.minimal_qids, &expected.minimal_qids);
            prop_assert_eq!(&found.maximal_non_qids, &expected.maximal_non_qids);
        }
    }
}

fn minimal_hitting_sets(sets: &[u32], width: usize) -> Vec<u32> {
    let hits = |mask: u32| sets.iter().all(|set| set & mask != 0);
    (0..1_u32 << width).filter(|&m| hits(m) && (0..width).all(|c| m >> c & 1 == 0 || !hits(m & !(1 << c)))).collect()
}

pub(super) fn masks(sets: &[AttributeSet]) -> Vec<u32> {
    let mut masks: Vec<u32> = sets.iter().map(|set| set.iter().map(|c| 1 << c).sum()).collect();
    masks.sort_unstable();
    masks
}

/// A set is a QID exactly if it intersects the complement of every maximal non-QID.
fn assert_dual(found: &QidBorders, width: usize) {
    let all = (1_u32 << width) - 1;
    let (qids, non_qids) = (masks(&found.minimal_qids), masks(&found.maximal_non_qids));
    let complements: Vec<u32> = non_qids.iter().map(|m| all & !m).collect();
    assert_eq!(minimal_hitting_sets(&complements, width), qids);
    let mut from_qids: Vec<u32> = minimal_hitting_sets(&qids, width).iter().map(|m| all & !m).collect();
    from_qids.sort_unstable();
    assert_eq!(from_qids, non_qids);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn both_borders_are_dual(rows in tables(), k in 2_u32..=6) {
        let table = columns_of(&rows);
        assert_dual(&search(&table, &question(k, super::QidStrategy::Border, 1, table.width()), &|_| ()), table.width());
    }

    #[test]
    fn masked_search_equals_definition_on_masked_table(rows in tables(), k in 2_u32..=6) {
        let support = |column: usize, value: u32| {
            let of_value: Vec<usize> = (0..rows.cells.len()).filter(|r| rows.cells[*r][column] == value).collect();
            rows.support(&of_value) as u32
        };
        let mut masked = rows.clone();
        for (r, cells) in rows.cells.iter().enumerate() {
            for (c, value) in cells.iter().enumerate() {
                if support(c, *value) < k {
                    masked.cells[r][c] = 99_999;
                }
            }
        }
        let table = columns_of(&rows).masked(k);
        let found = search(&table, &question(k, super::QidStrategy::Border, 1, table.width()), &|_| ());
        prop_assert_eq!((numbers(&found.minimal_qids), numbers(&found.maximal_non_qids)), masked.borders(k));
    }

    #[test]
    fn results_of_tiny_time_limit_are_correct(rows in tables(), k in 2_u32..=6, nanoseconds in 0_u64..200_000) {
        let table = columns_of(&rows);
        for strategy in STRATEGIES {
            let budget = Some(Duration::from_nanos(nanoseconds));
            let found = search(&table, &QidSearchRequest { budget, ..question(k, strategy, 1, table.width()) }, &|_| ());
            for qid in masks(&found.minimal_qids) {
                prop_assert!(rows.is_qid(qid, k), "{:?}: {:b}", strategy, qid);
            }
            for non_qid in masks(&found.maximal_non_qids) {
                prop_assert!(!rows.is_qid(non_qid, k), "{:?}: {:b}", strategy, non_qid);
            }
            if found.complete {
                prop_assert_eq!((numbers(&found.minimal_qids), numbers(&found.maximal_non_qids)), rows.borders(k));
            }
        }
    }
}

struct CountOnlyBackend<'a>(CpuCounter<'a>);

impl GroupCounter for CountOnlyBackend<'_> {
    fn count(&self, sets: &[AttributeSet], k: u32) -> Result<Vec<ClassSummary>, ComputeError> {
        self.0.count(sets, k)
    }

    fn records_below(&self, set: &AttributeSet, k: u32) -> Result<Vec<u32>, ComputeError> {
        self.0.records_below(set, k)
    }
}

struct FailingBackend;

impl GroupCounter for FailingBackend {
    fn count(&self, _: &[AttributeSet], _: u32) -> Result<Vec<ClassSummary>, ComputeError> {
        Err(ComputeError::Backend { backend: "test", reason: "unplugged".to_owned() })
    }

    fn records_below(&self, _: &AttributeSet, _: u32) -> Result<Vec<u32>, ComputeError> {
        unreachable!("a search does not ask for records")
    }
}

proptest! {
    #[test]
    fn other_backend_returns_same_borders_or_error(rows in tables(), k in 2_u32..=6) {
        let table = columns_of(&rows);
        let backend = CountOnlyBackend(CpuCounter::new(&table, 1));
        for strategy in STRATEGIES {
            let ask = question(k, strategy, 1, table.width());
            let found = search_on_backend(&table, &backend, &ask, &|_| ()).expect("the backend counts");
            prop_assert_eq!((numbers(&found.minimal_qids), numbers(&found.maximal_non_qids)), rows.borders(k));
            if table.support() >= k as usize {
                prop_assert!(search_on_backend(&table, &FailingBackend, &ask, &|_| ()).is_err());
            }
        }
    }
}

fn golden(columns: &[&[u32]], k: u32) -> QidBorders {
    let table = CountedTable::new(columns.iter().map(|c| c.to_vec()).collect(), None).expect("a table");
    search(&table, &question(k, super::QidStrategy::Border, 1, table.width()), &|_| ())
}

/// \[POD] Table 3.1: gender, ZIP, drug, disease.
const TABLE_3_1: [&[u32]; 4] = [&[0, 1, 0, 0], &[0, 1, 2, 2], &[0, 1, 1, 0], &[0, 0, 0, 0]];

#[test]
fn table_3_1_has_qids_gender_and_zip() {
    // Gender F and two ZIP codes occur once.
    let found = golden(&TABLE_3_1, 2);
    assert_eq!(numbers(&found.minimal_qids), [[0], [1]]);
    assert_eq!(numbers(&found.maximal_non_qids), [[2, 3]]);
    // Cortisol and female identify the second row, as in the text; female alone suffices.
    let table = CountedTable::new(TABLE_3_1.iter().map(|c| c.to_vec()).collect(), None).expect("a table");
    let drug_and_gender = AttributeSet::from_iter([0, 2]);
    let counter = CpuCounter::new(&table, 1);
    assert_eq!(counter.records_below(&drug_and_gender, 2), Ok(vec![1, 2]));
}

#[test]
fn table_3_2_has_two_identifiers_and_an_uninformative_date() {
    // Patient, SSN, gender, birthday, ZIP, drug, disease.
    let [gender, zip, drug, disease] = [&[0, 1, 0, 0][..], &[2, 3, 2, 1], &[0, 1, 1, 0], &[0, 0, 0, 0]];
    let found = golden(&[&[1, 2, 3, 4], &[5, 6, 7, 8], gender, &[0, 0, 0, 0], zip, drug, disease], 2);
    assert_eq!(numbers(&found.minimal_qids), [[0], [1], [2], [4]]);
    assert_eq!(numbers(&found.maximal_non_qids), [[3, 5, 6]]);
}

#[test]
fn search_handles_degenerate_tables() {
    let all = golden(&[&[1, 1, 1], &[1, 2, 3]], 4);
    assert_eq!((numbers(&all.minimal_qids), all.maximal_non_qids.len()), (vec![vec![]], 0));
    let nothing = golden(&[&[], &[]], 2);
    assert_eq!((nothing.minimal_qids.len(), numbers(&nothing.maximal_non_qids)), (0, vec![vec![0, 1]]));
    let constant = golden(&[&[7, 7, 7], &[8, 8, 8]], 3);
    assert_eq!((constant.minimal_qids.len(), numbers(&constant.maximal_non_qids)), (0, vec![vec![0, 1]]));
    let k_of_one = golden(&[&[1, 2]], 1);
    assert_eq!((k_of_one.minimal_qids.len(), numbers(&k_of_one.maximal_non_qids)), (0, vec![vec![0]]));
}

#[test]
fn twins_of_wide_tables_are_expanded() {
    let halves: [Vec<u32>; 2] = [vec![0, 0, 0, 1, 1, 1, 1], vec![0, 0, 1, 1, 1, 1, 0]];
    let columns = (0..150).map(|c| halves[c % 2].clone()).collect();
    let table = CountedTable::new(columns, None).expect("a table");
    let found = search(&table, &question(2, super::QidStrategy::Border, 1, 150), &|_| ());
    assert_eq!((found.minimal_qids.len(), found.maximal_non_qids.len()), (75 * 75, 2));
    assert!(found.maximal_non_qids.iter().all(|set| set.len() == 75));
}

#[test]
fn search_handles_more_than_128_columns() {
    // Every fourth column is a copy: 75 and 150 are searched.
    for width in [100, 200] {
        let table = larger_table(24, &vec![4; width], None, width as u64);
        let ask = |strategy| search(&table, &question(2, strategy, 2, width), &|_| ());
        let (found, expected) = (ask(super::QidStrategy::Border), ask(super::QidStrategy::Exhaustive));
        assert!(found.minimal_qids.iter().any(|set| set.last() >= Some(64)));
        assert_eq!(found.minimal_qids, expected.minimal_qids);
        assert_eq!(found.maximal_non_qids, expected.maximal_non_qids);
    }
}
