//! Command line interface of throng.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the commands print their results")]

pub mod anonymize;
pub mod attack;
pub mod audit;
pub mod broken_pipe;
pub mod catalog;
pub mod check;
mod daemon_client;
pub mod demo;
mod diff;
pub mod evaluate;
mod file_transaction;
pub mod forget;
pub mod generate;
pub mod gpu;
pub mod init;
mod input_formats;
mod json;
pub mod loaded_release;
pub mod outcome;
mod output_checks;
mod page_components;
mod policy_test_runs;
mod progress;
pub mod record_sample;
mod reload;
mod reload_handler;
pub mod run;
mod run_summary;
pub mod schema;
pub mod shell;
pub mod state;
mod stop_signals;
mod streamable;
mod text_format;
mod topics;
mod trial_run;
mod verify_release;

use clap::{CommandFactory, Parser, Subcommand};
use outcome::{Failure, print_failure};
use std::process::ExitCode;

/// Streaming anonymization daemon: sensor and health records in, a k-anonymous stream out.
///
/// throng reads micro-batches from a Kafka topic or a file. It releases a record only in an equivalence class of at
/// least k subjects. Try `throng demo`: the complete product on this machine, with nothing to install.
#[derive(Parser)]
#[command(version, propagate_version = true, max_term_width = 110)]
#[command(
    after_help = "Exit codes: 0 success · 1 failed while running · 2 bad usage or configuration · 3 requested hardware not available · 4 a finding exceeds the given limit"
)]
struct CommandLineArgs {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Run the daemon: read, anonymize and release until the source ends or a signal arrives
    Run(run::RunArgs),
    /// Run a complete demonstration: a broker, a generator, the daemon and its status page
    Demo(demo::DemoArgs),
    /// Erase subjects from the state: window, model, sample, ledger, withheld lines, profiles
    Forget(forget::ForgetArgs),
    /// Check a configuration with its schema and hierarchies, and report all problems
    Check(check::CheckArgs),
    /// Show the effect of a changed policy on risk, loss and suppression, as a table for a pull request
    Diff(diff::DiffArgs),
    /// Reload the configuration of the running daemon and print the outcome
    Reload(reload::ReloadArgs),
    /// Anonymize one data set in one run, with its best generalization
    Anonymize(anonymize::AnonymizeArgs),
    /// Process a release with counterfeits using its catalog
    #[command(subcommand)]
    Catalog(catalog::CatalogArgs),
    /// Find the columns of a file that identify subjects, alone and in combination, and the risk of its records
    ///
    /// Reads a complete CSV, NDJSON or Parquet file. Reports its standalone identifiers and its minimal
    /// quasi-identifiers: the smallest sets of columns in which some combination of values is shared by fewer than k
    /// subjects. Also reports the largest sets of columns that are no quasi-identifier, and the number of records at
    /// risk. Prints column names but no values, unless --show-values is given.
    Audit(audit::AuditArgs),
    /// Write a schema, a configuration and a secret for your own records
    Init(init::InitArgs),
    /// Propose a record schema
    #[command(subcommand)]
    Schema(schema::SchemaArgs),
    /// Measure a finished release: its utility and the distinguishability of its lines
    Evaluate(evaluate::EvaluateArgs),
    /// Try the attacks of an outsider on a release and report their success rates
    Attack(attack::AttackArgs),
    /// Recount a release without the daemon: its form and its class sizes
    VerifyRelease(verify_release::VerifyReleaseArgs),
    /// Generate synthetic records
    Generate(generate::GenerateArgs),
    /// Inspect or verify a state directory that no daemon has open
    #[command(subcommand)]
    State(state::StateArgs),
    /// List or create the Kafka topics of a configuration
    #[command(subcommand)]
    Topics(topics::TopicsArgs),
    /// Print a completion script for a shell
    Completions(shell::CompletionsArgs),
    /// Write the manual pages, one per command
    Man(shell::ManArgs),
    /// Check the hardware of this machine with random inputs
    #[command(subcommand)]
    Selftest(SelftestTarget),
    /// Measure the counting speed of this machine
    #[command(subcommand)]
    Bench(BenchTarget),
}

#[derive(Subcommand)]
enum SelftestTarget {
    /// Compare the GPU with the CPU on random tables of every kind
    Gpu(gpu::SelftestArgs),
}

#[derive(Subcommand)]
enum BenchTarget {
    /// Time counting on the GPU and on the CPU with a generated table
    Gpu(gpu::BenchArgs),
}

/// Runs the command and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = CommandLineArgs::parse();
    let _armed = throng_core::faults::arm();
    broken_pipe::exit_quietly_on_broken_pipe(|| dispatch_command(cli))
}

fn dispatch_command(cli: CommandLineArgs) -> ExitCode {
    let done = match cli.command {
        CliCommand::Run(args) => run::run(&args),
        CliCommand::Demo(args) => demo::run(&args),
        CliCommand::Forget(args) => forget::run(&args),
        CliCommand::Check(args) => check::run(&args),
        CliCommand::Diff(args) => diff::run(&args),
        CliCommand::Reload(args) => reload::run(&args),
        CliCommand::Anonymize(args) => anonymize::run(&args),
        CliCommand::Catalog(args) => catalog::run(&args),
        CliCommand::Audit(args) => audit::run(&args),
        CliCommand::Init(args) => init::run(&args),
        CliCommand::Schema(args) => schema::run(&args),
        CliCommand::Evaluate(args) => evaluate::run(&args),
        CliCommand::Attack(args) => attack::run(&args),
        CliCommand::VerifyRelease(args) => verify_release::run(&args),
        CliCommand::Generate(args) => generate::run(args).map_err(Failure::from),
        CliCommand::State(args) => state::run(&args),
        CliCommand::Topics(args) => topics::run(&args),
        CliCommand::Completions(args) => shell::print_completions(&args, CommandLineArgs::command()),
        CliCommand::Man(args) => shell::write_manual_pages(&args, CommandLineArgs::command()),
        CliCommand::Selftest(SelftestTarget::Gpu(args)) => gpu::selftest(&args),
        CliCommand::Bench(BenchTarget::Gpu(args)) => gpu::bench(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => print_failure(&failure),
    }
}
