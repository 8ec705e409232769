//! Both backends on the same work, and the two floors of the device: bytes that must move, operations that must be made.

use super::cases::Case;
use super::peer::{Asked, OnPeer, Peer};
use super::selftest::SelftestError;
use super::tables::even;
use crate::counting::cuda::{CudaCounter, Device, ResidentWindow, Shape};
use crate::counting::{AttributeSet, Columns, CpuCounter, GroupCounter, all_pairs, count_pairs};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Lanes that one multiprocessor serves in a cycle.
const LANES: f64 = 32.0;

/// Times that a short work is done; the fastest counts.
const ROUNDS: usize = 3;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct BenchQuestion {
    pub cases: Vec<Case>,
    /// Rows of the tables of [`Case::Counting`].
    pub rows: usize,
    /// The rows of all other cases, as a share of what they are meant for.
    pub scale: f64,
    /// Threads of the CPU, one measurement each.
    pub threads: Vec<usize>,
    /// Time for each search for quasi-identifiers.
    pub budget: Duration,
    pub seed: u64,
    /// A program with its arguments, split at blanks, that answers the same questions (`benches/gpu/peer.py`).
    pub peer: Option<String>,
}

/// What a work took on some threads of the CPU.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct OnCpu {
    pub threads: usize,
    pub seconds: f64,
}

/// One work, on both backends.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Measured {
    pub work: String,
    pub rows: u64,
    /// Sets of columns that were counted or judged.
    pub candidates: u64,
    pub cpu: Vec<OnCpu>,
    pub gpu_seconds: f64,
    /// How many times faster the device was than the last of `cpu`.
    pub speedup: f64,
    /// The bytes of the columns that the candidates read, once, over the bandwidth of the device's memory: bytes read and
    /// written in a second by a copy in it, measured in this run.
    pub bytes_floor_seconds: f64,
    /// That floor over what the device took: the share of the copy bandwidth that the work came to.
    pub bandwidth_share: f64,
    /// A lane and a cycle for every row of every candidate.
    pub operations_floor_seconds: f64,
    /// Were the answers equal, and the device's its own? `None` where the time for one of them ended first.
    pub agrees: Option<bool>,
    /// The same work by the peer, where one was named and knows this work.
    pub peer: Option<OnPeer>,
}

/// What a work is made of, for its floors.
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) candidates: u64,
    /// Of a row of the columns that are read.
    pub(super) row_bytes: u64,
}

/// The device and what is known of it.
pub(super) struct Stand<'b> {
    pub(super) device: &'b Arc<dyn Device>,
    pub(super) question: &'b BenchQuestion,
    /// Bytes a second.
    bandwidth: f64,
    peer: Option<Mutex<Peer>>,
}

impl Stand<'_> {
    pub(super) fn measured(
        &self,
        work: &str,
        size: &Size,
        cpu: Vec<OnCpu>,
        gpu_seconds: f64,
        agrees: Option<bool>,
    ) -> Measured {
        let limits = self.device.limits();
        let lanes = f64::from(limits.multiprocessors) * LANES * limits.clock_hertz as f64;
        let rows = size.rows as f64;
        let bytes_floor_seconds = rows * size.row_bytes as f64 / self.bandwidth;
        Measured {
            work: work.to_owned(),
            rows: size.rows as u64,
            candidates: size.candidates,
            speedup: cpu.last().map_or(f64::NAN, |cpu| cpu.seconds / gpu_seconds),
            cpu,
            gpu_seconds,
            bytes_floor_seconds,
            bandwidth_share: bytes_floor_seconds / gpu_seconds,
            operations_floor_seconds: rows * size.candidates as f64 / lanes,
            agrees,
            peer: None,
        }
    }

    /// Has the peer, where there is one, answer the same work at the end. `uploads`: the device's time includes the upload.
    pub(super) fn ask_peer(
        &self,
        work: &str,
        table: &Columns,
        asked: &Asked<'_>,
        uploads: bool,
    ) -> Result<(), SelftestError> {
        let Some(peer) = &self.peer else { return Ok(()) };
        Ok(peer.lock().expect("no question panics").ask(work, table, asked, uploads)?)
    }

    /// The time on every number of threads, and the last answer. The pool of that many is the current one.
    pub(super) fn on_cpu<T: Send>(
        &self,
        rounds: usize,
        work: impl Fn(usize) -> Result<T, SelftestError> + Sync,
    ) -> Result<(Vec<OnCpu>, T), SelftestError> {
        let mut times = Vec::new();
        let mut answer = None;
        for &threads in &self.question.threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
            let (seconds, found) = pool.install(|| fastest(rounds, || work(threads)))?;
            times.push(OnCpu { threads, seconds });
            answer = Some(found);
        }
        answer.map(|answer| (times, answer)).ok_or(SelftestError::NoThreads)
    }
}

