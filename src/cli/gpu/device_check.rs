//! Comparison of device and CPU on random tables.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use throng_risk::counting::cuda::{CudaCounter, DeviceBudget, PoisonedDevice, ResidentWindow};
use throng_risk::counting::{
    AttributeSet, BackendChoice, ComputeError, CountedTable, CpuCounter, Device, DeviceError, GroupCounter,
    PairInference, StreamWindow, WindowArrival, WindowSnapshot, all_pairs, count_pairs, cycle_inference,
};
use throng_risk::qid::{QidSearchRequest, QidStrategy, search, search_on_backend};

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DeviceCheck {
    pub name: &'static str,
    pub tables: u64,
    /// Compared answers.
    pub answers: u64,
    /// Answers that differ.
    pub wrong: u64,
    /// Answers of the CPU instead of the device.
    pub by_the_cpu: u64,
    /// Device failures.
    pub failures: u64,
    /// Kernel launches.
    pub launches: u64,
}

impl DeviceCheck {
    /// Returns true if most answers are the device's and all are correct.
    pub fn passed(&self) -> bool {
        self.wrong == 0 && self.failures == 0 && self.launches > 0 && 2 * self.by_the_cpu < self.answers
    }

    fn compare<T: PartialEq>(&mut self, found: &[T], expected: &[T]) {
        self.answers += expected.len() as u64;
        let differ = found.iter().zip(expected).filter(|(found, expected)| found != expected).count();
        self.wrong += (differ + found.len().abs_diff(expected.len())) as u64;
    }

    fn add(&mut self, counter: &CudaCounter<'_>) {
        let used = counter.usage();
        self.tables += 1;
        self.by_the_cpu += used.left_to_the_cpu;
        self.failures += used.failures;
        self.launches += used.launches;
    }
}

