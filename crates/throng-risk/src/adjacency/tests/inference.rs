use super::reference_adjacency::{CodeRecord, ReferenceAdjacency, columns, empty};
use crate::adjacency::{Adjacency, InferenceMatrix, Triage, TriageCheckOrder, ValueNode};
use crate::counting::{AttributeSet, CountedTable};
use crate::qid::{QidSearchRequest, QidStrategy as Search, search};
use proptest::prelude::*;

/// Attribute 1 is not part of the model.
const ATTRIBUTES: [usize; 6] = [0, 2, 3, 4, 5, 6];
const WIDTH: usize = 7;
const ONE: f64 = 4_294_967_296.0;

fn records() -> impl Strategy<Value = Vec<CodeRecord>> {
    let record = (0_u32..2, 0_u32..3, 0_u32..3, 0_u32..4, 0_u32..8, 0_u32..30).prop_map(|(a, b, c, d, e, f)| {
        // The fourth attribute often follows from two others.
        vec![a, 0, b, c, if e < 5 { a + b } else { d }, e, f]
    });
    proptest::collection::vec(record, 1..60)
}

fn model(records: &[CodeRecord], max_edges: u64) -> Adjacency {
    let mut model = empty(&ATTRIBUTES, max_edges);
    model.add(&columns(records, WIDTH)).expect("a batch");
    model
}

fn reference_model(records: &[CodeRecord]) -> ReferenceAdjacency {
    ReferenceAdjacency::of(&ATTRIBUTES, records.iter().cloned())
}

fn sets(size: usize) -> Vec<Vec<usize>> {
    let all = (0_u32..1 << ATTRIBUTES.len()).filter(|mask| mask.count_ones() as usize == size);
    let mut sets: Vec<Vec<usize>> = all
        .map(|mask| ATTRIBUTES.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, a)| *a).collect())
        .collect();
    sets.sort();
    sets
}

fn reference_cycle_sum(twin: &ReferenceAdjacency, set: &[usize]) -> u64 {
    (0..set.len()).map(|at| twin.m(set[at], set[(at + 1) % set.len()])).sum()
}

fn as_set(set: &[usize]) -> AttributeSet {
    set.iter().copied().collect()
}

fn deviation(rounds: &[(Vec<usize>, u64)], set: &[usize], own: u64) -> f64 {
    let around = |c: usize| {
        let all: Vec<i128> =
            rounds.iter().filter(|(s, _)| s.contains(&c)).map(|(_, round)| i128::from(*round)).collect();
        let (count, sum) = (all.len() as i128, all.iter().sum::<i128>());
        let spread = count * all.iter().map(|x| x * x).sum::<i128>() - sum * sum;
        if spread == 0 { 0.0 } else { (sum - count * i128::from(own)).unsigned_abs() as f64 / (spread as f64).sqrt() }
    };
    set.iter().map(|c| around(*c)).fold(0.0, f64::max)
}

