//! Examples of [FL2] (Fig. 4 and 5), 32-bit overflow of a distance, and keys wider than 64 bits.

use crate::lattice::soundness::Conclusion;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use throng_core::domain::{Domain, HierarchyLevel};
use throng_core::lattice::policy_check::{PolicyChecker, PolicyTerms};
use throng_core::lattice::search::LatticeStrategy;
use throng_core::lattice::search_deadline::SearchDeadline;
use throng_core::lattice::strategies::search_lattice;
use throng_core::lattice::table::{LatticeTable, TableRecords};
use throng_core::privacy::{ClassPrivacyModel, GroundMetric, ValueRequirement};
use throng_core::quality::QualityMeasure;

fn ages(values: u32, between: Option<Vec<u32>>) -> Domain {
    let raw = HierarchyLevel { cell_of: (0..values).collect(), loss: vec![0.0; values as usize] };
    let between = between.map(|cell_of| {
        let cells = cell_of.iter().max().map_or(0, |&c| c as usize + 1);
        HierarchyLevel { cell_of, loss: vec![0.1; cells] }
    });
    let root = HierarchyLevel { cell_of: vec![0; values as usize], loss: vec![1.0] };
    let levels = [Some(raw), between, Some(root)];
    Domain::new("age", levels.into_iter().flatten().collect()).expect("a hierarchy")
}

/// Fig. 4: a suppressed class merges with satisfied ones, and 15 suppressed records exceed the limit.
#[test]
fn models_are_not_monotone_under_suppression() {
    // The classes are records 0–2, 3–4 and 5–14; the third has only one diagnosis.
    let age: Vec<u32> = (0..15).map(|row| if row < 3 { 0 } else { u32::from(row >= 5) + 1 }).collect();
    let diagnosis: Vec<u32> = (0..15).map(|row| if row < 5 { [0, 1, 2, 0, 1][row] } else { 3 }).collect();
    let records = TableRecords { quasi: vec![age], sensitive: vec![(diagnosis, 4)], ..TableRecords::default() };
    let table = LatticeTable::new(vec![ages(3, None)], &records).expect("a table");
    let models = vec![ClassPrivacyModel::Sensitive { attribute: 0, of: ValueRequirement::Recursive { c: 2.0, l: 2 } }];
    let checker =
        PolicyChecker::new(&table, &PolicyTerms { models, limit: 0.67, measure: QualityMeasure::Loss }).expect("terms");
    assert_eq!(checker.limit(), 10);
    let (low, high) = (checker.check(&[0]), checker.check(&[1]));
    assert!(low.admissible && low.suppressed == 10, "{low:?}");
    assert!(!high.admissible && high.suppressed == 15, "{high:?}");
}

/// Four different values satisfy ℓ = 3, but not after merging with ten records of a fifth value.
#[test]
fn entropy_is_not_monotone_under_suppression() {
    let age: Vec<u32> = (0..14).map(|row| u32::from(row >= 4)).collect();
    let diagnosis: Vec<u32> = (0..14).map(|row| row.min(4)).collect();
    let records = TableRecords { quasi: vec![age], sensitive: vec![(diagnosis, 5)], ..TableRecords::default() };
    let table = LatticeTable::new(vec![ages(2, None)], &records).expect("a table");
    let models = vec![ClassPrivacyModel::Sensitive { attribute: 0, of: ValueRequirement::Entropy { l: 3.0 } }];
    let checker =
        PolicyChecker::new(&table, &PolicyTerms { models, limit: 0.72, measure: QualityMeasure::Loss }).expect("terms");
    assert_eq!(checker.limit(), 10);
    assert!(checker.check(&[0]).admissible && !checker.check(&[1]).admissible);
}

/// Fig. 5: two classes remain with four records suppressed, but three classes one level higher.
#[test]
fn measures_are_not_monotone_under_suppression() {
    let records = TableRecords { quasi: vec![vec![0, 0, 1, 2, 3, 4]], ..TableRecords::default() };
    let table = LatticeTable::new(vec![ages(5, Some(vec![0, 1, 1, 2, 2]))], &records).expect("a table");
    let terms = PolicyTerms {
        models: vec![ClassPrivacyModel::KAnonymity { k: 2 }],
        limit: 4.0 / 6.0 + 0.001,
        measure: QualityMeasure::Aecs,
    };
    let checker = PolicyChecker::new(&table, &terms).expect("terms");
    assert_eq!(checker.limit(), 4);
    let (low, high) = (checker.check(&[0]), checker.check(&[1]));
    assert_eq!((low.suppressed, low.cost), (4, 6.0 / 2.0));
    assert_eq!((high.suppressed, high.cost), (0, 6.0 / 3.0));
    for measure in
        [QualityMeasure::Discernibility, QualityMeasure::Loss, QualityMeasure::LossGeometric, QualityMeasure::Nue]
    {
        let checker = PolicyChecker::new(&table, &PolicyTerms { measure, ..terms.clone() }).expect("terms");
        assert!(checker.check(&[1]).cost < checker.check(&[0]).cost, "{measure:?}");
    }
}

