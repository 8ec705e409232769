//! `throng run`.

use super::outcome::Failure;
use super::progress::{bar_of, spinner};
use super::reloading::reloading;
use super::streamable::{refuse_missing_device, refuse_unstreamable};
use super::summary::{UNREADABLE, summarize, too_short};
use crate::config::{self, Config, SinkKind, SourceKind};
use crate::daemon::run::{Options, RunError, run as run_daemon};
use crate::daemon::stream::run::Watcher;
use crate::daemon::stream::{refused_loss, refused_share};
use crate::io::file::plain_length;
use crate::start::checked::Checked;
use crate::start::forms::missing_for_series;
use crate::telemetry::{Settled, Telemetry, init_logging, silence_panic_payloads};
use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use throng_core::values::schema::Schema;

/// Read, anonymize, release: topics until a signal comes, files to their end
///
/// A run over files is a job: it writes beside its outputs and replaces them at the end, all or none of it visible; started again it does
/// the same again. Standard input (source.path = "-") is a stream whose lines leave as they are released. SIGTERM and SIGINT end a daemon
/// in order, within 45 seconds: what is held is settled first. They end a job without replacing anything. A second one ends
/// either at once. With topics as the source, SIGHUP reloads the configuration (see throng
/// reload).
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every key of the configuration can be overridden by the environment: THRONG__PRIVACY__K=10\n\nExit codes: 0 done · 1 it failed · 2 problems of the configuration · 3 named hardware is missing ·\n4 a release of files or standard input represents less than release.min_represented"
)]
pub struct RunArgs {
    /// The configuration (see config/ for ready ones, docs/configuration.md for every key)
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Write which record became which output line, for evaluation by the custodian (mode 0600; file sink only)
    #[arg(long, value_name = "FILE")]
    lineage: Option<PathBuf>,
    /// Start although committed offsets lie behind what this state has released, or the policy is another than that under which
    /// a batch was tried that has not left: records may be seen a second time
    #[arg(long)]
    accept_rewind: bool,
    /// End with exit code 1 when a larger share of the records is lost (suppressed, unreadable, or lines that a quote left
    /// open has swallowed), 0 to 1, or all of them are [default for a file source: 1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    fail_above: Option<f64>,
}

/// Between two looks at whether the process is to end.
const LOOK_AT_STOP: Duration = Duration::from_millis(100);

/// A share as the command line gives it.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "give a share between 0 and 1, for example 0.05".to_owned())
}

/// Lets glibc use two arenas for all threads instead of eight a core, each of which keeps what its threads have freed. Other allocators
/// have no such setting.
#[allow(unsafe_code, reason = "a setting of the allocator that has no safe interface")]
fn limit_arenas() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the call sets a number inside the allocator, under the lock of its own.
        let taken = unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) };
        if taken == 0 {
            tracing::warn!("the allocator does not take a limit of its arenas: it may keep more freed memory");
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
    let mut checked = Checked::new(config, &file)?;
    create_secret(Arc::make_mut(&mut checked.config), &file)?;
    let (config, schema, telemetry) = (Arc::clone(&checked.config), Arc::clone(&checked.schema), checked.telemetry());
    let stop = stop_on_signals()?;
    end_in_time(&stop, config.tuning.shutdown_time)?;
    let bar = Bar::of(&config);
    let is_file = config.source.kind == SourceKind::File;
    let options = Options {
        most_lost: Some(args.fail_above.unwrap_or(1.0)),
        lineage: args.lineage.clone(),
        accept_rewind: args.accept_rewind,
        ..Options::default()
    };
    // Files are batch jobs, and standard input cannot be read again.
    let reloading = (config.source.kind == SourceKind::Kafka).then(|| reloading(&args.config)).transpose()?;
    let outcome = run_daemon(checked, &options, &telemetry, &stop, &bar, reloading);
    bar.0.finish_and_clear();
    let (findings, refused) = match outcome {
        Err(RunError::Lost { what, findings }) => {
            (findings, Some(Failure::Running(anyhow!("{what}; no output was replaced"))))
        }
        Err(RunError::Unrepresented { what, findings }) => {
            let kept = format!("{what}; no output was replaced");
            (findings, Some(Failure::Found(anyhow!("{kept} ({})", better_form(&file, &config, &schema, &telemetry)))))
        }
        outcome => (outcome?, None),
    };
    if is_file {
        summarize(&telemetry);
    }
    // A run that was told to stop has not seen all there is.
    let to_the_end = is_file && !stop.load(Ordering::Acquire);
    if is_file && !to_the_end {
        eprintln!("stopped by a signal: standard input may hold further records, which this run has not read");
    }
    // A file is judged whole, whatever process has read it; of a topic, what this process has read.
    let settled = if is_file { Settled::ByTheState } else { Settled::ByThisProcess };
    let most = args.fail_above.or(to_the_end.then_some(1.0)).filter(|_| !config.is_job());
    let lost = || refused_loss(&telemetry, settled, &findings, most?).map(|what| Failure::Running(anyhow!(what)));
    let refused = refused.or_else(lost).or_else(|| {
        // Standard input: its lines have left as they were released.
        let what = refused_share(&telemetry).filter(|_| to_the_end && !config.is_job())?;
        let better = better_form(&file, &config, &schema, &telemetry);
        let printed = config.sink.path == Path::new("-");
        let written = if printed { "what was printed".to_owned() } else { config.sink.path.display().to_string() };
        Some(Failure::Found(anyhow!("{what}: delete {written} ({better})")))
    });
    for finding in findings {
        eprintln!("note: {finding}");
    }
    refused.map_or(Ok(()), Err)
}

