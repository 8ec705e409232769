//! The examples of [FL2] (Fig. 4 and 5), and a distance that overflows 32 bits.

use crate::lattice::soundness::Conclusion;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use throng::anonymity::domain::{Domain, Level};
use throng::anonymity::lattice::check::{Checker, Terms};
use throng::anonymity::lattice::search::Strategy;
use throng::anonymity::lattice::strategies::search;
use throng::anonymity::lattice::table::{Records, Table};
use throng::anonymity::lattice::until::Until;
use throng::anonymity::privacy::{Ground, Model, Requirement};
use throng::anonymity::quality::Measure;

/// One attribute of `values` values, on level 1 in the cells of `pairs`, then the root.
fn ages(values: u32, between: Option<Vec<u32>>) -> Domain {
    let raw = Level { cell_of: (0..values).collect(), loss: vec![0.0; values as usize] };
    let between = between.map(|cell_of| {
        let cells = cell_of.iter().max().map_or(0, |&c| c as usize + 1);
        Level { cell_of, loss: vec![0.1; cells] }
    });
    let root = Level { cell_of: vec![0; values as usize], loss: vec![1.0] };
    let levels = [Some(raw), between, Some(root)];
    Domain::new("age", levels.into_iter().flatten().collect()).expect("a hierarchy")
}

/// Fig. 4: a class that was suppressed is merged with those that held; now nothing holds, and 15 are too many to go.
#[test]
fn models_are_not_monotone_under_suppression() {
    // Records 0–2, 3–4 and 5–14 are the classes; the third has one diagnosis only.
    let age: Vec<u32> = (0..15).map(|row| if row < 3 { 0 } else { u32::from(row >= 5) + 1 }).collect();
    let diagnosis: Vec<u32> = (0..15).map(|row| if row < 5 { [0, 1, 2, 0, 1][row] } else { 3 }).collect();
    let records = Records { quasi: vec![age], sensitive: vec![(diagnosis, 4)], ..Records::default() };
    let table = Table::new(vec![ages(3, None)], &records).expect("a table");
    let models = vec![Model::Sensitive { attribute: 0, of: Requirement::Recursive { c: 2.0, l: 2 } }];
    let checker = Checker::new(&table, &Terms { models, limit: 0.67, measure: Measure::Loss }).expect("terms");
    assert_eq!(checker.limit(), 10);
    let (low, high) = (checker.check(&[0]), checker.check(&[1]));
    assert!(low.admissible && low.suppressed == 10, "{low:?}");
    assert!(!high.admissible && high.suppressed == 15, "{high:?}");
}

/// The same for entropy: four values once each hold for ℓ = 3, ten records of a fifth spoil them.
#[test]
fn entropy_is_not_monotone_under_suppression() {
    let age: Vec<u32> = (0..14).map(|row| u32::from(row >= 4)).collect();
    let diagnosis: Vec<u32> = (0..14).map(|row| row.min(4)).collect();
    let records = Records { quasi: vec![age], sensitive: vec![(diagnosis, 5)], ..Records::default() };
    let table = Table::new(vec![ages(2, None)], &records).expect("a table");
    let models = vec![Model::Sensitive { attribute: 0, of: Requirement::Entropy { l: 3.0 } }];
    let checker = Checker::new(&table, &Terms { models, limit: 0.72, measure: Measure::Loss }).expect("terms");
    assert_eq!(checker.limit(), 10);
    assert!(checker.check(&[0]).admissible && !checker.check(&[1]).admissible);
}