/// A class without released records is not judged, but lowers the share of a class that it is merged with.
#[test]
fn presence_is_not_monotone_without_suppression() {
    let records = TableRecords {
        quasi: vec![vec![0, 0, 0, 1]],
        released: Some(vec![false, false, false, true]),
        ..TableRecords::default()
    };
    let table = LatticeTable::new(vec![ages(2, None)], &records).expect("a table");
    let models = vec![ClassPrivacyModel::Presence { min: 0.5, max: 1.0 }];
    let terms = PolicyTerms { models, limit: 0.0, measure: QualityMeasure::Loss };
    let checker = PolicyChecker::new(&table, &terms).expect("terms");
    assert!(checker.check(&[0]).admissible && !checker.check(&[1]).admissible);
    assert!(!Conclusion::AdmissibleAbove.is_sound(&terms, checker.limit()));
    assert!(!Conclusion::InadmissibleBelow.is_sound(&terms, checker.limit()));
}

/// From 46,341 records, the product of two counts exceeds 32 bits.
#[test]
fn closeness_distance_does_not_overflow_32_bits() {
    let n = 100_000u32;
    let quasi: Vec<u32> = (0..n).map(|row| u32::from(row >= n / 2)).collect();
    let sensitive: Vec<u32> = (0..n).map(|row| if row < n / 2 { 0 } else { 1 + row % 3 }).collect();
    let records = TableRecords { quasi: vec![quasi], sensitive: vec![(sensitive, 4)], ..TableRecords::default() };
    let table = LatticeTable::new(vec![ages(2, None)], &records).expect("a table");
    let tree = GroundMetric::Hierarchical(vec![vec![0, 0, 1, 1], vec![0, 0]]);
    for ground in [GroundMetric::Equal, GroundMetric::Ordered, tree] {
        let models =
            vec![ClassPrivacyModel::Sensitive { attribute: 0, of: ValueRequirement::Closeness { t: 0.2, ground } }];
        let checker = PolicyChecker::new(&table, &PolicyTerms { models, limit: 0.0, measure: QualityMeasure::Loss })
            .expect("terms");
        let outcome = checker.check(&[0]);
        assert!(!outcome.admissible && outcome.failing > 0, "{outcome:?}");
        assert!(checker.check(&[1]).admissible);
    }
}

/// Sixty attributes of five values: 140-bit keys and a lattice of 3⁶⁰ policies.
#[test]
fn class_keys_wider_than_64_bits_are_supported() {
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    // Most rows differ from one of six patterns in one attribute.
    let patterns: Vec<Vec<u32>> = (0..6).map(|_| (0..60).map(|_| draw(5) as u32).collect()).collect();
    let rows: Vec<Vec<u32>> = (0..400)
        .map(|_| {
            let mut row = patterns[draw(6) as usize].clone();
            row[draw(60) as usize] = draw(5) as u32;
            row
        })
        .collect();
    let quasi: Vec<Vec<u32>> = (0..60).map(|a| rows.iter().map(|row| row[a]).collect()).collect();
    let domains: Vec<Domain> = quasi.iter().map(|_| ages(5, Some(vec![0, 0, 1, 1, 1]))).collect();
    let table =
        LatticeTable::new(domains.clone(), &TableRecords { quasi, ..TableRecords::default() }).expect("a table");
    let terms = PolicyTerms {
        models: vec![ClassPrivacyModel::KAnonymity { k: 3 }],
        limit: 1.0,
        measure: QualityMeasure::Discernibility,
    };
    let checker = PolicyChecker::new(&table, &terms).expect("terms");
    for round in 0..60 {
        let policy: Vec<u8> = (0..60).map(|_| if round == 0 { 0 } else { draw(3) as u8 }).collect();
        let cells = |row: &Vec<u32>| -> Vec<u32> {
            (0..60).map(|a| domains[a].levels()[policy[a] as usize].cell_of[row[a] as usize]).collect()
        };
        let mut classes: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
        for row in &rows {
            *classes.entry(cells(row)).or_default() += 1;
        }
        let gone: u64 = classes.values().filter(|&&size| size < 3).sum();
        let kept: u64 = classes.values().filter(|&&size| size >= 3).map(|size| size * size).sum();
        let outcome = checker.check(&policy);
        assert_eq!((outcome.suppressed, outcome.cost), (gone, (kept + gone * 400) as f64));
    }
    let begun = Instant::now();
    let clock = || begun.elapsed();
    let until = SearchDeadline::timed(&clock, Some(Duration::from_millis(200)));
    let found = search_lattice(&checker, LatticeStrategy::Bfs, until, &|_| {}).expect("any lattice");
    assert!(found.best.is_some() && !found.complete);
    assert!(search_lattice(&checker, LatticeStrategy::Ola, SearchDeadline::without_deadline(), &|_| {}).is_err());
}