/// Measures the cases.
///
/// # Errors
/// When the device fails, or the question names no threads.
pub fn bench(
    device: &Arc<dyn Device>,
    question: &BenchQuestion,
    progress: &dyn Fn(&str),
) -> Result<Vec<Measured>, SelftestError> {
    let peer = question.peer.as_deref().map(Peer::ready).transpose()?.map(Mutex::new);
    let stand = Stand { device, question, bandwidth: bandwidth(device)?, peer };
    let mut measured = Vec::new();
    for case in &question.cases {
        match case {
            Case::Counting => measured.extend(counting(&stand, progress)?),
            case => measured.extend(case.measure(&stand, progress)?),
        }
    }
    if let Some(peer) = &stand.peer {
        progress("the peer");
        hear(&peer.lock().expect("no question panics"), &mut measured);
    }
    Ok(measured)
}

/// Puts the answers of the peer beside the measurements. What was measured is told also where it fails.
fn hear(peer: &Peer, measured: &mut [Measured]) {
    let answers = peer.answers().unwrap_or_else(|error| {
        let failed = |work: &str| {
            let told = OnPeer { failure: Some(error.to_string()), ..OnPeer::default() };
            (work.to_owned(), told)
        };
        peer.works().map(failed).collect()
    });
    for (work, told) in answers {
        if let Some(measured) = measured.iter_mut().find(|measured| measured.work == work) {
            measured.peer = Some(told);
        }
    }
}

/// The ways of counting, each alone.
fn counting(stand: &Stand<'_>, progress: &dyn Fn(&str)) -> Result<Vec<Measured>, SelftestError> {
    let rows = stand.question.rows;
    let mut dice = ChaCha8Rng::seed_from_u64(stand.question.seed);
    let cardinalities = cardinalities(30);
    let records = even(rows, &cardinalities, None, &mut dice);
    let people = even(rows, &cardinalities, Some((rows as u32 / 20).max(1)), &mut dice);
    let low: Vec<AttributeSet> = (0..2000).map(|_| (0..12).filter(|_| dice.random_bool(0.25)).collect()).collect();
    let mut sets = |size: usize, count: usize| some_sets(30, size, count, &mut dice);
    let works = [
        Work { name: "count, pairs", table: &records, sets: sets(2, 2000), judging: false },
        Work { name: "judge, low cardinalities", table: &records, sets: low, judging: true },
        Work { name: "judge, triples", table: &records, sets: sets(3, 2000), judging: true },
        Work { name: "count, fours", table: &records, sets: sets(4, 200), judging: false },
        Work { name: "judge, sixes", table: &records, sets: sets(6, 500), judging: true },
        Work { name: "judge people, pairs", table: &people, sets: sets(2, 500), judging: true },
        Work { name: "count people, pairs", table: &people, sets: sets(2, 200), judging: false },
        Work { name: "count people, fours", table: &people, sets: sets(4, 50), judging: false },
    ];
    let mut measured = Vec::new();
    for work in &works {
        progress(work.name);
        measured.push(work.measure(stand)?);
    }
    progress("joint counts");
    measured.push(joint(stand, "joint counts, all pairs", &records, true)?);
    let tiny = even(rows, &[3; 107], None, &mut dice);
    measured.push(joint(stand, "joint counts, 107 columns of 3", &tiny, true)?);
    measured.push(joint(stand, "the same with counters alone", &tiny, false)?);
    progress("append");
    measured.push(append(stand, &records)?);
    Ok(measured)
}

