//! After any sequence of changes the model is the one of the records that are left.

use super::twin::{Record, Twin, columns, empty};
use crate::adjacency::{Adjacency, AdjacencyError};
use proptest::prelude::*;
use throng_core::values::codebook::FORGOTTEN;

/// Columns of the schema; 1 and 4 take no part.
const WIDTH: usize = 6;
const ATTRIBUTES: [usize; 4] = [0, 2, 3, 5];

/// One thing that happens to a model.
#[derive(Clone, Debug)]
enum Change {
    Add(Vec<Record>),
    /// The oldest records leave.
    Expire(usize),
    /// A codebook is compacted: codes that no record holds are forgotten, the others move down.
    Compact(usize),
}

/// Small codes, and for one column in three a far wider domain, so that blocks are dense and sparse and change.
fn record() -> impl Strategy<Value = Record> {
    let code = prop_oneof![4 => 0_u32..4, 1 => 0_u32..60, 1 => 0_u32..2000];
    proptest::collection::vec(code, WIDTH)
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => proptest::collection::vec(record(), 0..40).prop_map(Change::Add),
        2 => (0_usize..50).prop_map(Change::Expire),
        1 => (0..WIDTH).prop_map(Change::Compact),
    ]
}

/// Old → new codes where only those of `records` are kept.
fn compacted(records: &[Record], at: usize) -> Vec<u32> {
    let most = records.iter().map(|record| record[at]).max().map_or(0, |code| code as usize + 1);
    let mut next = 0;
    let number = |code: usize| {
        let held = records.iter().any(|record| record[at] == code as u32);
        next += u32::from(held);
        if held { next - 1 } else { FORGOTTEN }
    };
    (0..most).map(number).collect()
}

fn apply(model: &mut Adjacency, records: &mut Vec<Record>, change: Change) {
    match change {
        Change::Add(batch) => {
            model.add(&columns(&batch, WIDTH)).expect("a batch");
            records.extend(batch);
        }
        Change::Expire(count) => {
            let leaving: Vec<Record> = records.drain(..count.min(records.len())).collect();
            model.subtract(&columns(&leaving, WIDTH)).expect("records that were added");
        }
        Change::Compact(at) => {
            let map = compacted(records, at);
            model.remap(at, &map).expect("nothing held is forgotten");
            records.iter_mut().for_each(|record| record[at] = map[record[at] as usize]);
        }
    }
}

fn whole(records: &[Record]) -> Twin {
    Twin::of(&ATTRIBUTES, records.iter().cloned())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn incremental_is_rebuilt(changes in proptest::collection::vec(change(), 0..12)) {
        let (mut model, mut records) = (empty(&ATTRIBUTES, u64::MAX), Vec::new());
        for change in changes {
            apply(&mut model, &mut records, change);
            prop_assert_eq!(Twin::read(&model), whole(&records));
        }
        let mut rebuilt = empty(&ATTRIBUTES, u64::MAX);
        rebuilt.add(&columns(&records, WIDTH)).expect("a batch");
        prop_assert_eq!(&model, &rebuilt);
        prop_assert_eq!(model.inference(), rebuilt.inference());
        prop_assert_eq!((model.node_count(), model.records()), (rebuilt.nodes().count() as u64, records.len() as u64));
        prop_assert_eq!(model.edge_count(), rebuilt.edges().count() as u64);
    }

    #[test]
    fn at_the_bound_what_is_kept_is_exact(
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
            prop_assert_eq!(Twin::read(&model), whole(&records).without(&left_out));
            gone = left_out;
        }
    }

    #[test]
    fn records_that_were_not_added_are_refused_and_change_nothing(
        added in proptest::collection::vec(record(), 1..30),
        alien in proptest::collection::vec(record(), 1..5),
    ) {
        let mut model = empty(&ATTRIBUTES, u64::MAX);
        model.add(&columns(&added, WIDTH)).expect("a batch");
        let before = model.clone();
        let (own, theirs) = (whole(&added), whole(&alien));
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
fn what_is_no_batch_is_refused_with_the_place() {
    let mut model = empty(&[0, 2], 100);
    assert_eq!(model.add(&[vec![1]]), Err(AdjacencyError::Width { attribute: 2, columns: 1 }));
    let ragged = [vec![1], vec![], vec![1, 2]];
    assert_eq!(model.add(&ragged), Err(AdjacencyError::Ragged { attribute: 2, found: 2, expected: 1 }));
    let far = [vec![1], vec![], vec![FORGOTTEN]];
    assert_eq!(model.add(&far), Err(AdjacencyError::Code { attribute: 2, code: FORGOTTEN }));
    assert_eq!(model, empty(&[0, 2], 100));
    model.add(&[vec![3], vec![], vec![1]]).expect("a batch");
    assert_eq!(model.remap(0, &[0, 1, 2]), Err(AdjacencyError::Forgets { attribute: 0, records: 1 }));
    assert_eq!(model.remap(1, &[]), Ok(()));
    let falling = Adjacency::new(&[2, 2], model.limits());
    assert_eq!(falling.map(|_| ()), Err(AdjacencyError::Attributes { attribute: 2 }));
    let beyond = Adjacency::new(&[0, 1024], model.limits());
    assert_eq!(beyond.map(|_| ()), Err(AdjacencyError::Attributes { attribute: 1024 }));
}

/// Counts have 32 bits.
#[test]
fn a_full_model_refuses_more_and_stays_as_it_was() {
    let mut model = empty(&[0, 1], 100);
    model.records = u32::MAX;
    let before = model.clone();
    assert_eq!(model.add(&[vec![7], vec![7]]), Err(AdjacencyError::Full { records: 1 << 32 }));
    assert_eq!(model, before);
}
