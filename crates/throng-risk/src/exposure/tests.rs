use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::counting::{AttributeSet, CountedTable, CpuCounter};

fn reference_supports(rows: &[Vec<u32>], subjects: Option<&[u32]>, set: &AttributeSet) -> Vec<u64> {
    let mut classes: BTreeMap<Vec<u32>, BTreeSet<usize>> = BTreeMap::new();
    let tuple = |row: &Vec<u32>| set.iter().map(|a| row[a]).collect::<Vec<_>>();
    for (index, row) in rows.iter().enumerate() {
        classes.entry(tuple(row)).or_default().insert(subjects.map_or(index, |s| s[index] as usize));
    }
    rows.iter().map(|row| classes[&tuple(row)].len() as u64).collect()
}

fn table(rows: &[Vec<u32>], subjects: Option<&[u32]>) -> CountedTable {
    let width = rows.first().map_or(0, Vec::len);
    let columns = (0..width).map(|c| rows.iter().map(|row| row[c]).collect()).collect();
    CountedTable::new(columns, subjects.map(<[u32]>::to_vec)).expect("a table")
}

fn subjects_of_flagged_rows(rows: &[bool], subjects: Option<&[u32]>) -> u64 {
    let below = (0..rows.len()).filter(|row| rows[*row]);
    below.map(|row| subjects.map_or(row as u32, |s| s[row])).collect::<BTreeSet<_>>().len() as u64
}

#[test]
fn risk_equals_manual_calculation() {
    // (30, m) ×3, (30, f) ×2, (40, f) ×1.
    let rows: Vec<Vec<u32>> = [[30, 0], [30, 0], [30, 0], [30, 1], [30, 1], [40, 1]].map(Vec::from).to_vec();
    let table = table(&rows, None);
    let counter = CpuCounter::new(&table, 1);
    let risk = ClassRiskSummary::of(&counter, &AttributeSet::first(2), 3).expect("counted");
    assert_eq!((risk.classes, risk.smallest_class, risk.highest), (3, 1, 1.0));
    assert_eq!(risk.average, 0.5, "three classes over six records");
    assert_eq!((risk.records_unique, risk.records_below_k, risk.share_below_k), (1, 3, 0.5));
    assert_eq!((risk.people_below_k, risk.share_people_below_k), (3, 0.5));
    let bin = |from, to, classes, records| SupportBin { from, to, classes, records };
    assert_eq!(risk.distribution, [bin(1, 1, 1, 1), bin(2, 2, 1, 2), bin(3, 3, 1, 3)]);
    let nothing = ClassRiskSummary::of(&counter, &AttributeSet::new(), 3).expect("counted");
    assert_eq!((nothing.smallest_class, nothing.highest), (6, 1.0 / 6.0));
}

#[test]
fn risk_counts_subjects_instead_of_records() {
    // One subject with five records has a class alone; two share the other class.
    let rows: Vec<Vec<u32>> = [[1], [1], [1], [1], [1], [2], [2]].map(Vec::from).to_vec();
    let subjects = [7, 7, 7, 7, 7, 8, 9];
    let table = table(&rows, Some(&subjects));
    let risk = ClassRiskSummary::of(&CpuCounter::new(&table, 1), &AttributeSet::first(1), 2).expect("counted");
    assert_eq!((risk.highest, risk.records_unique, risk.records_below_k, risk.people_below_k), (1.0, 5, 5, 1));
    assert_eq!((risk.average, risk.share_people_below_k), (6.0 / 7.0, 1.0 / 3.0));
}

#[test]
fn distribution_bins_have_a_boundary_at_k() {
    let columns = CountedTable::new(vec![(0..2000_u32).map(u32::isqrt).collect()], None).expect("a table");
    for k in [1, 2, 3, 5, 20, 1000] {
        let risk = ClassRiskSummary::of(&CpuCounter::new(&columns, 1), &AttributeSet::first(1), k).expect("counted");
        let bins = &risk.distribution;
        assert!(bins.windows(2).all(|pair| pair[0].to + 1 == pair[1].from), "{k}: {bins:?}");
        assert!(bins.iter().any(|bin| bin.from == u64::from(k) || bin.to + 1 == u64::from(k)), "{k}: {bins:?}");
        assert_eq!(bins.iter().map(|bin| bin.records).sum::<u64>(), 2000);
        let below: u64 = bins.iter().filter(|bin| bin.to < u64::from(k)).map(|bin| bin.records).sum();
        assert_eq!(below, risk.records_below_k, "{k}");
    }
}

