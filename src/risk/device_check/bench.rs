//! Both backends on the same work, and the two floors of the device: bytes that must move, operations that must be made.

use super::selftest::SelftestError;
use super::tables::even;
use crate::risk::compute::cuda::{CudaCounter, Device, ResidentWindow};
use crate::risk::compute::{AttributeSet, Columns, CpuCounter, GroupCounter, all_pairs, count_pairs};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::time::Instant;

/// Lanes that one multiprocessor serves in a cycle.
const LANES: f64 = 32.0;

/// Times that each work is done; the fastest counts.
const ROUNDS: usize = 3;

/// One work, on both backends.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Measured {
    pub work: &'static str,
    pub rows: u64,
    pub candidates: u64,
    pub cpu_seconds: f64,
    pub gpu_seconds: f64,
    /// How many times faster the device was.
    pub speedup: f64,
    /// The bytes of the columns that the candidates read, over the bandwidth of the device's memory as measured in this
    /// run (a fill of it).
    pub bytes_floor_seconds: f64,
    /// A lane and a cycle for every row of every candidate.
    pub operations_floor_seconds: f64,
    /// Were the answers equal?
    pub agrees: bool,
}

/// What a work is made of.
struct Work<'a> {
    name: &'static str,
    table: &'a Columns,
    sets: Vec<AttributeSet>,
    judging: bool,
}

/// Measures every work on tables of `rows` rows, on `threads` threads of the CPU.
///
/// # Errors
/// When the device fails.
pub fn bench(
    device: &Arc<dyn Device>,
    rows: usize,
    threads: usize,
    seed: u64,
    progress: &dyn Fn(&str),
) -> Result<Vec<Measured>, SelftestError> {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    // METHODS §3's table: independent columns of cardinality 2 to 100.
    let cardinalities: Vec<u32> = (0..30).map(|at| 2 + at * 98 / 29).collect();
    let records = even(rows, &cardinalities, None, &mut dice);
    let people = even(rows, &cardinalities, Some((rows as u32 / 20).max(1)), &mut dice);
    let bandwidth = bandwidth(device)?;
    let sets = |size: usize, count: usize, dice: &mut ChaCha8Rng| -> Vec<AttributeSet> {
        let columns: Vec<usize> = (0..cardinalities.len()).collect();
        (0..count).map(|_| columns.choose_multiple(dice, size).copied().collect()).collect()
    };
    let low: Vec<AttributeSet> = (0..2000).map(|_| (0..12).filter(|_| dice.random_bool(0.25)).collect()).collect();
    let works = [
        Work { name: "count, pairs", table: &records, sets: sets(2, 2000, &mut dice), judging: false },
        Work { name: "judge, low cardinalities", table: &records, sets: low, judging: true },
        Work { name: "judge, triples", table: &records, sets: sets(3, 2000, &mut dice), judging: true },
        Work { name: "count, fours", table: &records, sets: sets(4, 200, &mut dice), judging: false },
        Work { name: "judge, sixes", table: &records, sets: sets(6, 500, &mut dice), judging: true },
        Work { name: "judge people, pairs", table: &people, sets: sets(2, 500, &mut dice), judging: true },
        Work { name: "count people, pairs", table: &people, sets: sets(2, 200, &mut dice), judging: false },
        Work { name: "count people, fours", table: &people, sets: sets(4, 50, &mut dice), judging: false },
    ];
    let mut measured = Vec::new();
    for work in &works {
        progress(work.name);
        measured.push(work.measure(device, threads, bandwidth)?);
    }
    progress("joint counts");
    measured.push(joint(device, &records, bandwidth)?);
    progress("append");
    measured.push(append(device, &records, bandwidth)?);
    Ok(measured)
}

/// The fastest of some rounds, in seconds, and the last answer.
fn fastest<T>(mut work: impl FnMut() -> Result<T, SelftestError>) -> Result<(f64, T), SelftestError> {
    let mut best = f64::INFINITY;
    let mut answer = None;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        answer = Some(work()?);
        best = best.min(started.elapsed().as_secs_f64());
    }
    Ok((best, answer.expect("at least one round")))
}

/// Bytes a second that the device writes to its memory.
fn bandwidth(device: &Arc<dyn Device>) -> Result<f64, SelftestError> {
    let bytes = (device.limits().free_bytes / 4).min(4 << 30);
    let address = device.allocate(bytes)?;
    let wait = || -> Result<(), SelftestError> { Ok(device.collect(device.request(address, 8)?).map(|_| ())?) };
    device.fill(address, bytes, 1)?;
    wait()?;
    let measured = fastest(|| {
        for value in 0..8 {
            device.fill(address, bytes, value)?;
        }
        wait()
    });
    device.free(address);
    Ok(8.0 * bytes as f64 / measured?.0)
}

fn bytes_a_row(table: &Columns, set: &AttributeSet) -> u64 {
    let width = |column| match table.cardinality(column) {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    };
    set.iter().map(width).sum::<u64>() + if table.subjects().is_some() { 4 } else { 0 }
}

