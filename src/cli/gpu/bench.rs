//! `throng bench gpu`: times the same counting on the GPU and on all cores of the CPU.

use super::check::even;
use super::device::{described, open, tell};
use crate::cli::outcome::Failure;
use anyhow::{Context, anyhow};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use throng_risk::counting::cuda::CudaCounter;
use throng_risk::counting::{AttributeSet, CountedTable, CpuCounter, Device, GroupCounter, all_pairs, count_pairs};
use throng_risk::qid::{Question, Strategy, search, search_with};

/// Columns of the table, of 2 to 100 values.
const WIDTH: usize = 30;

/// Columns of the search for quasi-identifiers.
const SEARCHED: usize = 12;

/// Support that a judgement asks for.
const K: u32 = 5;

/// Each count is repeated this many times; the fastest run is reported.
const ROUNDS: usize = 3;

/// Time limit of a search for quasi-identifiers, on either backend.
const SEARCH_LIMIT: Duration = Duration::from_secs(60);

/// Time counting on the GPU and on the CPU, on a generated table
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 measured · 1 the answers differ · 3 no GPU can be used")]
pub struct BenchArgs {
    /// Rows of the table
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..=100_000_000))]
    rows: u32,
    /// The seed of the table
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Time of one task on both backends.
#[derive(Clone, Debug, serde::Serialize)]
struct Measurement {
    task: &'static str,
    /// Column sets that were counted or judged.
    sets: u64,
    cpu_seconds: f64,
    gpu_seconds: f64,
    /// True if the answers are equal and the device gave its own; none if a search reached its time limit.
    agrees: Option<bool>,
}

