//! Whole tasks of the size that they are meant for: a search, a model, a batch that is checked again.

use super::error::BenchError;
use super::peer::PeerQuestion;
use super::stand::{Measured, Size, Stand, fastest};
use super::works::joint;
use crate::cli::gpu::tables::{bytes_a_row, cardinalities, even, some_sets};
use crate::counting::cuda::{CudaCounter, ResidentWindow};
use crate::counting::{AttributeSet, CountedTable, CpuCounter, GroupCounter, all_pairs};
use crate::risk::adjacency::{Adjacency, AdjacencyError, Limits};
use crate::risk::qid::{Borders, Question, Strategy, search, search_with};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Columns whose sets a peer can all look at.
const MOST_BY_LEVELS: usize = 12;

fn table(stand: &Stand<'_>, rows: usize, width: u32) -> CountedTable {
    even(rows, &cardinalities(width), None, &mut ChaCha8Rng::seed_from_u64(stand.question.seed))
}

/// The upload of the table is part of the device's time, its narrow copy part of the CPU's.
pub(super) fn find_qid(stand: &Stand<'_>, name: &str, rows: usize, width: u32) -> Result<Vec<Measured>, BenchError> {
    let table = table(stand, rows, width);
    let columns = AttributeSet::first(table.width());
    let row_bytes = bytes_a_row(&table, &columns);
    let mut measured = Vec::new();
    for k in [2, 5, 20] {
        let question = |threads| Question {
            k,
            strategy: Strategy::default(),
            threads,
            budget: Some(stand.question.budget),
            memory: None,
            columns: columns.clone(),
        };
        let (gpu_seconds, (found, failures)) = fastest(1, || {
            let counter = CudaCounter::new(stand.device, &table, 1, None)?;
            let found = search_with(&table, &counter, &question(1), &|_| {})?;
            Ok((found, counter.used().failures))
        })?;
        let (cpu, expected) = stand.on_cpu(1, |threads| Ok(search(&table, &question(threads), &|_| {})))?;
        let same = |one: &Borders, other: &Borders| {
            (&one.minimal_qids, &one.maximal_non_qids) == (&other.minimal_qids, &other.maximal_non_qids)
        };
        let agrees = (found.complete && expected.complete).then(|| same(&found, &expected) && failures == 0);
        let size = Size { rows, candidates: found.evaluated.max(1), row_bytes };
        let name = format!("{name}, k = {k}");
        if table.width() <= MOST_BY_LEVELS && expected.complete {
            stand.ask_peer(&name, &table, &PeerQuestion::Borders(k, &expected), true)?;
        }
        measured.push(stand.measured(&name, &size, cpu, gpu_seconds, agrees));
    }
    Ok(measured)
}

fn empty(width: usize) -> Result<Adjacency, AdjacencyError> {
    let attributes: Vec<usize> = (0..width).collect();
    // All pairs, however many values meet.
    Adjacency::new(&attributes, Limits { max_edges: 1 << 40, half_lives: 0 })
}

/// The counts alone, of a table that is on the device; and the model from them, with the upload.
pub(super) fn adjacency(stand: &Stand<'_>, rows: usize) -> Result<Vec<Measured>, BenchError> {
    let table = table(stand, rows, 107);
    let counted = joint(stand, "joint counts, pairs of 107 columns", &table, true)?;
    let columns: Vec<&[u32]> = (0..table.width()).map(|column| table.column(column)).collect();
    let (gpu_seconds, (found, failures)) = fastest(1, || on_device(stand, empty(table.width())?, &columns))?;
    let (cpu, expected) = stand.on_cpu(1, |_| {
        let mut model = empty(table.width())?;
        model.add(&columns)?;
        Ok(model)
    })?;
    let pairs = all_pairs(table.width()).len() as u64;
    let row_bytes = bytes_a_row(&table, &AttributeSet::first(table.width()));
    let size = Size { rows, candidates: pairs, row_bytes };
    let agrees = Some(found == expected && failures == 0);
    Ok(vec![counted, stand.measured("adjacency, 107 columns", &size, cpu, gpu_seconds, agrees)])
}