/// Of independent columns, from 2 to 100.
pub(super) fn cardinalities(width: u32) -> Vec<u32> {
    (0..width).map(|at| 2 + at * 98 / (width - 1).max(1)).collect()
}

pub(super) fn some_sets(width: usize, size: usize, count: usize, dice: &mut ChaCha8Rng) -> Vec<AttributeSet> {
    let columns: Vec<usize> = (0..width).collect();
    (0..count).map(|_| columns.choose_multiple(dice, size).copied().collect()).collect()
}

/// The fastest of some rounds, in seconds, and the last answer.
pub(super) fn fastest<T>(
    rounds: usize,
    mut work: impl FnMut() -> Result<T, SelftestError>,
) -> Result<(f64, T), SelftestError> {
    let mut best = f64::INFINITY;
    let mut answer = None;
    for _ in 0..rounds.max(1) {
        let started = Instant::now();
        answer = Some(work()?);
        best = best.min(started.elapsed().as_secs_f64());
    }
    Ok((best, answer.expect("at least one round")))
}

/// Bytes a second that a copy in the device's memory reads and writes.
fn bandwidth(device: &Arc<dyn Device>) -> Result<f64, SelftestError> {
    let limits = device.limits();
    let bytes = (limits.free_bytes / 8).min(2 << 30) / 16 * 16;
    let addresses = [device.allocate(bytes)?, device.allocate(bytes)?];
    let measured = (|| {
        let [from, to] = addresses;
        let wait = || -> Result<(), SelftestError> { Ok(device.collect(device.request(to, 8)?).map(|_| ())?) };
        let blocks =
            (bytes / 16).div_ceil(u64::from(limits.threads)).min(32 * u64::from(limits.multiprocessors)) as u32;
        let shape = Shape { columns: blocks.max(1), rows: 1, threads: limits.threads, shared_bytes: 0 };
        device.fill(from, bytes, 1)?;
        wait()?;
        fastest(ROUNDS, || {
            for _ in 0..8 {
                device.launch("copy", shape, &[from, to, bytes / 16])?;
            }
            wait()
        })
    })();
    addresses.into_iter().for_each(|address| device.free(address));
    Ok(8.0 * 2.0 * bytes as f64 / measured?.0)
}

/// Bytes a code of a column of so many values.
pub(super) fn code_bytes(values: usize) -> u64 {
    match values {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

pub(super) fn bytes_a_row(table: &Columns, set: &AttributeSet) -> u64 {
    let width = |column| code_bytes(table.cardinality(column));
    set.iter().map(width).sum::<u64>() + if table.subjects().is_some() { 4 } else { 0 }
}

/// What a work is made of.
struct Work<'a> {
    name: &'static str,
    table: &'a Columns,
    sets: Vec<AttributeSet>,
    judging: bool,
}

impl Work<'_> {
    fn measure(&self, stand: &Stand<'_>) -> Result<Measured, SelftestError> {
        const K: u32 = 5;
        let ask = |counter: &dyn GroupCounter| -> Result<_, SelftestError> {
            if self.judging {
                return Ok((vec![], counter.judge(&self.sets, K, &|| false)?));
            }
            Ok((counter.count(&self.sets, K)?, vec![]))
        };
        let gpu = CudaCounter::new(stand.device, self.table, 1, None)?;
        let (gpu_seconds, found) = fastest(ROUNDS, || ask(&gpu))?;
        let counters: Vec<CpuCounter<'_>> =
            stand.question.threads.iter().map(|threads| CpuCounter::new(self.table, *threads)).collect();
        let of = |threads: usize| stand.question.threads.iter().position(|own| *own == threads).unwrap_or(0);
        let (cpu, expected) = stand.on_cpu(ROUNDS, |threads| ask(&counters[of(threads)]))?;
        // The union of the columns is read at least once; more where the candidates' columns do not fit together.
        let union = self.sets.iter().fold(AttributeSet::new(), |union, set| union.union(set));
        let row_bytes = bytes_a_row(self.table, &union);
        let size = Size { rows: self.table.rows(), candidates: self.sets.len() as u64, row_bytes };
        let agrees = found == expected && gpu.used().failures == 0;
        let sets: Vec<Vec<usize>> = self.sets.iter().map(|set| set.iter().collect()).collect();
        let asked = match &expected {
            (_, verdicts) if self.judging => Asked::Verdicts(&sets, K, verdicts),
            (counts, _) => Asked::Counts(&sets, K, counts),
        };
        stand.ask_peer(self.name, self.table, &asked, false)?;
        Ok(stand.measured(self.name, &size, cpu, gpu_seconds, Some(agrees)))
    }
}

