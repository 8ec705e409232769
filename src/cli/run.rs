//! `throng run`: the daemon, or a job over files.

use super::outcome::Failure;
use super::progress::{progress_bar, spinner};
use super::reload_handler::install_reload_handler;
use super::run_summary::{UNREADABLE_ADVICE, missing_buckets_advice, print_run_summary};
use super::streamable::{refuse_missing_device, refuse_unstreamable};
use crate::config::{self, Config, SinkKind, SourceKind};
use crate::daemon::run::{RunError, RunOptions, run as run_daemon};
use crate::daemon::stream::stream_loop::ReadProgressWatcher;
use crate::daemon::stream::{loss_refusal, share_refusal};
use crate::io::file::plain_length;
use crate::start::checked_config::CheckedConfig;
use crate::start::release_forms::missing_for_series;
use crate::telemetry::{ShareScope, Telemetry, init_logging, silence_panic_payloads};
use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use throng_core::values::schema::Schema;

/// Read, anonymize and release: topics until a signal arrives, files until their end
///
/// A run over files is a job. It writes to temporary files next to its outputs and replaces all outputs together at
/// the end, or none of them. A repeated run gives the same result. Standard input (source.path = "-") is a stream:
/// its lines are released during the run. SIGTERM and SIGINT end a daemon within 45 seconds, after it has finished
/// the batch in flight. They end a job without replacing any output. A second signal ends either of them immediately.
/// With topics as the source, SIGHUP reloads the configuration (see throng reload).
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every key of the configuration can be overridden by the environment: THRONG__PRIVACY__K=10\n\nExit codes: 0 done · 1 failed while running · 2 problems of the configuration · 3 requested hardware not available ·\n4 a release of files or standard input represents less than release.min_represented"
)]
pub struct RunArgs {
    /// Configuration (see config/ for examples, docs/configuration.md for all keys)
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Write the lineage, from record to output line, for evaluation by the custodian (mode 0600; file sink only)
    #[arg(long, value_name = "FILE")]
    lineage: Option<PathBuf>,
    /// Start although the committed offsets are behind the releases of this state, or the policy changed while a
    /// batch was in flight; records may be processed twice
    #[arg(long)]
    accept_rewind: bool,
    /// End with exit code 1 if more than this share of the records (0 to 1) is lost, or if all are lost. Lost records
    /// are suppressed, unreadable, or swallowed by an unclosed quote [default for a file source: 1]
    #[arg(long, value_name = "SHARE", value_parser = share_argument)]
    fail_above: Option<f64>,
}

const SHUTDOWN_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Parses a share, 0 to 1.
pub fn share_argument(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "give a share between 0 and 1, for example 0.05".to_owned())
}

/// glibc's default is eight arenas per core, each with freed memory. Other allocators have no such setting.
#[allow(unsafe_code, reason = "this allocator setting has no safe interface")]
fn limit_arenas() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: `mallopt` sets a number under the allocator's lock.
        let taken = unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) };
        if taken == 0 {
            tracing::warn!("cannot limit the arenas of the allocator: it may keep more freed memory");
        }
    }
}

/// Runs `throng run`.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let config = config::load_for_job(&args.config, std::env::vars())?;
    let file = args.config.display().to_string();
    if args.lineage.is_some() && config.sink.kind != SinkKind::File {
        return Err(Failure::Usage(anyhow!("--lineage needs a file sink: {file} has another `sink.kind`")));
    }
    refuse_unstreamable(&config, &file)?;
    refuse_missing_device(&config, &file)?;
    begin_logging(&config)?;
    if config.process.memory_limit.is_some() {
        limit_arenas();
    }
    let mut checked = CheckedConfig::new(config, &file)?;
    create_secret(Arc::make_mut(&mut checked.config), &file)?;
    let (config, schema, telemetry) = (Arc::clone(&checked.config), Arc::clone(&checked.schema), checked.telemetry());
    let terms = checked.series.clone();
    let stop = stop_on_signals()?;
    enforce_shutdown_time(&stop, config.tuning.shutdown_time)?;
    let bar = RunProgressBar::progress_for_source(&config);
    let is_file = config.source.kind == SourceKind::File;
    let options = RunOptions {
        max_lost_share: Some(args.fail_above.unwrap_or(1.0)),
        lineage: args.lineage.clone(),
        accept_rewind: args.accept_rewind,
        ..RunOptions::default()
    };
    // Files are jobs, and standard input cannot be read again.
    let reloading =
        (config.source.kind == SourceKind::Kafka).then(|| install_reload_handler(&args.config)).transpose()?;
    let outcome = run_daemon(checked, &options, &telemetry, &stop, &bar, reloading);
    bar.0.finish_and_clear();
    let (findings, refused) = match outcome {
        Err(RunError::Lost { what, findings }) => {
            (findings, Some(Failure::Running(anyhow!("{what}; no output was replaced"))))
        }
        Err(RunError::Unrepresented { what, findings }) => {
            let kept = format!("{what}; no output was replaced");
            (
                findings,
                Some(Failure::FindingAboveLimit(anyhow!(
                    "{kept} ({})",
                    advise_release_form(&file, &config, &schema, &telemetry)
                ))),
            )
        }
        outcome => (outcome?, None),
    };
    if is_file {
        print_run_summary(&telemetry, terms.as_deref());
    }
    // A stop signal leaves records unread.
    let to_the_end = is_file && !stop.load(Ordering::Acquire);
    if is_file && !to_the_end {
        eprintln!("stopped by a signal: standard input may hold further records, which this run has not read");
    }
    // Losses of a file include earlier processes.
    let settled = if is_file { ShareScope::WholeState } else { ShareScope::CurrentProcess };
    let most = args.fail_above.or(to_the_end.then_some(1.0)).filter(|_| !config.is_job());
    let lost = || loss_refusal(&telemetry, settled, &findings, most?).map(|what| Failure::Running(anyhow!(what)));
    let refused = refused.or_else(lost).or_else(|| {
        // Lines of standard input are already released.
        let what = share_refusal(&telemetry).filter(|_| to_the_end && !config.is_job())?;
        let better = advise_release_form(&file, &config, &schema, &telemetry);
        let printed = config.sink.path == Path::new("-");
        let written = if printed { "the printed output".to_owned() } else { config.sink.path.display().to_string() };
        Some(Failure::FindingAboveLimit(anyhow!("{what}: delete {written} ({better})")))
    });
    for finding in findings {
        eprintln!("note: {finding}");
    }
    refused.map_or(Ok(()), Err)
}

