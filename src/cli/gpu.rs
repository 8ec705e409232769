//! `throng selftest gpu` and `throng bench gpu`.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow};
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::outcome::Failure;
use crate::counting::cuda::{Device, DeviceError, Driver, Resources, resources};
use crate::risk::device_check::{BenchQuestion, Case, Check, Measured, OnPeer, bench as measure, selftest as compare};

/// Registers that a thread may take: four blocks of 256 threads then share a multiprocessor.
const MOST_REGISTERS: u32 = 64;

/// The GPU against the CPU: the same answers, on random tables of every kind
///
/// Every buffer on the device begins with a pattern. The inputs are other ones each time; --seed repeats a run.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 every answer is right · 1 some are not · 3 no GPU can be used (or no NVRTC, with --compile-only)"
)]
pub struct SelftestArgs {
    /// Random tables of each kind
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    tables: u64,
    /// The seed of the tables (default: the time)
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// The size of the tables, as a share: a memory checker slows the device down by a factor of tens
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = share)]
    scale: f64,
    /// Only compile the kernels, for these architectures; needs NVRTC and no GPU
    #[arg(long, value_name = "sm_70,sm_90,…", value_delimiter = ',')]
    compile_only: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The GPU against the CPU: the time of the same work, beside what the device could do at best
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 measured · 1 the answers differ, or the peer failed · 3 no GPU can be used")]
pub struct BenchArgs {
    /// What is measured (default: all of it)
    #[arg(long = "case", value_name = "NAME,…", value_delimiter = ',', value_parser = PossibleValuesParser::new(Case::ALL.map(Case::name)))]
    cases: Vec<String>,
    /// Rows of the tables of `counting`
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..=100_000_000))]
    rows: u32,
    /// The rows of all other cases, as a share of what they are meant for (1 to 20 million)
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = share)]
    scale: f64,
    /// Threads of the CPU, one measurement each (default: 2, and all cores)
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Vec<u16>,
    /// Time for each search for quasi-identifiers
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    max_seconds: u64,
    /// The seed of the tables
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// A program that answers the same questions about the same tables: "python3 benches/gpu/peer.py" (PyTorch or CuPy)
    ///
    /// The command is split at blanks. Its answers are compared with the CPU's before any of its times is printed.
    #[arg(long, value_name = "COMMAND")]
    peer: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if share > 0.0 && share <= 10.0 { Ok(share) } else { Err("a number above 0 and up to 10".to_owned()) }
}

fn open() -> Result<Arc<dyn Device>, Failure> {
    Driver::shared().map_err(hardware)
}

/// Without a device it is hardware that is missing; one that is there and fails, failed.
fn hardware(error: DeviceError) -> Failure {
    match error {
        DeviceError::Absent { .. } => Failure::Hardware(error.into()),
        _ => Failure::Running(error.into()),
    }
}

fn tell(step: &str) {
    eprintln!("{step} …");
}

/// Runs `throng selftest gpu`.
///
/// # Errors
/// Without a device, where it fails, where an answer is wrong; with `--compile-only`, where a kernel does not compile, or
/// takes more than it may.
pub fn selftest(args: &SelftestArgs) -> Result<(), Failure> {
    if !args.compile_only.is_empty() {
        return compile(args);
    }
    let device = open()?;
    let nanoseconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let seed = args.seed.unwrap_or(nanoseconds);
    let checks = compare(&device, seed, args.tables, args.scale, &tell).context("the self-test broke off")?;
    if args.json {
        let report = json!({ "device": device.limits().name, "seed": seed, "checks": checks });
        println!("{report}");
    } else {
        println!("{}, seed {seed}", described(&device));
        println!("{:<32} {:>7} {:>9} {:>7} {:>9} {:>9}", "check", "tables", "answers", "wrong", "by CPU", "launches");
        checks.iter().for_each(|check| println!("{}", row(check)));
    }
    let failed = checks.iter().filter(|check| !check.passed()).count();
    if failed > 0 {
        return Err(Failure::Running(anyhow!(
            "{failed} of {} checks failed: the device's answers cannot be relied on; use --backend cpu (seed {seed} \
             repeats this run)",
            checks.len()
        )));
    }
    Ok(())
}

fn row(check: &Check) -> String {
    let Check { name, tables, answers, wrong, by_the_cpu, launches, .. } = check;
    let verdict = if check.passed() { "" } else { "  FAILED" };
    format!("{name:<32} {tables:>7} {answers:>9} {wrong:>7} {by_the_cpu:>9} {launches:>9}{verdict}")
}

fn described(device: &Arc<dyn Device>) -> String {
    let limits = device.limits();
    let gibibytes = limits.memory_bytes as f64 / f64::from(1 << 30);
    let (major, minor) = limits.capability;
    format!(
        "{} (sm_{major}{minor}, {} multiprocessors, {gibibytes:.0} GiB of memory)",
        limits.name, limits.multiprocessors
    )
}

/// Compiles every kernel for some architectures and bounds what each takes.
fn compile(args: &SelftestArgs) -> Result<(), Failure> {
    let mut over = 0;
    let mut reports = Vec::new();
    for architecture in &args.compile_only {
        let found = resources(architecture).map_err(hardware)?;
        over += found.iter().filter(|kernel| !is_bounded(kernel)).count();
        reports.push((architecture, found));
    }
    if args.json {
        let of = |(architecture, kernels): &(&String, Vec<Resources>)| json!({ "architecture": architecture, "kernels": kernels });
        println!("{}", json!(reports.iter().map(of).collect::<Vec<_>>()));
    } else {
        println!("{:<10} {:<18} {:>9} {:>11} {:>11}", "for", "kernel", "registers", "stack bytes", "spill bytes");
        for (architecture, kernels) in &reports {
            for kernel in kernels {
                let Resources { kernel: name, registers, stack_bytes, spill_bytes } = kernel;
                let verdict = if is_bounded(kernel) { "" } else { "  TOO MUCH" };
                println!("{architecture:<10} {name:<18} {registers:>9} {stack_bytes:>11} {spill_bytes:>11}{verdict}");
            }
        }
    }
    if over > 0 {
        return Err(Failure::Running(anyhow!(
            "{over} kernels take more than {MOST_REGISTERS} registers, or spill: simplify them"
        )));
    }
    Ok(())
}

