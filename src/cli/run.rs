//! `throng run`.

use super::outcome::Failure;
use super::progress::{bar_of, spinner};
use super::reloading::reloading;
use super::streamable::{refuse_missing_device, refuse_unstreamable};
use crate::config::{self, Config, SinkKind, SourceKind};
use crate::daemon::run::{Options, RunError, run as run_daemon};
use crate::daemon::stream::refused_loss;
use crate::daemon::stream::run::Watcher;
use crate::io::file::plain_length;
use crate::start::checked::Checked;
use crate::telemetry::{
    Label, Limit, SeriesPublished, Settled, SuppressionReason, Telemetry, init_logging, silence_panic_payloads,
};
use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Read, anonymize, release: topics until a signal comes, files to their end
///
/// A run over files is a job: it writes beside its outputs and replaces them at the end, all or none of it visible; started again it does
/// the same again. Standard input (source.path = "-") is a stream whose lines leave as they are released. SIGTERM and SIGINT end a daemon
/// in order, within 45 seconds: what is held is settled first. They end a job without replacing anything. A second one ends
/// either at once. With topics as the source, SIGHUP reloads the configuration (see throng
/// reload).
#[derive(Debug, clap::Args)]
#[command(after_help = "Every key of the configuration can be overridden by the environment: THRONG__PRIVACY__K=10")]
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
    /// Start with a new state directory although the consumer group has released before: a further instance of the group, or one whose
    /// directory is lost. Its limits per subject and window begin anew
    #[arg(long)]
    accept_new_state: bool,
    /// End with exit code 1 when a larger share of the records is lost (suppressed, unreadable, or lines that a quote left
    /// open has swallowed), 0 to 1, or all of them are [default for a file source: 1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    fail_above: Option<f64>,
}

/// What a summary says where lines were thinned for want of room: no other line of their subject need have left.
pub const LIMIT_REACHED: &str = "thinned without a line that stands for them: the limit of lines that wait, or that are remembered, was reached, and of some people nothing has left in the groups that do not change (divide the input by subjects)";

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
    let (config, telemetry) = (Arc::clone(&checked.config), checked.telemetry());
    let stop = stop_on_signals()?;
    end_in_time(&stop, config.tuning.shutdown_time)?;
    let bar = Bar::of(&config);
    let is_file = config.source.kind == SourceKind::File;
    let options = Options {
        most_lost: Some(args.fail_above.unwrap_or(1.0)),
        lineage: args.lineage.clone(),
        accept_rewind: args.accept_rewind,
        accept_new_state: args.accept_new_state,
        ..Options::default()
    };
    // Files are batch jobs, and standard input cannot be read again.
    let reloading = (config.source.kind == SourceKind::Kafka).then(|| reloading(&args.config)).transpose()?;
    let outcome = run_daemon(checked, &options, &telemetry, &stop, &bar, reloading);
    bar.0.finish_and_clear();
    let (findings, lost) = match outcome {
        Err(RunError::Lost { what, findings }) => (findings, Some(format!("{what}; no output was replaced"))),
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
    let lost = lost.or_else(|| refused_loss(&telemetry, settled, &findings, most?));
    for finding in findings {
        eprintln!("note: {finding}");
    }
    lost.map_or(Ok(()), |what| Err(Failure::Running(anyhow!(what))))
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

/// What the rows of the series represent, in one line, and why rows are missing.
fn summarize_series(series: &SeriesPublished) {
    let share = series
        .records_share()
        .map_or_else(|| "no bucket has closed".to_owned(), |share| format!("{:.1} % of the records", share * 100.0));
    eprintln!("series: {} rows represent {} of {} people and {share}", series.rows, series.people, series.people_seen);
    let missing: Vec<String> = [
        ("rows withheld because too few members were present", series.too_few),
        ("rows withheld because one or two members dominate, or all have one value", series.dominated),
        ("records late, ahead of the clock, without time or subject, or beyond the limit of open buckets", series.late),
    ]
    .iter()
    .filter(|(_, count)| *count > 0)
    .map(|(why, count)| format!("{count} {why}"))
    .collect();
    if !missing.is_empty() {
        eprintln!("not in the series: {}", missing.join("; "));
    }
}

/// What became of the records, in one line each.
pub fn summarize(telemetry: &Telemetry) {
    let status = telemetry.status();
    let totals = status.totals;
    eprintln!(
        "consumed {} = released {} + suppressed {} + held {} + dead-lettered {} + dropped {}",
        totals.consumed, totals.released, totals.suppressed, status.held, totals.dead_lettered, totals.dropped
    );
    if let Some(series) = status.series {
        summarize_series(&series);
    }
    let lost = |of: &str, counts: Vec<(&str, u64)>| {
        let counts: Vec<String> = counts.iter().filter(|(_, n)| *n > 0).map(|(why, n)| format!("{why} {n}")).collect();
        if !counts.is_empty() {
            eprintln!("{of} in this run: {}", counts.join(", "));
        }
    };
    lost("suppressed", status.suppressed.iter().map(|(why, n)| (why.as_str(), n)).collect());
    lost("dead-lettered", status.dead_lettered.iter().map(|(why, n)| (why.as_str(), n)).collect());
    if let Some(loss) = status.mean_loss {
        eprintln!("mean loss {loss:.4} over the present quasi cells of this run");
    }
    let suppressed = status.suppressed.get(SuppressionReason::Thinned);
    if suppressed > 0 || status.thinned_fragments > 0 {
        eprintln!(
            "thinned {suppressed} records and about {} fragments: other lines of their subject stand for them (privacy.max_lines_per_subject, privacy.max_delay)",
            status.thinned_fragments
        );
    }
    if telemetry.has_reached(Limit::WaitingLines) || telemetry.has_reached(Limit::SaidLines) {
        eprintln!("{LIMIT_REACHED}");
    }
    if let Some(seconds) = status.mean_delay_seconds {
        eprintln!("about {} lines have waited some {seconds} s in the mean", status.delayed_lines);
    }
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