/// Fig. 5: with four records suppressed there are two classes, one level up three.
#[test]
fn measures_are_not_monotone_under_suppression() {
    let records = Records { quasi: vec![vec![0, 0, 1, 2, 3, 4]], ..Records::default() };
    let table = Table::new(vec![ages(5, Some(vec![0, 1, 1, 2, 2]))], &records).expect("a table");
    let terms = Terms { models: vec![Model::KAnonymity { k: 2 }], limit: 4.0 / 6.0 + 0.001, measure: Measure::Aecs };
    let checker = Checker::new(&table, &terms).expect("terms");
    assert_eq!(checker.limit(), 4);
    let (low, high) = (checker.check(&[0]), checker.check(&[1]));
    assert_eq!((low.suppressed, low.cost), (4, 6.0 / 2.0));
    assert_eq!((high.suppressed, high.cost), (0, 6.0 / 3.0));
    for measure in [Measure::Discernibility, Measure::Loss, Measure::LossGeometric, Measure::Nue] {
        let checker = Checker::new(&table, &Terms { measure, ..terms.clone() }).expect("terms");
        assert!(checker.check(&[1]).cost < checker.check(&[0]).cost, "{measure:?}");
    }
}

/// With a lower bound, δ-presence is not monotone although nothing is suppressed: a class that has nothing to release is
/// not judged, and merged into another it lowers that one's share.
#[test]
fn presence_is_not_monotone_without_suppression() {
    let records = Records {
        quasi: vec![vec![0, 0, 0, 1]],
        released: Some(vec![false, false, false, true]),
        ..Records::default()
    };
    let table = Table::new(vec![ages(2, None)], &records).expect("a table");
    let models = vec![Model::Presence { min: 0.5, max: 1.0 }];
    let terms = Terms { models, limit: 0.0, measure: Measure::Loss };
    let checker = Checker::new(&table, &terms).expect("terms");
    assert!(checker.check(&[0]).admissible && !checker.check(&[1]).admissible);
    assert!(!Conclusion::AdmissibleAbove.is_sound(&terms, checker.limit()));
    assert!(!Conclusion::InadmissibleBelow.is_sound(&terms, checker.limit()));
}

/// From 46,341 records on a product of two counts leaves 32 bits: a distance computed there accepts this class.
#[test]
fn a_distance_does_not_overflow() {
    let n = 100_000u32;
    // One class holds one value alone, the other all the rest.
    let quasi: Vec<u32> = (0..n).map(|row| u32::from(row >= n / 2)).collect();
    let sensitive: Vec<u32> = (0..n).map(|row| if row < n / 2 { 0 } else { 1 + row % 3 }).collect();
    let records = Records { quasi: vec![quasi], sensitive: vec![(sensitive, 4)], ..Records::default() };
    let table = Table::new(vec![ages(2, None)], &records).expect("a table");
    let tree = Ground::Hierarchical(vec![vec![0, 0, 1, 1], vec![0, 0]]);
    for ground in [Ground::Equal, Ground::Ordered, tree] {
        let models = vec![Model::Sensitive { attribute: 0, of: Requirement::Closeness { t: 0.2, ground } }];
        let checker = Checker::new(&table, &Terms { models, limit: 0.0, measure: Measure::Loss }).expect("terms");
        let outcome = checker.check(&[0]);
        assert!(!outcome.admissible && outcome.failing > 0, "{outcome:?}");
        assert!(checker.check(&[1]).admissible);
    }
}

/// Sixty attributes of five values: keys of 140 bits, a lattice of 3⁶⁰ policies.
#[test]
fn keys_may_be_wider_than_64_bits() {
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    // Most rows differ from one of a few patterns in one attribute.
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
    let table = Table::new(domains.clone(), &Records { quasi, ..Records::default() }).expect("a table");
    let terms = Terms { models: vec![Model::KAnonymity { k: 3 }], limit: 1.0, measure: Measure::Discernibility };
    let checker = Checker::new(&table, &terms).expect("terms");
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
    // And a search in it ends when its time is up, with something.
    let begun = Instant::now();
    let clock = || begun.elapsed();
    let until = Until::timed(&clock, Some(Duration::from_millis(200)));
    let found = search(&checker, Strategy::Bfs, until, &|_| {}).expect("any lattice");
    assert!(found.best.is_some() && !found.complete);
    assert!(search(&checker, Strategy::Ola, Until::proved(), &|_| {}).is_err());
}
