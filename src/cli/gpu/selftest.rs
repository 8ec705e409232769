//! `throng selftest gpu`.

use super::device::{describe_device, device_failure, open_device, print_step, scale_argument};
use super::device_check::{DeviceCheck, run_device_checks as compare};
use crate::cli::outcome::Failure;
use anyhow::{Context, anyhow};
use serde_json::json;
use std::time::SystemTime;
use throng_risk::counting::cuda::{KernelResources, compile_resources};

/// Four blocks of 256 threads share a multiprocessor.
const MAX_REGISTERS: u32 = 64;

/// Compare the GPU with the CPU on random tables of every kind
///
/// Every buffer on the device is filled with a pattern first. The inputs differ in every run; --seed repeats a run.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 all results correct · 1 some wrong · 3 no GPU can be used (or no NVRTC, with --compile-only)"
)]
pub struct SelftestArgs {
    /// Random tables of each kind
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    tables: u64,
    /// Seed of the tables (default: the time)
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Size of the tables as a factor; use a small one under a memory checker, which slows the device down by a
    /// factor of tens
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = scale_argument)]
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
/// Fails without a working device, for a wrong answer, and, with `--compile-only`, for a kernel that does not compile
/// or exceeds limits.
pub fn selftest(args: &SelftestArgs) -> Result<(), Failure> {
    if !args.compile_only.is_empty() {
        return compile_kernels(args);
    }
    let device = open_device()?;
    let nanoseconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let seed = args.seed.unwrap_or(nanoseconds);
    let checks = compare(&device, seed, args.tables, args.scale, &print_step).context("the self-test failed")?;
    if args.json {
        let report = json!({ "device": device.limits().name, "seed": seed, "checks": checks });
        println!("{report}");
    } else {
        println!("{}, seed {seed}", describe_device(&device));
        println!("{:<32} {:>7} {:>9} {:>7} {:>9} {:>9}", "check", "tables", "answers", "wrong", "by CPU", "launches");
        checks.iter().for_each(|check| println!("{}", device_check_row(check)));
    }
    let failed = checks.iter().filter(|check| !check.passed()).count();
    if failed > 0 {
        return Err(Failure::Running(anyhow!(
            "{failed} of {} checks failed: the device's results are unreliable; use --backend cpu (seed {seed} \
             repeats this run)",
            checks.len()
        )));
    }
    Ok(())
}

fn device_check_row(check: &DeviceCheck) -> String {
    let DeviceCheck { name, tables, answers, wrong, by_the_cpu, launches, .. } = check;
    let verdict = if check.passed() { "" } else { "  FAILED" };
    format!("{name:<32} {tables:>7} {answers:>9} {wrong:>7} {by_the_cpu:>9} {launches:>9}{verdict}")
}

/// Also checks resource limits.
fn compile_kernels(args: &SelftestArgs) -> Result<(), Failure> {
    let mut over = 0;
    let mut reports = Vec::new();
    for architecture in &args.compile_only {
        let found = compile_resources(architecture).map_err(device_failure)?;
        over += found.iter().filter(|kernel| !is_within_limits(kernel)).count();
        reports.push((architecture, found));
    }
    if args.json {
        let of = |(architecture, kernels): &(&String, Vec<KernelResources>)| json!({ "architecture": architecture, "kernels": kernels });
        println!("{}", json!(reports.iter().map(of).collect::<Vec<_>>()));
    } else {
        println!("{:<10} {:<18} {:>9} {:>11} {:>11}", "for", "kernel", "registers", "stack bytes", "spill bytes");
        for (architecture, kernels) in &reports {
            for kernel in kernels {
                let KernelResources { kernel: name, registers, stack_bytes, spill_bytes } = kernel;
                let verdict = if is_within_limits(kernel) { "" } else { "  TOO MUCH" };
                println!("{architecture:<10} {name:<18} {registers:>9} {stack_bytes:>11} {spill_bytes:>11}{verdict}");
            }
        }
    }
    if over > 0 {
        return Err(Failure::Running(anyhow!(
            "{over} kernels take more than {MAX_REGISTERS} registers, or spill: simplify them"
        )));
    }
    Ok(())
}

fn is_within_limits(kernel: &KernelResources) -> bool {
    (1..=MAX_REGISTERS).contains(&kernel.registers) && kernel.stack_bytes == 0 && kernel.spill_bytes == 0
}