/// Runs `throng bench gpu`.
///
/// # Errors
/// Without a device, where it fails, where the answers differ.
pub fn bench(args: &BenchArgs) -> Result<(), Failure> {
    let device = open()?;
    let measured = measure(&device, args.rows as usize, args.seed, &tell).context("the benchmark failed")?;
    let threads = cores();
    if args.json {
        let name = &device.limits().name;
        let report =
            json!({ "device": name, "threads": threads, "rows": args.rows, "seed": args.seed, "measured": measured });
        println!("{report}");
    } else {
        println!("{}, against {threads} threads of the CPU; {} rows; milliseconds", described(&device), args.rows);
        println!("{:<28} {:>6} {:>12} {:>12} {:>9}", "task", "sets", "CPU", "GPU", "faster");
        for Measurement { task, sets, cpu_seconds, gpu_seconds, agrees } in &measured {
            let (cpu, gpu, faster) = (cpu_seconds * 1e3, gpu_seconds * 1e3, cpu_seconds / gpu_seconds);
            let unfinished = if agrees.is_none() { "  (unfinished)" } else { "" };
            println!("{task:<28} {sets:>6} {cpu:>12.3} {gpu:>12.3} {faster:>8.1}×{unfinished}");
        }
    }
    match measured.iter().find(|one| one.agrees == Some(false)) {
        Some(one) => Err(Failure::Running(anyhow!("{}: the answers differ; run throng selftest gpu", one.task))),
        None => Ok(()),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Times counts, judgements, joint counts of pairs and a search for quasi-identifiers.
fn measure(
    device: &Arc<dyn Device>,
    rows: usize,
    seed: u64,
    progress: &dyn Fn(&str),
) -> anyhow::Result<Vec<Measurement>> {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let cardinalities: Vec<u32> = (0..WIDTH as u32).map(|at| 2 + at * 98 / (WIDTH as u32 - 1)).collect();
    let records = even(rows, &cardinalities, None, &mut dice);
    let people = even(rows, &cardinalities, Some((rows as u32 / 20).max(1)), &mut dice);
    let mut measured = Vec::new();
    for (task, table, size, sets, judging) in [
        ("count pairs", &records, 2, 2000, false),
        ("judge triples", &records, 3, 2000, true),
        ("count fours", &records, 4, 200, false),
        ("judge sixes", &records, 6, 500, true),
        ("judge people by pairs", &people, 2, 500, true),
        ("count people by fours", &people, 4, 50, false),
    ] {
        progress(task);
        let sets = some_sets(size, sets, &mut dice);
        let ask = |counter: &dyn GroupCounter| -> anyhow::Result<_> {
            if judging {
                Ok((vec![], counter.judge(&sets, K, &|| false)?))
            } else {
                Ok((counter.count(&sets, K)?, vec![]))
            }
        };
        let (gpu, cpu) = (CudaCounter::new(device, table, 1, None)?, CpuCounter::new(table, cores()));
        let (gpu_seconds, found) = fastest(|| ask(&gpu))?;
        let (cpu_seconds, expected) = fastest(|| ask(&cpu))?;
        let agrees = Some(found == expected && gpu.used().failures == 0);
        measured.push(Measurement { task, sets: sets.len() as u64, cpu_seconds, gpu_seconds, agrees });
    }
    progress("joint counts of all pairs");
    measured.push(joint_counts(device, &records)?);
    progress("find-qid");
    measured.push(find_qid(device, &records)?);
    Ok(measured)
}

fn some_sets(size: usize, count: usize, dice: &mut impl Rng) -> Vec<AttributeSet> {
    let columns: Vec<usize> = (0..WIDTH).collect();
    (0..count).map(|_| columns.choose_multiple(dice, size).copied().collect()).collect()
}

fn joint_counts(device: &Arc<dyn Device>, table: &CountedTable) -> anyhow::Result<Measurement> {
    let pairs = all_pairs(table.width());
    let gpu = CudaCounter::new(device, table, 1, None)?;
    let (gpu_seconds, found) = fastest(|| Ok(gpu.count_pairs(&pairs)))?;
    let (cpu_seconds, expected) = fastest(|| Ok(count_pairs(table, &pairs)))?;
    let agrees = Some(found == expected && gpu.used().failures == 0);
    Ok(Measurement { task: "joint counts of all pairs", sets: pairs.len() as u64, cpu_seconds, gpu_seconds, agrees })
}

/// One search; the upload of the table is part of the device's time.
fn find_qid(device: &Arc<dyn Device>, table: &CountedTable) -> anyhow::Result<Measurement> {
    let columns = AttributeSet::first(SEARCHED);
    let question = |threads| Question {
        k: K,
        strategy: Strategy::default(),
        threads,
        budget: Some(SEARCH_LIMIT),
        memory: None,
        columns: columns.clone(),
    };
    let started = Instant::now();
    let gpu = CudaCounter::new(device, table, 1, None)?;
    let found = search_with(table, &gpu, &question(1), &|_| {})?;
    let gpu_seconds = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let expected = search(table, &question(cores()), &|_| {});
    let cpu_seconds = started.elapsed().as_secs_f64();
    let equal = (&found.minimal_qids, &found.maximal_non_qids) == (&expected.minimal_qids, &expected.maximal_non_qids);
    let agrees = (found.complete && expected.complete).then(|| equal && gpu.used().failures == 0);
    Ok(Measurement { task: "find-qid on 12 columns", sets: found.evaluated, cpu_seconds, gpu_seconds, agrees })
}

/// Seconds of the fastest round, and the last answer.
fn fastest<T>(mut work: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<(f64, T)> {
    let mut round = || {
        let started = Instant::now();
        let answer = work()?;
        anyhow::Ok((started.elapsed().as_secs_f64(), answer))
    };
    let (mut best, mut answer) = round()?;
    for _ in 1..ROUNDS {
        let (seconds, next) = round()?;
        (best, answer) = (best.min(seconds), next);
    }
    Ok((best, answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_risk::counting::cuda::emulator::Emulator;

    #[test]
    fn bench_on_the_emulated_device_agrees_with_the_cpu() {
        let device: Arc<dyn Device> = Emulator::start(256 << 20, 3);
        let measured = measure(&device, 300, 5, &|_| {}).expect("there is room");
        assert_eq!(measured.len(), 8);
        for one in measured {
            assert_eq!(one.agrees, Some(true), "{one:?}");
            assert!(one.gpu_seconds > 0.0 && one.cpu_seconds > 0.0 && one.sets > 0, "{one:?}");
        }
    }
}
