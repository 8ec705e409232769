//! Compares the emulated kernels with the CPU counter.

use super::emulator::EmulatedDevice;
use super::{CudaCounter, Device, DeviceBudget, DeviceError, ResidentWindow, StreamWindow, WindowSnapshot};
use crate::counting::{
    AttributeSet, BackendChoice, ComputeError, CountedTable, CpuCounter, GroupCounter, SelectedBackend,
};
use crate::counting::{PairInference, all_pairs, count_pairs};
use proptest::prelude::*;
use std::sync::Arc;

const EMULATED_MEMORY: u64 = 256 << 20;

thread_local! {
    static DEVICE: Arc<EmulatedDevice> = EmulatedDevice::start(EMULATED_MEMORY, 1);
    static SMALL: Arc<EmulatedDevice> = EmulatedDevice::with_little_shared_memory(EMULATED_MEMORY, 1);
}

fn device(seed: u64) -> Arc<dyn Device> {
    let device = if seed.is_multiple_of(2) { SMALL.with(Arc::clone) } else { DEVICE.with(Arc::clone) };
    device.reseed(seed);
    device
}

fn table(rows: usize, cardinalities: &[u32], subjects: Option<u32>, mut seed: u64) -> CountedTable {
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
    CountedTable::new(columns, subjects).expect("a table")
}

fn all_sets(width: usize) -> Vec<AttributeSet> {
    (0..1_u32 << width).map(|mask| (0..width).filter(|c| mask >> c & 1 == 1).collect()).collect()
}

fn check_against_cpu(found: &dyn GroupCounter, table: &CountedTable, k: u32) -> Result<(), TestCaseError> {
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

fn rows() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 0_usize..60, 1 => 500_usize..3000]
}