/// Abort of a self-test.
#[derive(Debug, thiserror::Error)]
pub enum SelftestError {
    /// Unusable device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Failed count.
    #[error(transparent)]
    Compute(#[from] ComputeError),
}

struct RandomTableKind {
    name: &'static str,
    /// Maximum.
    rows: usize,
    width: usize,
    /// Maximum per column.
    cardinality: u32,
    subjects: Option<u32>,
    /// Size as a multiple of the device memory for rows.
    times_over: u64,
}

/// All methods by domain size, counted unit, and table location.
const RANDOM_TABLE_KINDS: [RandomTableKind; 7] = [
    RandomTableKind {
        name: "records, small domains",
        rows: 20_000,
        width: 6,
        cardinality: 9,
        subjects: None,
        times_over: 1,
    },
    RandomTableKind {
        name: "records, large domains",
        rows: 20_000,
        width: 5,
        cardinality: 700,
        subjects: None,
        times_over: 1,
    },
    RandomTableKind {
        name: "records, keys beyond 64 bits",
        rows: 9_000,
        width: 9,
        cardinality: 9_000,
        subjects: None,
        times_over: 1,
    },
    RandomTableKind {
        name: "people, small domains",
        rows: 20_000,
        width: 6,
        cardinality: 9,
        subjects: Some(500),
        times_over: 1,
    },
    RandomTableKind {
        name: "people, large domains",
        rows: 20_000,
        width: 5,
        cardinality: 700,
        subjects: Some(9_000),
        times_over: 1,
    },
    RandomTableKind {
        name: "records, in tiles",
        rows: 60_000,
        width: 5,
        cardinality: 30,
        subjects: None,
        times_over: 3,
    },
    RandomTableKind {
        name: "people, in tiles",
        rows: 60_000,
        width: 4,
        cardinality: 9,
        subjects: Some(70),
        times_over: 5,
    },
];

/// Besides the set of all columns.
const RANDOM_SETS: usize = 64;

/// Compares device and CPU on `tables` random tables of every kind, scaled by `scale`. Device buffers are filled with a
/// pattern first.
pub fn run_device_checks(
    device: &Arc<dyn Device>,
    seed: u64,
    tables: u64,
    scale: f64,
    progress: &dyn Fn(&str),
) -> Result<Vec<DeviceCheck>, SelftestError> {
    let device: Arc<dyn Device> = Arc::new(PoisonedDevice(Arc::clone(device)));
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut checks = Vec::new();
    for kind in &RANDOM_TABLE_KINDS {
        progress(kind.name);
        let mut check = DeviceCheck { name: kind.name, ..DeviceCheck::default() };
        for _ in 0..tables {
            check_counts(&device, kind, scale, &mut dice, &mut check)?;
        }
        checks.push(check);
    }
    progress("window");
    checks.push(check_resident_window(&device, tables, scale, &mut dice)?);
    progress("persistent window");
    checks.push(check_kept_window(&device, tables, scale, &mut dice)?);
    progress("pairs");
    checks.push(check_pair_counts(&device, tables, scale, &mut dice)?);
    progress("find-qid");
    checks.push(check_find_qid(&device, tables, scale, &mut dice)?);
    Ok(checks)
}

fn random_scaled_size(most: usize, scale: f64, dice: &mut ChaCha8Rng) -> usize {
    dice.random_range(1..=((most as f64 * scale) as usize).max(40))
}

fn random_sets(width: usize, dice: &mut ChaCha8Rng) -> Vec<AttributeSet> {
    let all = 1_u32 << width;
    let some = |dice: &mut ChaCha8Rng| {
        let mask = dice.random_range(1..all);
        (0..width).filter(|c| mask >> c & 1 == 1).collect()
    };
    (0..RANDOM_SETS).map(|_| some(dice)).chain([(0..width).collect()]).collect()
}

fn check_counts(
    device: &Arc<dyn Device>,
    kind: &RandomTableKind,
    scale: f64,
    dice: &mut ChaCha8Rng,
    check: &mut DeviceCheck,
) -> Result<(), SelftestError> {
    let cardinalities: Vec<u32> = (0..kind.width).map(|_| dice.random_range(1..=kind.cardinality)).collect();
    let table = skewed_table(random_scaled_size(kind.rows, scale, dice), &cardinalities, kind.subjects, dice);
    // One byte per column of at most 256 values, four for the subject.
    let bytes = (table.rows() * (table.width() + if kind.subjects.is_some() { 4 } else { 0 })) as u64;
    let tiles = DeviceBudget { rows_bytes: bytes / kind.times_over, ..DeviceBudget::of(device) };
    let counter = CudaCounter::new(device, &table, 1, (kind.times_over > 1).then_some(tiles))?;
    compare_counters(&counter, &table, dice, check)?;
    check.add(&counter);
    Ok(())
}

fn compare_counters(
    counter: &CudaCounter<'_>,
    table: &CountedTable,
    dice: &mut ChaCha8Rng,
    check: &mut DeviceCheck,
) -> Result<(), SelftestError> {
    let (cpu, sets, k) = (CpuCounter::new(table, 1), random_sets(table.width(), dice), dice.random_range(2..8));
    check.compare(&counter.count(&sets, k)?, &cpu.count(&sets, k)?);
    check.compare(&counter.judge(&sets, k, &|| false)?, &cpu.judge(&sets, k, &|| false)?);
    for set in &sets[..4] {
        check.compare(&[counter.records_below(set, k)?], &[cpu.records_below(set, k)?]);
    }
    Ok(())
}

fn check_resident_window(
    device: &Arc<dyn Device>,
    tables: u64,
    scale: f64,
    dice: &mut ChaCha8Rng,
) -> Result<DeviceCheck, SelftestError> {
    let mut check = DeviceCheck { name: "window over several batches", ..DeviceCheck::default() };
    let width = 4;
    for _ in 0..tables {
        let capacity = random_scaled_size(20_000, scale, dice);
        let mut resident = ResidentWindow::new(device, capacity, &[2, 2, 300, 2], true)?;
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); width + 1];
        for batch in 0..4_u32 {
            let new = dice.random_range(0..capacity * 3 / 4 + 2);
            // In the second batch, codes exceed one byte.
            let most = [20, 300, 20, 400][batch as usize];
            let codes: Vec<Vec<u32>> =
                (0..=width).map(|_| (0..new).map(|_| dice.random_range(0..most)).collect()).collect();
            let columns: Vec<&[u32]> = codes[..width].iter().map(Vec::as_slice).collect();
            resident.push(&columns, Some(&codes[width]))?;
            for (held, codes) in rows.iter_mut().zip(&codes) {
                held.extend(codes);
                held.drain(..held.len().saturating_sub(capacity));
            }
            let table = CountedTable::new(rows[..width].to_vec(), Some(rows[width].clone()));
            let table = table.expect("columns of one length");
            let counter = CudaCounter::over_window(device, &resident, &table, 1, None)?;
            compare_counters(&counter, &table, dice, &mut check)?;
            check.add(&counter);
        }
    }
    Ok(check)
}

