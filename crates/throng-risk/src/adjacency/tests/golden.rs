//! Examples of \[POD] §5.1, to the last printed digit.

use crate::adjacency::{Adjacency, AdjacencyLimits, Triage, ValueNode};
use crate::counting::AttributeSet;

const GENDER: usize = 0;
const ZIP: usize = 1;
const DRUG: usize = 2;
const DISEASE: usize = 3;

/// Codes in the order of \[POD] Table 5.1.
const M: ValueNode = ValueNode { attribute: GENDER, code: 0 };
const F: ValueNode = ValueNode { attribute: GENDER, code: 1 };
const Z10001: ValueNode = ValueNode { attribute: ZIP, code: 0 };
const Z64123: ValueNode = ValueNode { attribute: ZIP, code: 1 };
const Z60617: ValueNode = ValueNode { attribute: ZIP, code: 2 };
const CORTISOL: ValueNode = ValueNode { attribute: DRUG, code: 0 };
const REMDESIVIR: ValueNode = ValueNode { attribute: DRUG, code: 1 };
const COVID: ValueNode = ValueNode { attribute: DISEASE, code: 0 };
const NODES: [ValueNode; 8] = [M, F, Z10001, Z64123, Z60617, CORTISOL, REMDESIVIR, COVID];
const Z10002: ValueNode = ValueNode { attribute: ZIP, code: 3 };
const HYDROXYCHLOROQUINE: ValueNode = ValueNode { attribute: DRUG, code: 2 };

/// \[POD] Table 3.1: M 10001 remdesivir, F 64123 cortisol, M 60617 cortisol, M 60617 remdesivir; all COVID.
fn table_3_1() -> Vec<Vec<u32>> {
    vec![vec![0, 1, 0, 0], vec![0, 1, 2, 2], vec![1, 0, 0, 1], vec![0; 4]]
}

fn model() -> Adjacency {
    let mut model = Adjacency::new(&[GENDER, ZIP, DRUG, DISEASE], AdjacencyLimits::default()).expect("four attributes");
    model.add(&table_3_1()).expect("a batch");
    model
}

#[test]
fn probabilities_of_table_3_1_equal_table_5_1() {
    const THIRD: f64 = 1.0 / 3.0;
    #[rustfmt::skip]
    let expected = [
        [1.0,  0.0,  THIRD, 0.0,  2.0 * THIRD, THIRD, 2.0 * THIRD, 1.0],
        [0.0,  1.0,  0.0,   1.0,  0.0,         1.0,   0.0,         1.0],
        [1.0,  0.0,  1.0,   0.0,  0.0,         0.0,   1.0,         1.0],
        [0.0,  1.0,  0.0,   1.0,  0.0,         1.0,   0.0,         1.0],
        [1.0,  0.0,  0.0,   0.0,  1.0,         0.5,   0.5,         1.0],
        [0.5,  0.5,  0.0,   0.5,  0.5,         1.0,   0.0,         1.0],
        [1.0,  0.0,  0.5,   0.0,  0.5,         0.0,   1.0,         1.0],
        [0.75, 0.25, 0.25,  0.25, 0.5,         0.5,   0.5,         1.0],
    ];
    let model = model();
    for (u, row) in NODES.into_iter().zip(expected) {
        for (v, p) in NODES.into_iter().zip(row) {
            // The diagonal blocks of [POD] Table 5.1 are 1 and 0, and absent here.
            let own = (u.attribute != v.attribute).then_some(p);
            assert_eq!(model.p(v, u), own, "P({v:?}|{u:?})");
        }
    }
    assert_eq!((model.node_count(), model.edge_count()), (8, 17));
}

#[test]
fn example_3_probabilities_are_conditional() {
    let model = model();
    assert_eq!(model.p(Z60617, M), Some(2.0 / 3.0));
    assert_eq!(model.p(Z10001, M), Some(1.0 / 3.0));
    assert_eq!(model.p(Z64123, F), Some(1.0));
}

#[test]
fn cycle_inference_equals_equations_5_2_and_5_3() {
    let model = model();
    for u in NODES {
        assert!((model.scf(u) - 3.0).abs() < 1e-15, "one a further attribute");
    }
    // Example 4: F has the highest mean inference, as have the values of a single record.
    assert_eq!(model.neighbours(F), 3);
    assert_eq!(model.mcf(F), 1.0);
    assert_eq!(NODES.into_iter().filter(|u| model.mcf(*u) == 1.0).collect::<Vec<_>>(), [F, Z10001, Z64123]);
    assert_eq!(model.neighbours(COVID), 7);
    assert!((model.mcf(COVID) - 3.0 / 7.0).abs() < 1e-15);
}

/// \[POD] Table 5.2: after the history, {F, 10001, remdesivir, COVID} is common and {F, 10002,
/// hydroxychloroquine, COVID} an outlier.
#[test]
fn stream_of_table_5_2_shows_the_outlier() {
    let mut model = model();
    let batch = vec![vec![1, 1], vec![0, 3], vec![1, 2], vec![0, 0]];
    model.add(&batch).expect("two more records");
    let blends = [F, Z10001, REMDESIVIR, COVID];
    let stands_out = [F, Z10002, HYDROXYCHLOROQUINE, COVID];
    let lonely = |record: [ValueNode; 4]| record.into_iter().filter(|node| model.n(*node) == 1).count();
    assert_eq!((lonely(blends), lonely(stands_out)), (0, 2));
    let mean = |record: [ValueNode; 4]| record.into_iter().map(|node| model.mcf(node)).sum::<f64>() / 4.0;
    assert!(mean(blends) < mean(stands_out), "{} {}", mean(blends), mean(stands_out));
    let mut alone = Adjacency::new(&[GENDER, ZIP, DRUG, DISEASE], AdjacencyLimits::default()).expect("four attributes");
    alone.add(&batch).expect("a batch");
    assert_eq!((alone.n(Z10001), alone.n(Z10002)), (1, 1));
    let mut at_once =
        Adjacency::new(&[GENDER, ZIP, DRUG, DISEASE], AdjacencyLimits::default()).expect("four attributes");
    let whole: Vec<Vec<u32>> = table_3_1().into_iter().zip(&batch).map(|(a, b)| [a, b.clone()].concat()).collect();
    at_once.add(&whole).expect("a batch");
    assert_eq!(model, at_once);
    model.subtract(&batch).expect("they are there");
    assert_eq!(model, self::model());
}

#[test]
fn cycle_means_of_table_3_1_are_exact() {
    let inference = model().inference();
    // 3/4 · 1/2 + 1/4 · 1.
    assert_eq!(inference.m(GENDER, ZIP), Some(0.625));
    assert_eq!(inference.m(ZIP, GENDER), Some(1.0));
    assert_eq!(inference.mu(&AttributeSet::from_iter([GENDER, ZIP])), Some(0.8125));
    assert_eq!(inference.mu(&AttributeSet::from_iter([GENDER])), None);
    let triage = Triage::new(inference, u64::MAX);
    let around = triage.expectation(GENDER, 2).expect("pairs");
    assert_eq!(around.sets, 3);
}
