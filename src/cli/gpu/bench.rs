//! `throng bench gpu`: the same counting on GPU and CPU.

use super::device::{describe_device, open_device, print_step};
use super::device_check::uniform_table;
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
use throng_risk::qid::{QidSearchRequest, QidStrategy, search, search_on_backend};

/// Columns of 2 to 100 values.
const TABLE_WIDTH: usize = 30;

const SEARCH_COLUMNS: usize = 12;

const SUPPORT_THRESHOLD: u32 = 5;

/// The fastest is reported.
const TIMED_ROUNDS: usize = 3;

const SEARCH_TIME_LIMIT: Duration = Duration::from_secs(60);

/// Time counting on the GPU and on the CPU, on a generated table
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 measured · 1 the results differ · 3 no GPU can be used")]
pub struct BenchArgs {
    /// Rows of the table
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..=100_000_000))]
    rows: u32,
    /// Seed of the table
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug, serde::Serialize)]
struct TaskTiming {
    task: &'static str,
    /// Counted or judged.
    sets: u64,
    cpu_seconds: f64,
    gpu_seconds: f64,
    /// Answers are equal and from the device; none after a time limit.
    agrees: Option<bool>,
}

/// Runs `throng bench gpu`.
///
/// # Errors
/// Fails without a working device, or if answers differ.
pub fn bench(args: &BenchArgs) -> Result<(), Failure> {
    let device = open_device()?;
    let measured = time_tasks(&device, args.rows as usize, args.seed, &print_step).context("the benchmark failed")?;
    let threads = cpu_cores();
    if args.json {
        let name = &device.limits().name;
        let report =
            json!({ "device": name, "threads": threads, "rows": args.rows, "seed": args.seed, "measured": measured });
        println!("{report}");
    } else {
        println!(
            "{}, against {threads} threads of the CPU; {} rows; milliseconds",
            describe_device(&device),
            args.rows
        );
        println!("{:<28} {:>6} {:>12} {:>12} {:>9}", "task", "sets", "CPU", "GPU", "faster");
        for TaskTiming { task, sets, cpu_seconds, gpu_seconds, agrees } in &measured {
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

fn cpu_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn time_tasks(
    device: &Arc<dyn Device>,
    rows: usize,
    seed: u64,
    progress: &dyn Fn(&str),
) -> anyhow::Result<Vec<TaskTiming>> {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let cardinalities: Vec<u32> = (0..TABLE_WIDTH as u32).map(|at| 2 + at * 98 / (TABLE_WIDTH as u32 - 1)).collect();
    let records = uniform_table(rows, &cardinalities, None, &mut dice);
    let people = uniform_table(rows, &cardinalities, Some((rows as u32 / 20).max(1)), &mut dice);
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
        let sets = sets_of_size(size, sets, &mut dice);
        let ask = |counter: &dyn GroupCounter| -> anyhow::Result<_> {
            if judging {
                Ok((vec![], counter.judge(&sets, SUPPORT_THRESHOLD, &|| false)?))
            } else {
                Ok((counter.count(&sets, SUPPORT_THRESHOLD)?, vec![]))
            }
        };
        let (gpu, cpu) = (CudaCounter::new(device, table, 1, None)?, CpuCounter::new(table, cpu_cores()));
        let (gpu_seconds, found) = time_fastest_round(|| ask(&gpu))?;
        let (cpu_seconds, expected) = time_fastest_round(|| ask(&cpu))?;
        let agrees = Some(found == expected && gpu.usage().failures == 0);
        measured.push(TaskTiming { task, sets: sets.len() as u64, cpu_seconds, gpu_seconds, agrees });
    }
    progress("joint counts of all pairs");
    measured.push(time_joint_counts(device, &records)?);
    progress("find-qid");
    measured.push(time_find_qid(device, &records)?);
    Ok(measured)
}

fn sets_of_size(size: usize, count: usize, dice: &mut impl Rng) -> Vec<AttributeSet> {
    let columns: Vec<usize> = (0..TABLE_WIDTH).collect();
    (0..count).map(|_| columns.choose_multiple(dice, size).copied().collect()).collect()
}

fn time_joint_counts(device: &Arc<dyn Device>, table: &CountedTable) -> anyhow::Result<TaskTiming> {
    let pairs = all_pairs(table.width());
    let gpu = CudaCounter::new(device, table, 1, None)?;
    let (gpu_seconds, found) = time_fastest_round(|| Ok(gpu.count_pairs(&pairs)))?;
    let (cpu_seconds, expected) = time_fastest_round(|| Ok(count_pairs(table, &pairs)))?;
    let agrees = Some(found == expected && gpu.usage().failures == 0);
    Ok(TaskTiming { task: "joint counts of all pairs", sets: pairs.len() as u64, cpu_seconds, gpu_seconds, agrees })
}

/// The upload counts as device time.
fn time_find_qid(device: &Arc<dyn Device>, table: &CountedTable) -> anyhow::Result<TaskTiming> {
    let columns = AttributeSet::first(SEARCH_COLUMNS);
    let question = |threads| QidSearchRequest {
        k: SUPPORT_THRESHOLD,
        strategy: QidStrategy::default(),
        threads,
        budget: Some(SEARCH_TIME_LIMIT),
        memory: None,
        columns: columns.clone(),
    };
    let started = Instant::now();
    let gpu = CudaCounter::new(device, table, 1, None)?;
    let found = search_on_backend(table, &gpu, &question(1), &|_| {})?;
    let gpu_seconds = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let expected = search(table, &question(cpu_cores()), &|_| {});
    let cpu_seconds = started.elapsed().as_secs_f64();
    let equal = (&found.minimal_qids, &found.maximal_non_qids) == (&expected.minimal_qids, &expected.maximal_non_qids);
    let agrees = (found.complete && expected.complete).then(|| equal && gpu.usage().failures == 0);
    Ok(TaskTiming { task: "find-qid on 12 columns", sets: found.evaluated, cpu_seconds, gpu_seconds, agrees })
}

/// Returns seconds and the last answer.
fn time_fastest_round<T>(mut work: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<(f64, T)> {
    let mut round = || {
        let started = Instant::now();
        let answer = work()?;
        anyhow::Ok((started.elapsed().as_secs_f64(), answer))
    };
    let (mut best, mut answer) = round()?;
    for _ in 1..TIMED_ROUNDS {
        let (seconds, next) = round()?;
        (best, answer) = (best.min(seconds), next);
    }
    Ok((best, answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_risk::counting::cuda::emulator::EmulatedDevice;

    #[test]
    fn bench_on_the_emulated_device_agrees_with_the_cpu() {
        let device: Arc<dyn Device> = EmulatedDevice::start(256 << 20, 3);
        let measured = time_tasks(&device, 300, 5, &|_| {}).expect("there is room");
        assert_eq!(measured.len(), 8);
        for one in measured {
            assert_eq!(one.agrees, Some(true), "{one:?}");
            assert!(one.gpu_seconds > 0.0 && one.cpu_seconds > 0.0 && one.sets > 0, "{one:?}");
        }
    }
}