fn exact(records: &[CodeRecord], k: u32) -> Vec<AttributeSet> {
    let table = CountedTable::new(columns(records, WIDTH), None).expect("a table");
    let columns = ATTRIBUTES.into_iter().collect();
    search(
        &table,
        &QidSearchRequest { k, strategy: Search::Exhaustive, threads: 1, budget: None, memory: None, columns },
        &|_| (),
    )
    .minimal_qids
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn rows_and_cycles_equal_the_definitions(records in records()) {
        let (model, twin) = (model(&records, u64::MAX), reference_model(&records));
        let inference = model.inference();
        for a in ATTRIBUTES {
            for b in ATTRIBUTES.into_iter().filter(|b| *b != a) {
                prop_assert_eq!(inference.m(a, b), Some(twin.m(a, b) as f64 / ONE));
            }
        }
        for (&(attribute, code), &n) in &twin.nodes {
            let row: Vec<u64> = twin.edges.iter()
                .filter(|((u, v), _)| *u == (attribute, code) || *v == (attribute, code)).map(|(_, n)| *n).collect();
            let scf: f64 = row.iter().map(|both| *both as f64 / n as f64).sum();
            let node = ValueNode { attribute, code };
            prop_assert_eq!(model.neighbours(node), row.len() as u64);
            prop_assert!((model.scf(node) - scf).abs() < 1e-12);
            prop_assert!((scf - 5.0).abs() < 1e-12);
            prop_assert!((model.mcf(node) - scf / row.len() as f64).abs() < 1e-12);
            let edges = model.row(node);
            prop_assert_eq!(edges.len(), row.len());
            prop_assert!(edges.iter().all(|(v, both)| model.n_both(*v, node) == Some(*both)));
        }
    }

    #[test]
    fn suspects_equal_those_of_the_full_list(records in records(), theta in 0.0_f64..3.0) {
        let (model, twin) = (model(&records, u64::MAX), reference_model(&records));
        let triage = Triage::new(model.inference(), u64::MAX);
        for size in 2..=4 {
            let rounds: Vec<(Vec<usize>, u64)> =
                sets(size).into_iter().map(|set| { let own = reference_cycle_sum(&twin, &set); (set, own) }).collect();
            let mut expected = Vec::new();
            for (set, own) in &rounds {
                let deviation = deviation(&rounds, set, *own);
                prop_assert_eq!(triage.deviation(&as_set(set)), Some(deviation));
                prop_assert_eq!(triage.inference().mu(&as_set(set)), Some(*own as f64 / size as f64 / ONE));
                if deviation > theta {
                    expected.push(as_set(set));
                }
            }
            let suspects = triage.suspects(theta, size, usize::MAX);
            prop_assert!(suspects.complete);
            prop_assert_eq!(&suspects.sets, &expected);
            let cut = triage.suspects(theta, size, 3);
            prop_assert_eq!(cut.complete, expected.len() <= 3);
            prop_assert_eq!(&cut.sets, &expected[..expected.len().min(3)]);
            for c in ATTRIBUTES {
                let around: Vec<f64> = rounds.iter().filter(|(s, _)| s.contains(&c))
                    .map(|(_, own)| *own as f64 / size as f64 / ONE).collect();
                let mean = around.iter().sum::<f64>() / around.len() as f64;
                let variance = around.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / around.len() as f64;
                let own = triage.expectation(c, size).expect("judged");
                prop_assert_eq!(own.sets, around.len() as u64);
                prop_assert!((own.mean - mean).abs() < 1e-12);
                prop_assert!((own.deviation - variance.sqrt()).abs() < 1e-7);
            }
        }
    }

    #[test]
    fn chosen_theta_is_the_largest_that_covers_every_qid(records in records(), k in 2_u32..5) {
        let triage = Triage::new(model(&records, u64::MAX).inference(), u64::MAX);
        let qids: Vec<AttributeSet> = exact(&records, k).into_iter().filter(|set| (2..=4).contains(&set.len())).collect();
        let suspect = |theta: f64, set: &AttributeSet| triage.suspects(theta, set.len(), usize::MAX).sets.contains(set);
        match triage.choose_theta(&qids) {
            Some(theta) => {
                prop_assert!(qids.iter().all(|set| suspect(theta, set)));
                prop_assert!(!qids.iter().all(|set| suspect(theta.next_up(), set)));
            }
            None => prop_assert!(qids.is_empty() || !qids.iter().all(|set| suspect(0.0, set))),
        }
    }

    #[test]
    fn comparison_counts_equal_the_full_list(records in records(), k in 2_u32..5) {
        let triage = Triage::new(model(&records, u64::MAX).inference(), u64::MAX);
        let minimal = exact(&records, k);
        let report = triage.compare(&minimal);
        let theta = report.theta.unwrap_or(f64::INFINITY);
        for detection in &report.detections {
            let all: Vec<AttributeSet> = sets(detection.size).iter().map(|set| as_set(set)).collect();
            let is_qid = |set: &&AttributeSet| minimal.iter().any(|part| part.is_subset(set));
            let suspects = triage.suspects(theta, detection.size, usize::MAX).sets;
            prop_assert_eq!(detection.sets, all.len() as u64);
            prop_assert_eq!(detection.qids, all.iter().filter(is_qid).count() as u64);
            prop_assert_eq!(detection.suspects, suspects.len() as u64);
            prop_assert_eq!(detection.hits, suspects.iter().filter(is_qid).count() as u64);
            let wanted: Vec<&AttributeSet> = minimal.iter().filter(|set| set.len() == detection.size).collect();
            prop_assert_eq!(detection.minimal, wanted.len() as u64);
            let efforts: Vec<_> = report.efforts.iter().filter(|effort| effort.size == detection.size).collect();
            prop_assert_eq!(efforts.len(), if wanted.is_empty() { 0 } else { 5 });
            let mut ordered = all.clone();
            ordered.retain(|set| wanted.contains(&set) || !is_qid(&set));
            triage.sort_for_check(&mut ordered);
            prop_assert!(efforts.iter().all(|effort| effort.open == ordered.len() as u64));
            let cardinality = |set: &AttributeSet| {
                let values = |c: usize| records.iter().map(|record| record[c]).collect::<std::collections::BTreeSet<_>>();
                set.iter().map(|c| values(c).len()).product::<usize>()
            };
            let mut falling = ordered.clone();
            falling.sort();
            falling.sort_by_key(|set| std::cmp::Reverse(cardinality(set)));
            for effort in efforts.iter().filter(|effort| effort.order == TriageCheckOrder::Cardinality) {
                let last = falling.iter().rposition(|set| wanted.contains(&set)).map_or(0, |at| at + 1);
                prop_assert_eq!(effort.all, last as f64);
            }
            let mu = |set: &AttributeSet| triage.inference().mu(set).expect("a cycle");
            let mut rising = ordered.clone();
            rising.sort_by(|one, other| mu(one).total_cmp(&mu(other)).then(one.cmp(other)));
            for effort in efforts.iter().filter(|effort| effort.order == TriageCheckOrder::Independence) {
                let last = rising.iter().rposition(|set| wanted.contains(&set)).map_or(0, |at| at + 1);
                prop_assert_eq!(effort.all, last as f64);
            }
            for effort in efforts.iter().filter(|effort| effort.order == TriageCheckOrder::RandomOrder) {
                let expected = (ordered.len() + 1) as f64 * wanted.len() as f64 / (wanted.len() + 1) as f64;
                prop_assert!((effort.all - expected).abs() < 1e-9);
            }
            for effort in efforts.iter().filter(|effort| effort.order == TriageCheckOrder::Deviation) {
                let met: Vec<usize> = (0..ordered.len()).filter(|at| wanted.contains(&&ordered[*at])).collect();
                prop_assert_eq!(effort.half, (met[wanted.len().div_ceil(2) - 1] + 1) as f64);
                prop_assert_eq!(effort.all, (met[wanted.len() - 1] + 1) as f64);
            }
        }
    }
}

