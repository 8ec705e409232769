use super::reference_adjacency::{CodeRecord, ReferenceAdjacency, columns, empty};
use crate::adjacency::{Adjacency, AdjacencyError};
use proptest::prelude::*;
use throng_core::values::codebook::FORGOTTEN;

/// Columns 1 and 4 are not part of the model.
const WIDTH: usize = 6;
const ATTRIBUTES: [usize; 4] = [0, 2, 3, 5];

#[derive(Clone, Debug)]
enum AdjacencyChange {
    Add(Vec<CodeRecord>),
    Expire(usize),
    Compact(usize),
}

/// One code in three is from a wider domain, so that blocks change between dense and sparse.
fn record() -> impl Strategy<Value = CodeRecord> {
    let code = prop_oneof![4 => 0_u32..4, 1 => 0_u32..60, 1 => 0_u32..2000];
    proptest::collection::vec(code, WIDTH)
}

fn change() -> impl Strategy<Value = AdjacencyChange> {
    prop_oneof![
        3 => proptest::collection::vec(record(), 0..40).prop_map(AdjacencyChange::Add),
        2 => (0_usize..50).prop_map(AdjacencyChange::Expire),
        1 => (0..WIDTH).prop_map(AdjacencyChange::Compact),
    ]
}

fn compacted(records: &[CodeRecord], at: usize) -> Vec<u32> {
    let most = records.iter().map(|record| record[at]).max().map_or(0, |code| code as usize + 1);
    let mut next = 0;
    let number = |code: usize| {
        let held = records.iter().any(|record| record[at] == code as u32);
        next += u32::from(held);
        if held { next - 1 } else { FORGOTTEN }
    };
    (0..most).map(number).collect()
}

fn apply(model: &mut Adjacency, records: &mut Vec<CodeRecord>, change: AdjacencyChange) {
    match change {
        AdjacencyChange::Add(batch) => {
            model.add(&columns(&batch, WIDTH)).expect("a batch");
            records.extend(batch);
        }
        AdjacencyChange::Expire(count) => {
            let leaving: Vec<CodeRecord> = records.drain(..count.min(records.len())).collect();
            model.subtract(&columns(&leaving, WIDTH)).expect("records that were added");
        }
        AdjacencyChange::Compact(at) => {
            let map = compacted(records, at);
            model.remap(at, &map).expect("nothing held is forgotten");
            records.iter_mut().for_each(|record| record[at] = map[record[at] as usize]);
        }
    }
}

fn reference_of(records: &[CodeRecord]) -> ReferenceAdjacency {
    ReferenceAdjacency::of(&ATTRIBUTES, records.iter().cloned())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn incremental_model_equals_rebuilt_model(changes in proptest::collection::vec(change(), 0..12)) {
        let (mut model, mut records) = (empty(&ATTRIBUTES, u64::MAX), Vec::new());
        for change in changes {
            apply(&mut model, &mut records, change);
            prop_assert_eq!(ReferenceAdjacency::read_model(&model), reference_of(&records));
        }
        let mut rebuilt = empty(&ATTRIBUTES, u64::MAX);
        rebuilt.add(&columns(&records, WIDTH)).expect("a batch");
        prop_assert_eq!(&model, &rebuilt);
        prop_assert_eq!(model.inference(), rebuilt.inference());
        prop_assert_eq!((model.node_count(), model.records()), (rebuilt.nodes().count() as u64, records.len() as u64));
        prop_assert_eq!(model.edge_count(), rebuilt.edges().count() as u64);
    }

    #[test]
    fn counted_pairs_stay_exact_at_the_edge_limit(
        changes in proptest::collection::vec(change(), 0..12),
        max_edges in 0_u64..300,
    ) {
        let (mut model, mut records) = (empty(&ATTRIBUTES, max_edges), Vec::new());
        let mut gone = Vec::new();
        for change in changes {
            apply(&mut model, &mut records, change);
            let left_out = model.left_out_pairs();
            prop_assert!(gone.iter().all(|pair| left_out.contains(pair)), "a pair came back");
            prop_assert!(model.edge_count() <= max_edges);
            prop_assert_eq!(ReferenceAdjacency::read_model(&model), reference_of(&records).without(&left_out));
            gone = left_out;
        }
    }

    #[test]
    fn subtracting_unknown_records_fails_without_change(
        added in proptest::collection::vec(record(), 1..30),
        alien in proptest::collection::vec(record(), 1..5),
    ) {
        let mut model = empty(&ATTRIBUTES, u64::MAX);
        model.add(&columns(&added, WIDTH)).expect("a batch");
        let before = model.clone();
        let (own, theirs) = (reference_of(&added), reference_of(&alien));
        let is_part = theirs.edges.iter().all(|(edge, n)| own.edges.get(edge).is_some_and(|have| have >= n));
        let taken = model.subtract(&columns(&alien, WIDTH));
        prop_assert_eq!(taken.is_ok(), is_part);
        if !is_part {
            prop_assert_eq!(&model, &before);
            prop_assert_eq!(model.inference(), before.inference());
        }
    }

}

#[test]
fn invalid_batch_error_names_the_attribute() {
    let mut model = empty(&[0, 2], 100);
    assert_eq!(model.add(&[vec![1]]), Err(AdjacencyError::Width { attribute: 2, columns: 1 }));
    let ragged = [vec![1], vec![], vec![1, 2]];
    assert_eq!(model.add(&ragged), Err(AdjacencyError::Ragged { attribute: 2, found: 2, expected: 1 }));
    let far = [vec![1], vec![], vec![FORGOTTEN]];
    assert_eq!(model.add(&far), Err(AdjacencyError::Code { attribute: 2, code: FORGOTTEN }));
    assert_eq!(model, empty(&[0, 2], 100));
    model.add(&[vec![3], vec![], vec![1]]).expect("a batch");
    assert_eq!(model.remap(0, &[0, 1, 2]), Err(AdjacencyError::DropsUsedValue { attribute: 0, records: 1 }));
    assert_eq!(model.remap(1, &[]), Ok(()));
    let falling = Adjacency::new(&[2, 2], model.limits());
    assert_eq!(falling.map(|_| ()), Err(AdjacencyError::Attributes { attribute: 2 }));
    let beyond = Adjacency::new(&[0, 1024], model.limits());
    assert_eq!(beyond.map(|_| ()), Err(AdjacencyError::Attributes { attribute: 1024 }));
}

#[test]
fn full_model_rejects_records_without_change() {
    let mut model = empty(&[0, 1], 100);
    model.records = u32::MAX;
    let before = model.clone();
    assert_eq!(model.add(&[vec![7], vec![7]]), Err(AdjacencyError::Full { records: 1 << 32 }));
    assert_eq!(model, before);
}
