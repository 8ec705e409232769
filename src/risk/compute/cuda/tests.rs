//! The kernels on the emulated device against the CPU counter.

use super::emulator::Emulator;
use super::{CudaCounter, Device, ResidentWindow};
use crate::risk::compute::{AttributeSet, Columns, CpuCounter, GroupCounter};
use proptest::prelude::*;
use std::sync::Arc;

const MEMORY: u64 = 256 << 20;

thread_local! {
    static DEVICE: Arc<Emulator> = Emulator::start(MEMORY, 1);
}

fn device(seed: u64) -> Arc<dyn Device> {
    let device = DEVICE.with(Arc::clone);
    device.reseed(seed);
    device
}

/// A table with skewed columns, some of them functions of the one before.
fn table(rows: usize, cardinalities: &[u32], subjects: Option<u32>, mut seed: u64) -> Columns {
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
    Columns::new(columns, subjects).expect("a table")
}

fn all_sets(width: usize) -> Vec<AttributeSet> {
    (0..1_u32 << width).map(|mask| (0..width).filter(|c| mask >> c & 1 == 1).collect()).collect()
}

/// Everything that a counter answers, from both.
fn agree(found: &dyn GroupCounter, table: &Columns, k: u32) -> Result<(), TestCaseError> {
    let sets = all_sets(table.width());
    let cpu = CpuCounter::new(table, 1);
    let (counts, expected) = (found.count(&sets, k).expect("counted"), cpu.count(&sets, k).expect("counted"));
    for ((set, count), expected) in sets.iter().zip(counts).zip(expected) {
        prop_assert_eq!(count, expected, "{:?}", set);
    }
    let verdicts = found.judge(&sets, k, &|| false).expect("judged");
    prop_assert_eq!(verdicts, cpu.judge(&sets, k, &|| false).expect("judged"));
    for set in [&sets[sets.len() - 1], &sets[1 % sets.len()]] {
        prop_assert_eq!(found.records_below(set, k), cpu.records_below(set, k), "{:?}", set);
    }
    Ok(())
}

fn cardinalities() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(prop_oneof![4 => 1_u32..8, 2 => 8_u32..40, 1 => 300_u32..90_000], 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_device_says_what_the_cpu_says(
        rows in prop_oneof![3 => 0_usize..60, 1 => 500_usize..3000],
        cardinalities in cardinalities(),
        subjects in proptest::option::of(prop_oneof![1_u32..30, 100_u32..3000]),
        k in 2_u32..=6,
        seed: u64,
    ) {
        let table = table(rows, &cardinalities, subjects, seed);
        let device = device(seed);
        let counter = CudaCounter::new(&device, &table, 1, None).expect("there is room");
        agree(&counter, &table, k)?;
        prop_assert_eq!(counter.used().failures, 0);
    }
}
