//! The command line.

pub mod anonymize;
pub mod attack;
pub mod audit;
pub mod catalog;
pub mod check;
mod daemon_client;
pub mod demo;
mod diff;
pub mod evaluate;
pub mod forget;
pub mod generate;
pub mod gpu;
pub mod init;
mod json;
pub mod measured;
pub mod outcome;
mod page;
mod progress;
mod rehearsal;
mod reload;
mod reloading;
pub mod run;
pub mod sample;
pub mod schema;
pub mod shell;
pub mod state;
mod stopping;
mod streamable;
mod summary;
mod text;
mod together;
mod trials;
pub mod unread;
mod verify_release;
mod written;
mod written_down;

use clap::{CommandFactory, Parser, Subcommand};
use outcome::{Failure, report};
use std::process::ExitCode;

/// A streaming anonymization daemon: sensor and health records in, a k-anonymous stream out.
///
/// throng reads micro-batches from a Kafka topic (or a file), and releases each record only in a crowd of at least k
/// people. Try `throng demo`: the whole product on this machine, with nothing installed.
#[derive(Parser)]
#[command(version, propagate_version = true, max_term_width = 110)]
#[command(
    after_help = "Exit codes: 0 done · 1 failed while running · 2 bad usage or configuration · 3 the named hardware is not there · 4 a finding above the limit that was given"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the daemon: read, anonymize, release, until the source ends or a signal comes
    Run(run::RunArgs),
    /// Run the whole product here: a broker, a generator, the daemon and its status page
    Demo(demo::DemoArgs),
    /// Erase people from the state: window, model, sample, ledger, what waits, profiles
    Forget(forget::ForgetArgs),
    /// Check a configuration with its schema and hierarchies; every problem at once
    Check(check::CheckArgs),
    /// What a changed policy does to risk, loss and suppression: a table for a pull request
    Diff(diff::DiffArgs),
    /// Have the running daemon read its configuration anew, and say what became of it
    Reload(reload::ReloadArgs),
    /// Anonymize one data set at once, with the best generalization of all
    Anonymize(anonymize::AnonymizeArgs),
    /// Read a release with counterfeits by its catalog
    #[command(subcommand)]
    Catalog(catalog::CatalogArgs),
    /// Find what identifies people in a file, alone and in combination, and the risk of its records
    ///
    /// Reads a CSV, NDJSON or Parquet file as a whole and reports its standalone identifiers, its minimal
    /// quasi-identifiers (the smallest sets of columns in which some combination of values is shared by fewer than k
    /// people), the largest sets of columns that are none, and how many records that puts at risk. Nothing of the data
    /// is printed but the names of its columns, unless --show-values is given.
    Audit(audit::AuditArgs),
    /// Write a schema, a configuration and a secret for records of one's own
    Init(init::InitArgs),
    /// Propose a record schema
    #[command(subcommand)]
    Schema(schema::SchemaArgs),
    /// Measure a release from outside: what it is worth, and how far its lines stand out
    Evaluate(evaluate::EvaluateArgs),
    /// Try on a release what outsiders try, and say how often they would be right
    Attack(attack::AttackArgs),
    /// Recount a release without the daemon: its form, and its crowds
    VerifyRelease(verify_release::VerifyReleaseArgs),
    /// Generate synthetic records
    Generate(generate::GenerateArgs),
    /// Look into a state directory, check it, or take it elsewhere; no daemon may have it open
    #[command(subcommand)]
    State(state::StateArgs),
    /// Print what a shell needs to complete the command line
    Completions(shell::CompletionsArgs),
    /// Write the pages of the manual, one a command
    Man(shell::ManArgs),
    /// Check what this machine has, on fresh random inputs
    #[command(subcommand)]
    Selftest(Selftest),
    /// Measure how fast this machine counts
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Subcommand)]
enum Selftest {
    /// The GPU against the CPU: the same answers, on random tables of every kind
    Gpu(gpu::SelftestArgs),
}

#[derive(Subcommand)]
enum Bench {
    /// Time counting on the GPU and on the CPU, on a generated table
    Gpu(gpu::BenchArgs),
}

/// The process, from its arguments to its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let _armed = crate::faults::arm();
    unread::heeding(|| command(cli))
}

fn command(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Forget(args) => forget::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Reload(args) => reload::run(&args),
        Command::Anonymize(args) => anonymize::run(&args),
        Command::Catalog(args) => catalog::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Attack(args) => attack::run(&args),
        Command::VerifyRelease(args) => verify_release::run(&args),
        Command::Generate(args) => generate::run(args).map_err(Failure::from),
        Command::State(args) => state::run(&args),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Man(args) => shell::man(&args, Cli::command()),
        Command::Selftest(Selftest::Gpu(args)) => gpu::selftest(&args),
        Command::Bench(Bench::Gpu(args)) => gpu::bench(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure),
    }
}