fn subjects() -> impl Strategy<Value = Option<u32>> {
    proptest::option::of(prop_oneof![1_u32..30, 100_u32..3000])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn device_results_match_cpu(
        (rows, cardinalities, subjects) in (rows(), cardinalities(), subjects()),
        k in 2_u32..=6,
        seed: u64,
    ) {
        let table = table(rows, &cardinalities, subjects, seed);
        let counter = CudaCounter::new(&device(seed), &table, 1, None).expect("there is room");
        check_against_cpu(&counter, &table, k)?;
        let used = counter.usage();
        prop_assert_eq!(used.failures, 0);
        // Each set is counted and judged; two are queried for records.
        let sets = all_sets(table.width());
        let asked = sets.iter().chain(&sets).chain([&sets[sets.len() - 1], &sets[1]]);
        let left = asked.filter(|set| set.iter().all(|c| table.cardinality(c) < 2)).count() as u64;
        prop_assert_eq!(used.left_to_the_cpu, left);
    }

    #[test]
    fn small_budget_keeps_device_results(
        (rows, cardinalities, subjects) in (rows(), cardinalities(), subjects()),
        k in 2_u32..=6,
        (rows_bytes, scratch_bytes) in (10_u64..20_000, 500_u64..100_000),
        seed: u64,
    ) {
        let table = table(rows, &cardinalities, subjects, seed);
        let budget = DeviceBudget { rows_bytes, scratch_bytes };
        let counter = CudaCounter::new(&device(seed), &table, 1, Some(budget)).expect("there is room");
        check_against_cpu(&counter, &table, k)?;
        prop_assert_eq!(counter.usage().failures, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn resident_window_keeps_newest_rows(
        capacity in 1_usize..200,
        batches in proptest::collection::vec((0_usize..150, prop_oneof![1_u32..5, 200_u32..400, 65_000_u32..70_000]), 1..5),
        people: bool,
        k in 2_u32..=5,
        mut seed: u64,
    ) {
        let device = device(seed);
        let mut resident = ResidentWindow::new(&device, capacity, &[1, 1, 1], people).expect("there is room");
        let mut held: Vec<Vec<u32>> = vec![Vec::new(); 4];
        for (rows, most) in batches {
            let mut codes: Vec<Vec<u32>> = Vec::new();
            for column in 0..4_u32 {
                let most = if column == 1 { most } else { most.min(6) };
                codes.push((0..rows).map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(column.into());
                    (seed >> 40) as u32 % most
                }).collect());
            }
            let columns: Vec<&[u32]> = codes[..3].iter().map(Vec::as_slice).collect();
            resident.push(&columns, people.then_some(codes[3].as_slice())).expect("there is room");
            for (held, codes) in held.iter_mut().zip(&codes) {
                held.extend(codes);
                held.drain(..held.len().saturating_sub(capacity));
            }
            let table = CountedTable::new(held[..3].to_vec(), people.then(|| held[3].clone())).expect("a table");
            let counter = CudaCounter::over_window(&device, &resident, &table, 1, None).expect("there is room");
            check_against_cpu(&counter, &table, k)?;
            prop_assert_eq!(counter.usage().failures, 0);
        }
    }

    #[test]
    fn device_failure_falls_back_to_cpu(
        (rows, cardinalities, subjects) in (rows(), cardinalities(), subjects()),
        k in 2_u32..=6,
        calls in 0_u64..120,
        seed: u64,
    ) {
        let table = table(rows, &cardinalities, subjects, seed);
        let device = DEVICE.with(Arc::clone);
        let taken = device.allocated_bytes();
        let shared: Arc<dyn Device> = device.clone();
        let counter = CudaCounter::new(&shared, &table, 1, None).expect("there is room");
        device.fail_after(calls);
        let agreed = check_against_cpu(&counter, &table, k);
        device.fail_after(u64::MAX);
        agreed?;
        prop_assert!(counter.usage().failures <= 1, "a lost device is not asked again");
        drop(counter);
        prop_assert_eq!(device.allocated_bytes(), taken, "all memory was given back");
    }

    #[test]
    fn device_pair_inferences_match_cpu_bits(
        (rows, cardinalities) in (rows(), cardinalities()),
        budget in proptest::option::of((1000_u64..20_000, 3_000_u64..100_000)),
        seed: u64,
    ) {
        let table = table(rows, &cardinalities, None, seed);
        let budget = budget.map(|(rows_bytes, scratch_bytes)| DeviceBudget { rows_bytes, scratch_bytes });
        let counter = CudaCounter::new(&device(seed), &table, 1, budget).expect("there is room");
        let pairs = all_pairs(table.width());
        let expected = count_pairs(&table, &pairs);
        prop_assert_eq!(&counter.count_pairs(&pairs), &expected);
        let inferences: Vec<PairInference> = expected.iter().map(PairInference::from_counts).collect();
        prop_assert_eq!(counter.infer_pairs(&pairs), inferences);
        prop_assert_eq!(counter.usage().failures, 0);
    }

    #[test]
    fn sliced_pair_counts_match_counters(
        rows in rows(),
        cardinalities in proptest::collection::vec(1_u32..9, 2..24),
        rows_bytes in proptest::option::of(200_u64..20_000),
        seed: u64,
    ) {
        let table = table(rows, &cardinalities, None, seed);
        let budget = rows_bytes.map(|rows_bytes| DeviceBudget { rows_bytes, scratch_bytes: 1 << 20 });
        let pairs = all_pairs(table.width());
        let expected = count_pairs(&table, &pairs);
        let (sliced, used) = {
            let counter = CudaCounter::new(&device(seed), &table, 1, budget).expect("there is room");
            (counter.count_pairs(&pairs), counter.usage())
        };
        prop_assert_eq!(&sliced, &expected);
        prop_assert_eq!(used.failures, 0);
        // Only pairs with a constant column need no device.
        let constant = |(a, b): &&(usize, usize)| table.cardinality(*a) < 2 || table.cardinality(*b) < 2;
        prop_assert_eq!(used.left_to_the_cpu, pairs.iter().filter(constant).count() as u64);
        let counter = CudaCounter::new(&device(seed), &table, 1, budget).expect("there is room").without_slices();
        prop_assert_eq!(&counter.count_pairs(&pairs), &expected);
    }
}