#[test]
fn involvement_weighs_small_sets_more() {
    let minimal = [AttributeSet::from_iter([2]), AttributeSet::from_iter([0, 1])];
    let weights = involvement(&AttributeSet::first(4), &minimal);
    let shares: Vec<(u64, f64, usize)> = weights.iter().map(|w| (w.sets, w.involvement, w.smallest_set)).collect();
    assert_eq!(shares, [(1, 0.25, 2), (1, 0.25, 2), (1, 0.5, 1), (0, 0.0, 0)]);
    assert_eq!(involvement(&AttributeSet::new(), &[AttributeSet::new()]), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn risk_and_measurement_equal_the_definitions(
        rows in proptest::collection::vec(proptest::collection::vec(0_u32..4, 4), 1..40),
        owners in proptest::option::of(proptest::collection::vec(0_u32..12, 40)),
        sets in proptest::collection::btree_set(proptest::collection::btree_set(0_usize..4, 1..4), 0..5),
        k in 1_u32..6,
    ) {
        let subjects = owners.as_ref().map(|owners| &owners[..rows.len()]);
        let table = table(&rows, subjects);
        let all = AttributeSet::first(4);

        let supports = reference_supports(&rows, subjects, &all);
        let counter = CpuCounter::new(&table, 1);
        let risk = ClassRiskSummary::of(&counter, &all, k).expect("counted");
        let n = rows.len() as f64;
        let below = |set: &AttributeSet| -> Vec<bool> {
            reference_supports(&rows, subjects, set).iter().map(|s| *s < u64::from(k)).collect()
        };
        let below_all = below(&all);
        let below_count = below_all.iter().filter(|b| **b).count();
        prop_assert!((risk.average - supports.iter().map(|s| 1.0 / *s as f64).sum::<f64>() / n).abs() < 1e-12);
        prop_assert_eq!(risk.smallest_class, *supports.iter().min().expect("a row"));
        prop_assert_eq!(risk.records_below_k, below_count as u64);
        prop_assert_eq!(risk.people_below_k, subjects_of_flagged_rows(&below_all, subjects));
        prop_assert_eq!(risk.records_unique, supports.iter().filter(|s| **s == 1).count() as u64);
        prop_assert_eq!(risk.distribution.iter().map(|b| b.classes).sum::<u64>(), risk.classes);

        let mut sets: Vec<AttributeSet> = sets.iter().map(|set| set.iter().copied().collect()).collect();
        sets.sort_unstable();
        let measured = measure_qids(table.rows(), &counter, &sets, k, true, None, &|_, _| {}).expect("counted");
        prop_assert_eq!(measured.len(), sets.len());
        for set in &measured {
            let below = below(&set.set);
            prop_assert_eq!(set.records_below_k, below.iter().filter(|b| **b).count() as u64);
            prop_assert_eq!(set.people_below_k, subjects_of_flagged_rows(&below, subjects));
            prop_assert_eq!(set.example, below.iter().position(|b| *b).map(|row| row as u32));
        }
        let votes: f64 = involvement(&all, &sets).iter().map(|w| w.involvement).sum();
        prop_assert!(sets.is_empty() || (votes - 1.0).abs() < 1e-9);
    }

    #[test]
    fn reach_equals_check_of_every_subset(
        rows in proptest::collection::vec(proptest::collection::vec(0_u32..3, 4), 1..30),
        owners in proptest::option::of(proptest::collection::vec(0_u32..9, 30)),
        k in 2_u32..5,
    ) {
        let subjects = owners.as_ref().map(|owners| &owners[..rows.len()]);
        let table = table(&rows, subjects);
        let counter = CpuCounter::new(&table, 1);
        let subsets: Vec<AttributeSet> =
            (1_u32..16).map(|bits| (0..4).filter(|a| bits >> a & 1 == 1).collect()).collect();
        let risky: Vec<Vec<bool>> =
            subsets.iter().map(|set| reference_supports(&rows, subjects, set).iter().map(|s| *s < u64::from(k)).collect()).collect();
        let qid: Vec<bool> = risky.iter().map(|below| below.contains(&true)).collect();
        let minimal: Vec<AttributeSet> = (0..15)
            .filter(|&i| qid[i] && !(0..15).any(|j| j != i && qid[j] && subsets[j].is_subset(&subsets[i])))
            .map(|i| subsets[i].clone())
            .collect();
        let all = AttributeSet::first(4);
        let below_all = risky[14].iter().filter(|b| **b).count() as u64;
        let found = subset_reach(&counter, &all, Some(&minimal), k, below_all, None, &|_, _| {});
        let unfiltered = subset_reach(&counter, &all, None, k, below_all, None, &|_, _| {});
        prop_assert_eq!(&found, &unfiltered);
        prop_assert!(found.exhausted);
        for step in &found.steps {
            let reached: Vec<bool> = (0..rows.len())
                .map(|row| (0..15).any(|i| subsets[i].len() == step.size && risky[i][row]))
                .collect();
            prop_assert_eq!(step.records, reached.iter().filter(|b| **b).count() as u64);
            prop_assert_eq!(step.people, subjects_of_flagged_rows(&reached, subjects));
        }
        prop_assert_eq!(found.steps.last().map_or(0, |step| step.records), below_all);
        for (attribute, count) in &found.at_risk {
            let touched = (0..rows.len()).filter(|&row| (0..15).any(|i| {
                subsets[i].contains(*attribute)
                    && subsets[i].len() <= found.steps.len()
                    && risky[i][row]
                    && !(0..15).any(|j| j != i && risky[j][row] && subsets[j].is_subset(&subsets[i]))
            }));
            prop_assert_eq!(*count, touched.count() as u64);
        }
    }

    #[test]
    fn riskiest_records_equal_check_of_every_subset(
        rows in proptest::collection::vec(proptest::collection::vec(0_u32..3, 4), 1..30),
        owners in proptest::option::of(proptest::collection::vec(0_u32..9, 30)),
        k in 2_u32..5,
        most in 0_usize..32,
    ) {
        let subjects = owners.as_ref().map(|owners| &owners[..rows.len()]);
        let subsets: Vec<AttributeSet> =
            (1_u32..16).map(|bits| (0..4).filter(|a| bits >> a & 1 == 1).collect()).collect();
        let risky: Vec<Vec<bool>> =
            subsets.iter().map(|set| reference_supports(&rows, subjects, set).iter().map(|s| *s < u64::from(k)).collect()).collect();
        let minimal = |row: usize| -> BTreeSet<&AttributeSet> {
            let is_minimal = |i: &usize| {
                risky[*i][row] && !(0..15).any(|j| j != *i && risky[j][row] && subsets[j].is_subset(&subsets[*i]))
            };
            (0..15).filter(is_minimal).map(|i| &subsets[i]).collect()
        };
        // Four attributes, all sizes: 3·2·1, 2·1, 1, 1.
        let score = |row: usize| -> f64 { minimal(row).iter().map(|set| [6.0, 2.0, 1.0, 1.0][set.len() - 1]).sum() };
        let mut expected: Vec<(u32, f64)> = (0..rows.len()).map(|row| (row as u32, score(row))).collect();
        expected.retain(|(_, score)| *score > 0.0);
        let at_risk = expected.len() as u64;
        expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        expected.truncate(most);

        let counter = CpuCounter::new(&table(&rows, subjects), 1);
        let found = riskiest_records(&counter, &AttributeSet::first(4), None, k, most, None, &|_, _| {});
        prop_assert_eq!((found.largest, found.complete, found.at_risk), (4, true, at_risk));
        prop_assert_eq!(&found.rows, &expected);
        for (row, _) in &found.rows {
            let combinations: Vec<&AttributeSet> = found.combinations(*row).collect();
            prop_assert_eq!(combinations.len(), minimal(*row as usize).len(), "none twice");
            prop_assert_eq!(combinations.into_iter().collect::<BTreeSet<_>>(), minimal(*row as usize));
        }
    }
}

#[test]
fn incomplete_size_is_discarded() {
    let table = table(&[vec![0, 0], vec![0, 1], vec![1, 0]], None);
    let counter = CpuCounter::new(&table, 1);
    let found =
        riskiest_records(&counter, &AttributeSet::first(2), None, 2, 3, Some(std::time::Instant::now()), &|_, _| {});
    assert_eq!((found.rows.len(), found.largest, found.complete, found.at_risk), (0, 0, false, 0));
}