#[test]
fn random_order_effort_equals_mean_over_all_orders() {
    // Any 3 of 6 positions are equally likely.
    let places: Vec<Vec<u32>> = (0_u32..64)
        .filter(|mask| mask.count_ones() == 3)
        .map(|mask| (0..6).filter(|at| mask >> at & 1 == 1).collect())
        .collect();
    for r in 0..3 {
        let mean = places.iter().map(|marked| f64::from(marked[r] + 1)).sum::<f64>() / places.len() as f64;
        assert!((mean - (r + 1) as f64 * 7.0 / 4.0).abs() < 1e-12);
    }
}

#[test]
fn left_out_pair_has_highest_inference() {
    let records: Vec<CodeRecord> = (0..40).map(|r| vec![r % 2, 0, r % 3, r / 20, r % 4, r, r + 7]).collect();
    let model = model(&records, 399);
    assert_eq!(model.left_out_pairs(), [(5, 6)]);
    let inference = model.inference();
    assert_eq!(inference.m(5, 6), Some(1.0));
    assert_eq!(inference.m(6, 5), Some(1.0));
    let pair = |a, b| AttributeSet::from_iter([a, b]);
    assert!(Triage::new(inference, u64::MAX).deviation(&pair(5, 6)) > Some(0.0));
}

/// Six attributes have 15 pairs, 20 sets of three and 15 of four.
#[test]
fn triage_skips_sizes_with_too_many_sets() {
    let records: Vec<CodeRecord> = (0..40).map(|r| vec![r % 2, r % 5, r % 3, r / 20, r % 4, r, r / 3]).collect();
    let set = |size: usize| as_set(&ATTRIBUTES[..size]);
    for (most_sets, judged) in [(14, 0), (15, 2), (19, 2), (20, 4)] {
        let triage = Triage::new(model(&records, u64::MAX).inference(), most_sets);
        for size in 2..=4 {
            assert_eq!(triage.deviation(&set(size)).is_some(), size <= judged, "{most_sets}, {size}");
            assert_eq!(triage.expectation(0, size).is_some(), size <= judged, "{most_sets}, {size}");
        }
        let report = triage.compare(&[set(2), set(3)]);
        assert_eq!(report.left_out, (judged.max(1) + 1..=4).collect::<Vec<_>>());
        assert!(judged > 0 || report.theta.is_none(), "{most_sets}");
    }
}

#[test]
fn narrow_model_has_no_judged_sets() {
    let mut model = empty(&[3], 10);
    model.add(&[vec![], vec![], vec![], vec![1, 2]]).expect("a batch");
    let triage = Triage::new(model.inference(), u64::MAX);
    assert_eq!(triage.deviation(&AttributeSet::from_iter([3])), None);
    assert_eq!(triage.expectation(3, 2), None);
    assert_eq!(triage.suspects(0.0, 2, 10).sets, []);
    assert_eq!(triage.compare(&[AttributeSet::from_iter([3])]).theta, None);
    let nothing: InferenceMatrix = empty(&[], 10).inference();
    assert!(Triage::new(nothing, u64::MAX).suspects(0.0, 3, 10).complete);
}