#[test]
fn keys_beyond_64_bits_use_chained_tables() {
    for people in [None, Some(900)] {
        let table = table(3000, &[2991, 2992, 2993, 2994, 2996, 2997, 2998], people, 3);
        let bits: f64 = (0..7).map(|c| (table.cardinality(c) as f64).log2()).sum();
        assert!(bits > 64.0, "{bits} bits");
        let counter = CudaCounter::new(&device(5), &table, 1, None).expect("there is room");
        check_against_cpu(&counter, &table, 3).expect("the same answers");
        assert_eq!(counter.usage().left_to_the_cpu, 2, "all but the empty set");
    }
}

#[test]
fn classes_of_size_k_are_distinguished_from_k_minus_one() {
    // Routes by the product of values: shared memory, dense, and (diagonal) sparse.
    for (k, values, diagonal) in [(3, 8, false), (3, 30, false), (5, 20, false), (3, 900, true), (2, 400, true)] {
        let classes = if diagonal { values } else { values * values };
        for missing in [0, 1] {
            let rows: Vec<u32> = (0..classes * k - missing).map(|row| row * 7919 % (classes * k) % classes).collect();
            // 7919 divides no size: every class occurs k times, the last one less often.
            let first: Vec<u32> = rows.iter().map(|class| if diagonal { *class } else { class / values }).collect();
            let second: Vec<u32> =
                rows.iter().map(|class| if diagonal { classes - 1 - class } else { class % values }).collect();
            for people in [None, Some((0..rows.len() as u32).collect())] {
                let table = CountedTable::new(vec![first.clone(), second.clone()], people).expect("a table");
                let both = [AttributeSet::from_iter([0, 1])];
                for seed in 0..6 {
                    let counter = CudaCounter::new(&device(seed), &table, 1, None).expect("there is room");
                    assert_eq!(counter.judge(&both, k, &|| false), Ok(vec![Some(missing == 1)]), "{values} {k} {seed}");
                    assert_eq!(counter.usage().left_to_the_cpu, 0);
                    check_against_cpu(&counter, &table, k).expect("the same answers");
                }
            }
        }
    }
}

#[test]
fn device_judge_after_stop_returns_no_verdict() {
    let table = table(200, &[3, 4, 6], None, 1);
    let counter = CudaCounter::new(&device(1), &table, 1, None).expect("there is room");
    let sets = [AttributeSet::from_iter([0, 1]), AttributeSet::from_iter([0, 2])];
    assert_eq!(counter.judge(&sets, 2, &|| true), Ok(vec![None, None]));
    let unknown = Err(ComputeError::UnknownAttribute { attribute: 7, width: 3 });
    assert_eq!(counter.count(&[AttributeSet::from_iter([0, 7])], 2).map(|_| ()), unknown);
}

#[test]
fn small_device_memory_uses_tiles() {
    let table = table(5000, &[3, 400, 600], None, 1);
    let small: Arc<dyn Device> = EmulatedDevice::start(20_000, 1);
    let counter =
        CudaCounter::new(&small, &table, 1, Some(DeviceBudget { rows_bytes: 1 << 30, scratch_bytes: 1 << 30 }));
    assert!(matches!(counter.err(), Some(DeviceError::OutOfMemory { .. })), "the budget is more than there is");
    let counter = CudaCounter::new(&small, &table, 1, None).expect("tiles have room");
    check_against_cpu(&counter, &table, 3).expect("the same answers");
}

#[test]
fn backend_selection_without_device_uses_cpu() {
    let absent = || Err(DeviceError::Absent { reason: "none".to_owned() });
    let table = table(3000, &[3, 40], None, 1);
    let chosen = |wanted| SelectedBackend::for_table(wanted, &table, 2, 1, absent);
    assert_eq!(chosen(BackendChoice::Auto).map(|chosen| chosen.name()), Ok("cpu"));
    assert_eq!(chosen(BackendChoice::Cpu).map(|chosen| chosen.name()), Ok("cpu"));
    assert!(chosen(BackendChoice::Device).is_err());
    let there = SelectedBackend::for_table(BackendChoice::Device, &table, 2, 1, || Ok(device(1))).expect("a device");
    assert_eq!(there.name(), "cuda");
    check_against_cpu(there.counter(), &table, 2).expect("the same answers");
    assert!(
        there.device_usage().is_some_and(|used| used.launches > 0 && used.uploaded_bytes > 0 && used.device_bytes > 0)
    );
}