/// The window follows a stream and is queried with different codes.
fn check_kept_window(
    device: &Arc<dyn Device>,
    tables: u64,
    scale: f64,
    dice: &mut ChaCha8Rng,
) -> Result<DeviceCheck, SelftestError> {
    let mut check = DeviceCheck { name: "persistent window", ..DeviceCheck::default() };
    for _ in 0..tables {
        let shared = Arc::clone(device);
        let mut counting = StreamWindow::new(BackendChoice::Device, move || Ok(Arc::clone(&shared)));
        let capacity = random_scaled_size(8000, scale, dice).max(40);
        let (mut rows, mut people, mut to): (Vec<Vec<u32>>, Vec<u64>, u64) = (vec![Vec::new(); 3], Vec::new(), 0);
        for _ in 0..4 {
            let new = dice.random_range(0..capacity);
            let columns: Vec<Vec<u32>> =
                [9, 400, 30].iter().map(|most| (0..new).map(|_| dice.random_range(0..*most)).collect()).collect();
            let subjects: Vec<u64> = (0..new).map(|_| dice.random_range(0..300) << 32).collect();
            rows.iter_mut().zip(&columns).for_each(|(held, codes)| held.extend(codes));
            people.extend(&subjects);
            rows.iter_mut().for_each(|held| drop(held.drain(..held.len().saturating_sub(capacity))));
            people.drain(..people.len().saturating_sub(capacity));
            let from = to;
            to += new as u64;
            counting.append_arrival(&WindowArrival { numbering: 0, from, to, columns, subjects: Some(subjects) });
            let columns = rows.iter().map(Vec::as_slice).collect();
            let snapshot = WindowSnapshot { numbering: 0, to, capacity, columns, subjects: Some(&people) };
            let numbers = people.iter().map(|person| (person >> 32) as u32).collect();
            let table = CountedTable::new(vec![rows[2].clone(), rows[0].clone(), rows[1].clone()], Some(numbers));
            let table = table.expect("columns of one length").masked(3);
            if table.rows() > 0 {
                let chosen = counting.counter(&snapshot, &[2, 0, 1], &table, 3, 1);
                let expected = CpuCounter::new(&table, 1);
                let sets = random_sets(3, dice);
                check.compare(&chosen.counter().count(&sets, 3)?, &expected.count(&sets, 3)?);
                check.compare(&chosen.counter().judge(&sets, 3, &|| false)?, &expected.judge(&sets, 3, &|| false)?);
                counting.return_counter(chosen);
            }
        }
        let used = counting.usage();
        check.tables += 1;
        // A further upload shows that arrivals did not continue the window.
        check.wrong += counting.fills().saturating_sub(1);
        check.by_the_cpu += used.left_to_the_cpu;
        check.failures += used.failures;
        check.launches += used.launches;
    }
    Ok(check)
}

fn check_pair_counts(
    device: &Arc<dyn Device>,
    tables: u64,
    scale: f64,
    dice: &mut ChaCha8Rng,
) -> Result<DeviceCheck, SelftestError> {
    let mut check = DeviceCheck { name: "pairs and their inferences", ..DeviceCheck::default() };
    for number in 0..tables {
        // Pairs of tiny domains are counted in slices.
        let (width, most) = if number % 2 == 0 { (8, [5, 40, 150, 20]) } else { (24, [2, 3, 4, 9]) };
        let cardinalities: Vec<u32> = (0..width).map(|at| dice.random_range(2..=most[at % 4])).collect();
        let table = skewed_table(random_scaled_size(20_000, scale, dice), &cardinalities, None, dice);
        let counter = CudaCounter::new(device, &table, 1, None)?;
        let asked = all_pairs(table.width());
        let expected = count_pairs(&table, &asked);
        check.compare(&counter.count_pairs(&asked), &expected);
        let inferences: Vec<PairInference> = expected.iter().map(PairInference::from_counts).collect();
        check.compare(&counter.infer_pairs(&asked), &inferences);
        let nodes = asked.iter().copied().zip(inferences.into_iter().map(|inference| inference.nodes));
        check.compare(&counter.cycle_inference(), &cycle_inference(&table, nodes));
        check.add(&counter);
    }
    Ok(check)
}

