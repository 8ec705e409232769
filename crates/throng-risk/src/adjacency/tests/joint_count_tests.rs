use super::reference_adjacency::{CodeRecord, columns, empty};
use crate::adjacency::{Adjacency, AdjacencyError, MAX_CODES, ValueNode};
use crate::counting::cuda::emulator::EmulatedDevice;
use crate::counting::cuda::{CudaCounter, Device, DeviceBudget};
use crate::counting::{CycleInference, PairInference, all_pairs, count_pairs, cycle_inference};
use proptest::prelude::*;
use std::sync::Arc;

const WIDTH: usize = 5;
const ATTRIBUTES: [usize; 4] = [0, 1, 3, 4];

thread_local! {
    static DEVICE: Arc<EmulatedDevice> = EmulatedDevice::start(64 << 20, 1);
}

fn batches() -> impl Strategy<Value = Vec<Vec<CodeRecord>>> {
    let code = prop_oneof![4 => 0_u32..4, 1 => 0_u32..60, 1 => 0_u32..2000];
    let record = proptest::collection::vec(code, WIDTH);
    proptest::collection::vec(proptest::collection::vec(record, 0..60), 1..4)
}

fn add_counted(
    model: &mut Adjacency,
    batch: &[Vec<u32>],
    device: Option<&Arc<dyn Device>>,
    budget: Option<DeviceBudget>,
) {
    let table = model.table(batch).expect("a batch of this schema");
    let counter = device.map(|device| CudaCounter::new(device, &table, 1, budget).expect("there is room"));
    let mut asked = 0;
    let mut count = |pairs: &[(usize, usize)]| {
        asked += pairs.len();
        counter.as_ref().map_or_else(|| count_pairs(&table, pairs), |counter| counter.count_pairs(pairs))
    };
    let kept = model.counted_pair_indices().len();
    model.add_counted(batch, &table, &mut count).expect("a batch");
    assert!(asked <= kept, "nobody is asked about a pair that is left out");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn joint_counts_give_the_model_of_add(
        batches in batches(),
        max_edges in prop_oneof![3 => Just(1_000_000_u64), 1 => 10_u64..400],
        on_device: bool,
        little in proptest::option::of((1000_u64..20_000, 3_000_u64..100_000)),
        seed: u64,
    ) {
        let emulator = DEVICE.with(Arc::clone);
        emulator.reseed(seed);
        let device: Arc<dyn Device> = emulator;
        let budget = little.map(|(rows_bytes, scratch_bytes)| DeviceBudget { rows_bytes, scratch_bytes });
        let mut model = empty(&ATTRIBUTES, max_edges);
        let mut expected = model.clone();
        for batch in batches {
            let batch = columns(&batch, WIDTH);
            add_counted(&mut model, &batch, on_device.then_some(&device), budget);
            expected.add(&batch).expect("a batch");
            prop_assert_eq!(&model, &expected);
            prop_assert_eq!(model.inference(), expected.inference());
            prop_assert_eq!(model.left_out_pairs(), expected.left_out_pairs());
        }
    }

    #[test]
    fn cycle_inference_is_identical_on_cpu_and_device(batches in batches(), seed: u64) {
        let emulator = DEVICE.with(Arc::clone);
        emulator.reseed(seed);
        let device: Arc<dyn Device> = emulator;
        let batch = columns(&batches.concat(), WIDTH);
        let mut model = empty(&ATTRIBUTES, 1_000_000);
        model.add(&batch).expect("a batch");
        let table = model.table(&batch).expect("a batch of this schema");
        let pairs = all_pairs(table.width());
        let nodes = count_pairs(&table, &pairs).iter().map(|counts| PairInference::from_counts(counts).nodes).collect::<Vec<_>>();
        let found = cycle_inference(&table, pairs.into_iter().zip(nodes));
        let counter = CudaCounter::new(&device, &table, 1, None).expect("there is room");
        prop_assert_eq!(&counter.cycle_inference(), &found);
        prop_assert_eq!(counter.usage().failures, 0);
        let held: Vec<Vec<CycleInference>> = ATTRIBUTES.iter().map(|attribute| {
            let own = model.nodes().filter(|(node, _)| node.attribute == *attribute);
            own.map(|(node, _)| CycleInference { scf: model.scf(node), mcf: model.mcf(node) }).collect()
        }).collect();
        prop_assert_eq!(found, held);
    }
}

#[test]
fn invalid_batch_leaves_joint_count_model_unchanged() {
    let mut model = empty(&ATTRIBUTES, 1000);
    let batch = columns(&[vec![1, 2, 3, 4, 5], vec![1, 2, 3, 4, 6]], WIDTH);
    add_counted(&mut model, &batch, None, None);
    let before = model.clone();
    let table = model.table(&batch).expect("a batch");
    let mut never = |_: &[(usize, usize)]| -> Vec<_> { panic!("nobody is asked") };
    let short = model.add_counted(&batch[..3], &table, &mut never);
    assert_eq!(short, Err(AdjacencyError::Width { attribute: 3, columns: 3 }));
    let mut beyond = batch.clone();
    beyond[4][1] = MAX_CODES;
    assert!(matches!(model.add_counted(&beyond, &table, &mut never), Err(AdjacencyError::Code { attribute: 4, .. })));
    assert_eq!(model.table(&beyond), None);
    assert_eq!(model, before);
    assert_eq!(model.n(ValueNode { attribute: 4, code: 6 }), 1);
}
