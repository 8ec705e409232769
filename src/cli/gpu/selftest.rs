//! `throng selftest gpu`.

use super::check::{Check, selftest as compare};
use super::device::{described, hardware, open, share, tell};
use crate::cli::outcome::Failure;
use anyhow::{Context, anyhow};
use serde_json::json;
use std::time::SystemTime;
use throng_risk::counting::cuda::{Resources, resources};

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