fn check_find_qid(
    device: &Arc<dyn Device>,
    tables: u64,
    scale: f64,
    dice: &mut ChaCha8Rng,
) -> Result<DeviceCheck, SelftestError> {
    let mut check = DeviceCheck { name: "Find-QID, every strategy", ..DeviceCheck::default() };
    for _ in 0..tables {
        let subjects = dice.random_bool(0.5).then_some(300);
        let cardinalities: Vec<u32> = (0..8).map(|_| dice.random_range(2..=12)).collect();
        let table = skewed_table(random_scaled_size(20_000, scale, dice), &cardinalities, subjects, dice);
        let counter = CudaCounter::new(device, &table, 1, None)?;
        for strategy in [QidStrategy::Border, QidStrategy::Greedy, QidStrategy::Exhaustive] {
            let columns = AttributeSet::first(table.width());
            let question = QidSearchRequest {
                k: dice.random_range(2..6),
                strategy,
                threads: 1,
                budget: None,
                memory: None,
                columns,
            };
            let expected = search(&table, &question, &|_| {});
            check.compare(&[search_on_backend(&table, &counter, &question, &|_| {})?], &[expected]);
        }
        check.add(&counter);
        // An answer is a whole border here.
        check.by_the_cpu = 0;
    }
    Ok(check)
}

/// Every third column is a function of the previous one.
pub(super) fn skewed_table(
    rows: usize,
    cardinalities: &[u32],
    subjects: Option<u32>,
    dice: &mut ChaCha8Rng,
) -> CountedTable {
    let mut columns: Vec<Vec<u32>> = Vec::new();
    for (at, cardinality) in cardinalities.iter().enumerate() {
        let column = match columns.last() {
            Some(last) if at % 3 == 2 => last.iter().map(|code| code % cardinality).collect(),
            _ => {
                let mut roll = || dice.random_range(0..*cardinality);
                (0..rows).map(|_| roll().min(roll())).collect()
            }
        };
        columns.push(column);
    }
    let subjects = subjects.map(|count| (0..rows).map(|_| dice.random_range(0..count)).collect());
    CountedTable::new(columns, subjects).expect("columns of one length, fewer than a table may have")
}

pub(super) fn uniform_table(
    rows: usize,
    cardinalities: &[u32],
    subjects: Option<u32>,
    dice: &mut ChaCha8Rng,
) -> CountedTable {
    let column = |cardinality: &u32| (0..rows).map(|_| dice.random_range(0..*cardinality)).collect();
    let columns = cardinalities.iter().map(column).collect();
    let subjects = subjects.map(|count| (0..rows).map(|_| dice.random_range(0..count)).collect());
    CountedTable::new(columns, subjects).expect("columns of one length, fewer than a table may have")
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_risk::counting::cuda::emulator::EmulatedDevice;

    #[test]
    fn emulated_device_passes_all_checks() {
        let device: Arc<dyn Device> = EmulatedDevice::start(64 << 20, 7);
        let checks = run_device_checks(&device, 11, 3, 0.03, &|_| {}).expect("there is room");
        assert_eq!(checks.len(), RANDOM_TABLE_KINDS.len() + 4);
        for check in checks {
            assert!(check.passed(), "{check:?}");
        }
    }

    #[test]
    fn failing_device_does_not_pass() {
        let device = EmulatedDevice::start(64 << 20, 7);
        device.fail_after(400);
        let shared: Arc<dyn Device> = device;
        match run_device_checks(&shared, 11, 2, 0.01, &|_| {}) {
            Ok(checks) => assert!(checks.iter().any(|check| !check.passed())),
            Err(error) => assert!(error.to_string().contains("unplugged"), "{error}"),
        }
    }
}
