//! `throng bench gpu`.

use super::device::{described, open, share, tell};
use super::measure::{BenchQuestion, Case, Measured, OnPeer, measure};
use crate::cli::outcome::Failure;
use anyhow::{Context, anyhow};
use clap::builder::PossibleValuesParser;
use serde_json::json;
use std::time::Duration;

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