#[test]
fn auto_backend_on_large_table_times_both() {
    let table = table(1 << 16, &[2; 64], None, 1);
    let chosen = SelectedBackend::for_table(BackendChoice::Auto, &table, 2, 1, || Ok(device(1))).expect("a counter");
    let (SelectedBackend::Cpu(_, trial) | SelectedBackend::Device(_, trial)) = &chosen;
    let trial = trial.expect("both were tried");
    assert!(trial.sets > 0, "{trial:?}");
    assert_eq!(chosen.name() == "cuda", trial.prefers_device(), "{trial:?}");
}

fn snapshot(table: &CountedTable) -> WindowSnapshot<'_> {
    let columns = (0..table.width()).map(|column| table.column(column)).collect();
    WindowSnapshot { numbering: 0, to: table.rows() as u64, capacity: table.rows(), columns, subjects: None }
}

#[test]
fn auto_window_stays_on_device_only_if_faster() {
    let small = table(300, &[3, 5, 7], None, 1);
    let mut counting = StreamWindow::new(BackendChoice::Auto, || panic!("nobody looks for a device"));
    let chosen = counting.counter(&snapshot(&small), &[0, 1, 2], &small, 2, 1);
    assert_eq!((chosen.name(), counting.needs_arrivals()), ("cpu", false));

    let large = table(1 << 16, &[2; 64], None, 1);
    let emulator = EmulatedDevice::start(EMULATED_MEMORY, 1);
    let shared: Arc<dyn Device> = emulator.clone();
    let mut counting = StreamWindow::new(BackendChoice::Auto, move || Ok(Arc::clone(&shared)));
    let places: Vec<usize> = (0..64).collect();
    let chosen = counting.counter(&snapshot(&large), &places, &large, 2, 1);
    let (SelectedBackend::Cpu(_, trial) | SelectedBackend::Device(_, trial)) = &chosen;
    assert!(trial.is_some_and(|trial| trial.sets > 0), "both were tried");
    assert_eq!((chosen.name() == "cuda", counting.usage().failures), (counting.needs_arrivals(), 0));
    counting.return_counter(chosen);
    assert!(counting.needs_arrivals() || emulator.allocated_bytes() == 0, "nothing stays where the CPU counts");
    assert!(counting.usage().launches > 0 && !counting.is_lost());

    let absent = || Err(DeviceError::Absent { reason: "none".to_owned() });
    let mut counting = StreamWindow::new(BackendChoice::Auto, absent);
    assert_eq!(counting.counter(&snapshot(&large), &places, &large, 2, 1).name(), "cpu");
    assert!(!counting.is_lost() && counting.usage().failures == 0, "one that was never there has not failed");
}

#[test]
fn stream_window_without_room_is_dropped() {
    let table = table(3000, &[3, 400, 6], None, 1);
    let shared: Arc<dyn Device> = EmulatedDevice::start(40_000, 1);
    let mut counting = StreamWindow::new(BackendChoice::Device, move || Ok(Arc::clone(&shared)));
    let chosen = counting.counter(&snapshot(&table), &[0, 1, 2], &table, 3, 1);
    assert_eq!((chosen.name(), counting.needs_arrivals(), counting.fills()), ("cuda", false, 0));
    check_against_cpu(chosen.counter(), &table, 3).expect("the same answers");
    assert!(counting.usage().launches > 0 && counting.usage().failures == 0);
}

#[test]
fn emulator_without_barriers_gives_wrong_counts() {
    let table = table(400, &[3, 5, 7, 9], None, 1);
    let device: Arc<dyn Device> = EmulatedDevice::without_barriers(EMULATED_MEMORY, 1);
    let counter = CudaCounter::new(&device, &table, 1, None).expect("there is room");
    assert!(check_against_cpu(&counter, &table, 4).is_err(), "the emulation hides a race");
}

#[test]
#[should_panic(expected = "the emulator lives")]
fn write_beyond_allocation_stops_emulator() {
    let device = EmulatedDevice::start(EMULATED_MEMORY, 1);
    let address = device.allocate(100).expect("there is room");
    // The guard page follows the next multiple of sixteen.
    device.fill(address, 113, 0).expect("sent");
    device.request(address, 1).expect("never answered");
}