/// Advice where a release represents too little of its records, as `telemetry` counted them.
fn better_form(file: &str, config: &Config, schema: &Schema, telemetry: &Telemetry) -> String {
    if let Some(why) = telemetry.status().series.as_ref().and_then(too_short) {
        return why;
    }
    let represented = telemetry.represented();
    if represented.best().is_some_and(|found| found.share_of_readable() >= represented.minimum) {
        return format!("{UNREADABLE}; release.min_represented = 0 accepts this release");
    }
    let series = if config.series.is_empty() && missing_for_series(schema).is_none() {
        "a [[series]] represents most records of people who have many: "
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

/// Creates the secret file of a job that names one which does not exist, and says so.
pub fn create_secret(config: &mut Config, file: &str) -> Result<(), Failure> {
    if let Some(path) = config.create_secret(file).map_err(|problem| vec![problem])? {
        eprintln!(
            "note: created {}: the secret that keys every digest of a person; keep it, and keep it to yourself",
            path.display()
        );
    }
    Ok(())
}

/// Begins logging as configured; panics say where and never what.
pub fn begin_logging(config: &Config) -> Result<(), Failure> {
    silence_panic_payloads();
    init_logging(config.telemetry.log_format.name(), config.telemetry.log_level.name())
        .map_err(|e| Failure::Usage(e.into()))
}

/// A flag that SIGTERM and SIGINT set; a second one ends the process at once.
pub fn stop_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .with_context(|| format!("cannot catch signal {signal}"))?;
    }
    Ok(stop)
}

/// Ends the process once `stop` has been set for longer than `time`, as a kill would: what is on disk and in the brokers' hands is then
/// what a crash leaves, which the next start settles.
fn end_in_time(stop: &Arc<AtomicBool>, time: Duration) -> Result<(), Failure> {
    let stop = Arc::clone(stop);
    let watch = move || {
        while !stop.load(Ordering::Acquire) {
            std::thread::sleep(LOOK_AT_STOP);
        }
        std::thread::sleep(time);
        tracing::error!(
            "the end has taken longer than {}: ending as if killed (nothing is lost: the next start finds out whether the last batch left)",
            humantime::format_duration(time)
        );
        signal_hook::low_level::exit(1);
    };
    let thread = std::thread::Builder::new().name("shutdown".to_owned()).spawn(watch);
    thread.map(drop).map_err(|error| Failure::Running(error.into()))
}

/// A progress bar over the bytes that have been read, where there is a terminal to see it.
struct Bar(ProgressBar);

impl Bar {
    fn of(config: &Config) -> Self {
        if config.source.kind != SourceKind::File {
            return Self(ProgressBar::hidden());
        }
        let length = (config.source.path != Path::new("-")).then(|| plain_length(&config.source.path)).flatten();
        let template = "{bar:32} {bytes}/{total_bytes} {msg} {elapsed} eta {eta}";
        Self(length.map_or_else(|| spinner(template), |length| bar_of(template, length)))
    }
}

impl Watcher for Bar {
    fn read(&self, bytes: u64) {
        self.0.set_position(bytes);
        if self.0.length().is_some_and(|length| bytes >= length) {
            self.0.set_message("releasing");
        }
    }
}