fn is_bounded(kernel: &Resources) -> bool {
    (1..=MOST_REGISTERS).contains(&kernel.registers) && kernel.stack_bytes == 0 && kernel.spill_bytes == 0
}

/// Runs `throng bench gpu`.
///
/// # Errors
/// Without a device, where it fails, where the answers differ.
pub fn bench(args: &BenchArgs) -> Result<(), Failure> {
    let device = open()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut threads: Vec<usize> = args.threads.iter().map(|threads| usize::from(*threads)).collect();
    if threads.is_empty() {
        threads = vec![2, cores.max(2)];
    }
    threads.dedup();
    let mut cases: Vec<Case> = args.cases.iter().filter_map(|name| Case::named(name)).collect();
    if cases.is_empty() {
        cases = Case::ALL.to_vec();
    }
    let question = BenchQuestion {
        cases,
        rows: args.rows as usize,
        scale: args.scale,
        threads,
        budget: Duration::from_secs(args.max_seconds),
        seed: args.seed,
        peer: args.peer.clone(),
    };
    let measured = measure(&device, &question, &tell).context("the benchmark broke off")?;
    if args.json {
        let report = json!({
            "device": device.limits().name,
            "threads": question.threads,
            "scale": args.scale,
            "seed": args.seed,
            "measured": measured,
        });
        println!("{report}");
    } else {
        println!("{}, against the CPU; milliseconds", described(&device));
        let cpus: String =
            question.threads.iter().map(|threads| format!(" {:>12}", format!("CPU × {threads}"))).collect();
        println!(
            "{:<36} {:>9} {:>9}{cpus} {:>11} {:>9} {:>11} {:>9} {:>11}",
            "work", "rows", "sets", "GPU", "faster", "bytes floor", "of copy", "ops floor"
        );
        measured.iter().for_each(|work| println!("{}", line(work, question.threads.len())));
        against_the_peer(&measured);
    }
    if let Some(work) = measured.iter().find(|work| work.agrees == Some(false)) {
        return Err(Failure::Running(anyhow!("{}: the answers differ; run throng selftest gpu", work.work)));
    }
    let peers = measured.iter().filter_map(|work| work.peer.as_ref().map(|peer| (work, peer)));
    match peers.into_iter().find(|(_, peer)| peer.agrees != Some(true)) {
        Some((work, OnPeer { failure: Some(failure), .. })) => {
            Err(Failure::Running(anyhow!("{}: the peer gave no answer: {failure}", work.work)))
        }
        Some((work, _)) => Err(Failure::Running(anyhow!("{}: the peer's answer is not the CPU's", work.work))),
        None => Ok(()),
    }
}

/// A table of the works that the peer was asked about.
fn against_the_peer(measured: &[Measured]) {
    let told: Vec<(&Measured, &OnPeer)> =
        measured.iter().filter_map(|work| work.peer.as_ref().map(|peer| (work, peer))).collect();
    let Some((_, first)) = told.first() else { return };
    println!("\nagainst {} on {}, the same tables; milliseconds", first.library, first.device);
    println!(
        "{:<36} {:>14} {:<24} {:>11} {:>11} {:>11} {:>9}",
        "work", "sets asked", "the peer's way", "its median", "its best", "GPU", "faster"
    );
    for (work, peer) in told {
        let milliseconds = |seconds: Option<f64>| seconds.map_or_else(String::new, |s| format!("{:.3}", s * 1e3));
        let verdict = match (&peer.failure, peer.agrees) {
            (Some(failure), _) => format!("  no answer: {failure}"),
            (None, Some(false)) => "  WRONG".to_owned(),
            (None, _) => String::new(),
        };
        println!(
            "{:<36} {:>14} {:<24} {:>11} {:>11} {:>11} {:>9}{verdict}",
            work.work,
            format!("{} of {}", peer.sets, peer.of),
            peer.form.as_deref().unwrap_or_default(),
            milliseconds(peer.median_seconds),
            milliseconds(peer.seconds),
            milliseconds(Some(work.gpu_seconds)),
            peer.seconds.map_or_else(String::new, |seconds| format!("{:.1}×", seconds / work.gpu_seconds)),
        );
    }
}

fn line(work: &Measured, columns: usize) -> String {
    let milliseconds = |seconds: f64| format!("{:.3}", seconds * 1e3);
    let cpu = |at: usize| work.cpu.get(at).map_or_else(String::new, |cpu| milliseconds(cpu.seconds));
    let cpus: String = (0..columns).map(|at| format!(" {:>12}", cpu(at))).collect();
    format!(
        "{:<36} {:>9} {:>9}{cpus} {:>11} {:>8.1}× {:>11} {:>7.1} % {:>11}{}",
        work.work,
        work.rows,
        work.candidates,
        milliseconds(work.gpu_seconds),
        work.speedup,
        milliseconds(work.bytes_floor_seconds),
        100.0 * work.bandwidth_share,
        milliseconds(work.operations_floor_seconds),
        if work.agrees.is_none() { "  (unfinished)" } else { "" }
    )
}