/// Advice for a release below its minimum.
fn advise_release_form(file: &str, config: &Config, schema: &Schema, telemetry: &Telemetry) -> String {
    if let Some(why) = telemetry.status().series.as_ref().and_then(missing_buckets_advice) {
        return why;
    }
    let represented = telemetry.represented();
    if represented.best().is_some_and(|found| found.share_of_readable() >= represented.minimum) {
        return format!("{UNREADABLE_ADVICE}; release.min_represented = 0 accepts this release");
    }
    let series = if config.series.is_empty() && missing_for_series(schema).is_none() {
        "a [[series]] represents most records of people with many records: "
    } else {
        ""
    };
    let sample = match config.source.path.as_path() {
        path if path == Path::new("-") => "FILE".to_owned(),
        path => path.display().to_string(),
    };
    format!(
        "{series}`throng check -c {file} --sample {sample}` compares the forms on these records; release.min_represented = 0 accepts this one"
    )
}

/// Creates and reports the missing secret file of a job.
pub fn create_secret(config: &mut Config, file: &str) -> Result<(), Failure> {
    if let Some(path) = config.create_secret(file).map_err(|problem| vec![problem])? {
        eprintln!(
            "note: created {}: the secret key of all subject digests; keep it, and keep it private",
            path.display()
        );
    }
    Ok(())
}

/// Starts logging. Panics log their location only.
pub fn begin_logging(config: &Config) -> Result<(), Failure> {
    silence_panic_payloads();
    init_logging(config.telemetry.log_format.name(), config.telemetry.log_level.name())
        .map_err(|e| Failure::Usage(e.into()))
}

/// Returns a flag that SIGTERM and SIGINT set; a second signal ends the process.
pub fn stop_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .with_context(|| format!("cannot catch signal {signal}"))?;
    }
    Ok(stop)
}

/// Equals a crash: the next start recovers the state.
fn enforce_shutdown_time(stop: &Arc<AtomicBool>, time: Duration) -> Result<(), Failure> {
    let stop = Arc::clone(stop);
    let watch = move || {
        while !stop.load(Ordering::Acquire) {
            std::thread::sleep(SHUTDOWN_CHECK_INTERVAL);
        }
        std::thread::sleep(time);
        tracing::error!(
            "shutdown took longer than {}: exiting as after a crash (no data is lost: the next start determines whether the last batch was released)",
            humantime::format_duration(time)
        );
        signal_hook::low_level::exit(1);
    };
    let thread = std::thread::Builder::new().name("shutdown".to_owned()).spawn(watch);
    thread.map(drop).map_err(|error| Failure::Running(error.into()))
}

/// Bytes read, only on a terminal.
struct RunProgressBar(ProgressBar);

impl RunProgressBar {
    fn progress_for_source(config: &Config) -> Self {
        if config.source.kind != SourceKind::File {
            return Self(ProgressBar::hidden());
        }
        let length = (config.source.path != Path::new("-")).then(|| plain_length(&config.source.path)).flatten();
        let template = "{bar:32} {bytes}/{total_bytes} {msg} {elapsed} eta {eta}";
        Self(length.map_or_else(|| spinner(template), |length| progress_bar(template, length)))
    }
}

impl ReadProgressWatcher for RunProgressBar {
    fn bytes_read(&self, bytes: u64) {
        self.0.set_position(bytes);
        if self.0.length().is_some_and(|length| bytes >= length) {
            self.0.set_message("releasing");
        }
    }
}