/// Joint counts of all pairs of a table that is on the device already.
pub(super) fn joint(stand: &Stand<'_>, name: &str, table: &Columns, slicing: bool) -> Result<Measured, SelftestError> {
    let pairs = all_pairs(table.width());
    let counter = CudaCounter::new(stand.device, table, 1, None)?;
    let counter = if slicing { counter } else { counter.without_slices() };
    let (gpu_seconds, found) = fastest(ROUNDS, || Ok(counter.count_pairs(&pairs)))?;
    let (cpu, expected) = stand.on_cpu(1, |_| Ok(count_pairs(table, &pairs)))?;
    let row_bytes = bytes_a_row(table, &AttributeSet::first(table.width()));
    let size = Size { rows: table.rows(), candidates: pairs.len() as u64, row_bytes };
    let agrees = found == expected && counter.used().failures == 0;
    stand.ask_peer(name, table, &Asked::Pairs(&pairs, &expected), false)?;
    Ok(stand.measured(name, &size, cpu, gpu_seconds, Some(agrees)))
}

/// A batch of 10,000 rows into a resident window, against a copy of its codes on the host.
fn append(stand: &Stand<'_>, table: &Columns) -> Result<Measured, SelftestError> {
    let device = stand.device;
    let rows = table.rows().min(10_000);
    let bounds: Vec<u64> = (0..table.width()).map(|column| table.cardinality(column) as u64).collect();
    let mut window = ResidentWindow::new(device, table.rows(), &bounds, false)?;
    let columns: Vec<&[u32]> = (0..table.width()).map(|column| &table.column(column)[..rows]).collect();
    let landmark = device.allocate(16)?;
    device.fill(landmark, 16, 0)?;
    let pushed = fastest(ROUNDS, || {
        window.push(&columns, None)?;
        Ok(device.collect(device.request(landmark, 16)?)?)
    });
    device.free(landmark);
    let (gpu_seconds, _) = pushed?;
    let (seconds, copied) = fastest(ROUNDS, || Ok(columns.iter().map(|codes| codes.to_vec()).collect::<Vec<_>>()))?;
    let row_bytes = 2 * bytes_a_row(table, &AttributeSet::first(table.width()));
    let size = Size { rows, candidates: copied.len() as u64, row_bytes };
    let cpu = vec![OnCpu { threads: 1, seconds }];
    Ok(stand.measured("append 10,000 rows (against a copy)", &size, cpu, gpu_seconds, Some(window.rows() > 0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::cuda::emulator::Emulator;

    #[test]
    fn every_work_agrees_on_the_emulated_device() {
        let device: Arc<dyn Device> = Emulator::start(256 << 20, 3);
        let question = BenchQuestion {
            cases: Case::ALL.to_vec(),
            rows: 300,
            scale: 0.000_3,
            threads: vec![1, 2],
            budget: Duration::from_secs(20),
            seed: 5,
            peer: None,
        };
        let measured = bench(&device, &question, &|_| {}).expect("there is room");
        assert_eq!(measured.len(), 12 + 4 * 3 + 2 + 1 + 1);
        for measured in measured {
            assert_eq!(measured.agrees, Some(true), "{measured:?}");
            assert!(measured.gpu_seconds > 0.0 && measured.bytes_floor_seconds > 0.0, "{measured:?}");
            assert!(
                !measured.cpu.is_empty() && measured.candidates > 0 && measured.bandwidth_share > 0.0,
                "{measured:?}"
            );
        }
    }
}