/// A model with a batch added, and how often the device failed.
fn on_device(stand: &Stand<'_>, mut model: Adjacency, columns: &[&[u32]]) -> Result<(Adjacency, u64), BenchError> {
    let Some(table) = model.table(columns) else { return Ok((model, 1)) };
    let counter = CudaCounter::new(stand.device, &table, 1, None)?;
    model.add_counted(columns, &table, &mut |pairs| counter.count_pairs(pairs))?;
    Ok((model, counter.used().failures))
}

/// Four batches, one after the other; the time of one.
pub(super) fn batches(stand: &Stand<'_>, rows: usize) -> Result<Measured, BenchError> {
    const BATCHES: usize = 4;
    let table = table(stand, BATCHES * rows, 107);
    let batch = |at: usize| -> Vec<&[u32]> {
        (0..table.width()).map(|column| &table.column(column)[at * rows..(at + 1) * rows]).collect()
    };
    let (gpu_seconds, (found, failures)) = fastest(1, || {
        (0..BATCHES).try_fold((empty(table.width())?, 0), |(model, failures), at| {
            let (model, more) = on_device(stand, model, &batch(at))?;
            Ok((model, failures + more))
        })
    })?;
    let (mut cpu, expected) = stand.on_cpu(1, |_| {
        let mut model = empty(table.width())?;
        (0..BATCHES).try_for_each(|at| model.add(&batch(at)))?;
        Ok(model)
    })?;
    cpu.iter_mut().for_each(|cpu| cpu.seconds /= BATCHES as f64);
    let row_bytes = bytes_a_row(&table, &AttributeSet::first(table.width()));
    let size = Size { rows, candidates: all_pairs(table.width()).len() as u64, row_bytes };
    let agrees = Some(found == expected && failures == 0);
    Ok(stand.measured("adjacency of a batch, 107 columns", &size, cpu, gpu_seconds / BATCHES as f64, agrees))
}

/// Records that the window holds already come once more and push themselves out, so that it is the table's all along.
pub(super) fn recheck(stand: &Stand<'_>, rows: usize, batch: usize) -> Result<Measured, BenchError> {
    const K: u32 = 5;
    let table = table(stand, rows, 30);
    let candidates = ((30_000.0 * stand.question.scale.min(1.0)) as usize).max(60);
    let mut dice = ChaCha8Rng::seed_from_u64(stand.question.seed ^ 1);
    let sets = (2..5).flat_map(|size| some_sets(30, size, candidates / 3, &mut dice)).collect::<Vec<_>>();
    let bounds: Vec<u64> = (0..table.width()).map(|column| table.cardinality(column) as u64).collect();
    let part = |from: usize, to: usize| -> Vec<&[u32]> {
        (0..table.width()).map(|column| &table.column(column)[from..to]).collect()
    };
    let mut window = ResidentWindow::new(stand.device, rows, &bounds, false)?;
    window.push(&part(0, rows), None)?;
    let mut next = 0;
    let (gpu_seconds, (found, failures)) = fastest(3, || {
        let to = (next + batch).min(rows);
        window.push(&part(next, to), None)?;
        next = if to == rows { 0 } else { to };
        let counter = CudaCounter::resident(stand.device, &window, &table, 1, None)?;
        let found = counter.judge(&sets, K, &|| false)?;
        Ok((found, counter.used().failures))
    })?;
    let (cpu, expected) =
        stand.on_cpu(1, |threads| Ok(CpuCounter::new(&table, threads).judge(&sets, K, &|| false)?))?;
    let union = sets.iter().fold(AttributeSet::new(), |union, set| union.union(set));
    let size = Size { rows, candidates: sets.len() as u64, row_bytes: bytes_a_row(&table, &union) };
    let name = "a batch into the window, sets judged";
    let asked: Vec<Vec<usize>> = sets.iter().map(|set| set.iter().collect()).collect();
    stand.ask_peer(name, &table, &PeerQuestion::Verdicts(&asked, K, &expected), false)?;
    Ok(stand.measured(name, &size, cpu, gpu_seconds, Some(found == expected && failures == 0)))
}