fn operations_floor(device: &Arc<dyn Device>, operations: f64) -> f64 {
    let limits = device.limits();
    operations / (f64::from(limits.multiprocessors) * LANES * limits.clock_hertz as f64)
}

impl Work<'_> {
    fn measure(&self, device: &Arc<dyn Device>, threads: usize, bandwidth: f64) -> Result<Measured, SelftestError> {
        const K: u32 = 5;
        let ask = |counter: &dyn GroupCounter| -> Result<_, SelftestError> {
            if self.judging {
                return Ok((vec![], counter.judge(&self.sets, K, &|| false)?));
            }
            Ok((counter.count(&self.sets, K)?, vec![]))
        };
        let cpu = CpuCounter::new(self.table, threads);
        let gpu = CudaCounter::new(device, self.table, threads, None)?;
        let (gpu_seconds, found) = fastest(|| ask(&gpu))?;
        let (cpu_seconds, expected) = fastest(|| ask(&cpu))?;
        let rows = self.table.rows() as f64;
        // The union of the columns is read at least once; more where the candidates' columns do not fit together.
        let union = self.sets.iter().fold(AttributeSet::new(), |union, set| union.union(set));
        Ok(Measured {
            work: self.name,
            rows: self.table.rows() as u64,
            candidates: self.sets.len() as u64,
            cpu_seconds,
            gpu_seconds,
            speedup: cpu_seconds / gpu_seconds,
            bytes_floor_seconds: rows * bytes_a_row(self.table, &union) as f64 / bandwidth,
            operations_floor_seconds: operations_floor(device, rows * self.sets.len() as f64),
            agrees: found == expected && gpu.used().failures == 0,
        })
    }
}

/// Joint counts of all pairs.
fn joint(device: &Arc<dyn Device>, table: &Columns, bandwidth: f64) -> Result<Measured, SelftestError> {
    let pairs = all_pairs(table.width());
    let counter = CudaCounter::new(device, table, 1, None)?;
    let (gpu_seconds, found) = fastest(|| Ok(counter.count_pairs(&pairs)))?;
    let (cpu_seconds, expected) = fastest(|| Ok(count_pairs(table, &pairs)))?;
    let rows = table.rows() as f64;
    let bytes = rows * bytes_a_row(table, &AttributeSet::first(table.width())) as f64;
    Ok(Measured {
        work: "joint counts, all pairs",
        rows: table.rows() as u64,
        candidates: pairs.len() as u64,
        cpu_seconds,
        gpu_seconds,
        speedup: cpu_seconds / gpu_seconds,
        bytes_floor_seconds: bytes / bandwidth,
        operations_floor_seconds: operations_floor(device, rows * pairs.len() as f64),
        agrees: found == expected && counter.used().failures == 0,
    })
}

/// A batch of 10,000 rows into a resident window, against a copy of its codes on the host.
fn append(device: &Arc<dyn Device>, table: &Columns, bandwidth: f64) -> Result<Measured, SelftestError> {
    let rows = table.rows().min(10_000);
    let bounds: Vec<u64> = (0..table.width()).map(|column| table.cardinality(column) as u64).collect();
    let mut window = ResidentWindow::new(device, table.rows(), &bounds, false)?;
    let columns: Vec<&[u32]> = (0..table.width()).map(|column| &table.column(column)[..rows]).collect();
    let landmark = device.allocate(16)?;
    device.fill(landmark, 16, 0)?;
    let pushed = fastest(|| {
        window.push(&columns, None)?;
        Ok(device.collect(device.request(landmark, 16)?)?)
    });
    device.free(landmark);
    let (gpu_seconds, _) = pushed?;
    let (cpu_seconds, copied) = fastest(|| Ok(columns.iter().map(|codes| codes.to_vec()).collect::<Vec<_>>()))?;
    let bytes = rows as f64 * bytes_a_row(table, &AttributeSet::first(table.width())) as f64;
    Ok(Measured {
        work: "append 10,000 rows (against a copy)",
        rows: rows as u64,
        candidates: copied.len() as u64,
        cpu_seconds,
        gpu_seconds,
        speedup: cpu_seconds / gpu_seconds,
        bytes_floor_seconds: 2.0 * bytes / bandwidth,
        operations_floor_seconds: operations_floor(device, rows as f64 * copied.len() as f64),
        agrees: window.rows() > 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::risk::compute::cuda::emulator::Emulator;

    #[test]
    fn every_work_agrees_on_the_emulated_device() {
        let device: Arc<dyn Device> = Emulator::start(256 << 20, 3);
        for measured in bench(&device, 300, 1, 5, &|_| {}).expect("there is room") {
            assert!(measured.agrees, "{measured:?}");
            assert!(measured.gpu_seconds > 0.0 && measured.bytes_floor_seconds > 0.0, "{measured:?}");
        }
    }
}
