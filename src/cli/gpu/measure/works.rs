//! Each way of counting, alone.

use super::error::BenchError;
use super::peer::PeerQuestion;
use super::stand::{Measured, OnCpu, ROUNDS, Size, Stand, fastest};
use crate::cli::gpu::tables::{bytes_a_row, cardinalities, even, some_sets};
use crate::counting::cuda::{CudaCounter, ResidentWindow};
use crate::counting::{AttributeSet, CountedTable, CpuCounter, GroupCounter, all_pairs, count_pairs};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The ways of counting, each alone.
pub(super) fn counting(stand: &Stand<'_>, progress: &dyn Fn(&str)) -> Result<Vec<Measured>, BenchError> {
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

/// What a work is made of.
struct Work<'a> {
    name: &'static str,
    table: &'a CountedTable,
    sets: Vec<AttributeSet>,
    judging: bool,
}

impl Work<'_> {
    fn measure(&self, stand: &Stand<'_>) -> Result<Measured, BenchError> {
        const K: u32 = 5;
        let ask = |counter: &dyn GroupCounter| -> Result<_, BenchError> {
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
            (_, verdicts) if self.judging => PeerQuestion::Verdicts(&sets, K, verdicts),
            (counts, _) => PeerQuestion::Counts(&sets, K, counts),
        };
        stand.ask_peer(self.name, self.table, &asked, false)?;
        Ok(stand.measured(self.name, &size, cpu, gpu_seconds, Some(agrees)))
    }
}

/// Joint counts of all pairs of a table that is on the device already.
pub(super) fn joint(
    stand: &Stand<'_>,
    name: &str,
    table: &CountedTable,
    slicing: bool,
) -> Result<Measured, BenchError> {
    let pairs = all_pairs(table.width());
    let counter = CudaCounter::new(stand.device, table, 1, None)?;
    let counter = if slicing { counter } else { counter.without_slices() };
    let (gpu_seconds, found) = fastest(ROUNDS, || Ok(counter.count_pairs(&pairs)))?;
    let (cpu, expected) = stand.on_cpu(1, |_| Ok(count_pairs(table, &pairs)))?;
    let row_bytes = bytes_a_row(table, &AttributeSet::first(table.width()));
    let size = Size { rows: table.rows(), candidates: pairs.len() as u64, row_bytes };
    let agrees = found == expected && counter.used().failures == 0;
    stand.ask_peer(name, table, &PeerQuestion::Pairs(&pairs, &expected), false)?;
    Ok(stand.measured(name, &size, cpu, gpu_seconds, Some(agrees)))
}

/// A batch of 10,000 rows into a resident window, against a copy of its codes on the host.
fn append(stand: &Stand<'_>, table: &CountedTable) -> Result<Measured, BenchError> {
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
