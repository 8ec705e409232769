//! `throng state inspect`.

use super::state_selection::{StateSelection, configured_secret, state_failure};
use crate::cli::json;
use crate::cli::outcome::Failure;
use crate::cli::text_format::{counted, plural};
use crate::daemon::engine::build::assemble::new_ledger;
use crate::daemon::state::directory::STATE_FORMAT;
use crate::daemon::state::store::{RecoveredState, StateStore};
use crate::start::checked_config::CheckedConfig;
use crate::telemetry::RecordTotals;
use chrono::{DateTime, SecondsFormat, Utc};
use humantime::format_duration;
use indicatif::HumanCount;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use throng_core::ledger::subject_ledger::SubjectLedger;

/// Print the figures of a state
///
/// Prints no value, no subject and no secret. The figures are exact; the public status page shows rounded ones.
#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    #[command(flatten)]
    named: StateSelection,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `throng state inspect`.
pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    let (config, file) = args.named.load()?;
    let checked = CheckedConfig::new(config, &file)?;
    let mut ledger = new_ledger(&checked);
    let state = &checked.config.state;
    // Never creates a state.
    let (store, found) = StateStore::open_existing(&state.path, configured_secret(&checked.config))
        .and_then(|(mut store, _)| store.load(&mut ledger).map(|found| (store, found)))
        .map_err(state_failure)?;
    let survey = StateSurvey::new(&state.path, &store, &found, &ledger);
    if args.json {
        println!("{}", json::pretty_json(&survey)?);
    } else {
        print!("{}", format_survey(&survey, &checked.config.consumed_topics()));
    }
    Ok(())
}

/// For a file: topic 0, partition 0 and the records.
#[derive(Serialize)]
struct StatePosition {
    topic: u16,
    partition: i32,
    offset: i64,
}

/// In progress when the process ended; not in other figures.
#[derive(Serialize)]
struct PendingBatch {
    batch: u64,
    records: u64,
    held: u64,
}

#[derive(Serialize)]
struct StateSurvey<'a> {
    path: &'a Path,
    format: u32,
    id: &'a str,
    batches: u64,
    /// Time of the last batch, since 1970 and since the creation of the state.
    clock_ms: i64,
    age_ms: i64,
    pending: Option<PendingBatch>,
    positions: Vec<StatePosition>,
    totals: RecordTotals,
    held: u64,
    /// Includes rows of partly released records.
    waiting_lines: u64,
    plan: u64,
    ledger_bytes: u64,
    ledger_deltas: u64,
    said_lines: u64,
    window_batches: u64,
    sample_rows: u64,
    profiles: u64,
    disk_bytes: u64,
}

impl<'a> StateSurvey<'a> {
    fn new(path: &'a Path, store: &'a StateStore, found: &RecoveredState, ledger: &SubjectLedger) -> Self {
        let progress = &found.progress;
        let positions = progress.positions.iter();
        Self {
            path,
            format: STATE_FORMAT,
            id: store.id(),
            batches: progress.sequence,
            clock_ms: progress.clock_ms,
            age_ms: progress.age_ms,
            pending: found.intent.as_ref().map(|intent| PendingBatch {
                batch: intent.after.sequence,
                records: intent.ranges.iter().map(|range| range.to.abs_diff(range.from)).sum(),
                held: intent.held.len() as u64,
            }),
            positions: positions
                .map(|(&(topic, partition), &offset)| StatePosition { topic, partition, offset })
                .collect(),
            totals: progress.totals,
            held: progress.totals.held().unwrap_or_default(),
            waiting_lines: found.held.len() as u64,
            plan: progress.plan_version,
            ledger_bytes: ledger.approximate_bytes() as u64,
            ledger_deltas: found.deltas,
            said_lines: ledger.release_log.as_ref().map_or(0, |said| said.entries() as u64),
            window_batches: found.rows.len() as u64,
            sample_rows: found.sample.len() as u64,
            profiles: found.profiles.len() as u64,
            disk_bytes: store.bytes(),
        }
    }
}

fn format_timestamp(ms: i64) -> String {
    let time = DateTime::<Utc>::from_timestamp_millis(ms);
    time.map_or_else(|| format!("{ms} ms"), |time| time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

fn format_survey(survey: &StateSurvey<'_>, topics: &[String]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, what: String| text.push_str(&format!("{name:<18}{what}\n"));
    line("state", format!("{} (format {}, id {})", survey.path.display(), survey.format, survey.id));
    let age = Duration::from_secs(u64::try_from(survey.age_ms / 1000).unwrap_or_default());
    line(
        "batches",
        match survey.batches {
            0 => "0".to_owned(),
            n => format!(
                "{}, the last at {}, {} old by the clock of the state",
                HumanCount(n),
                format_timestamp(survey.clock_ms),
                format_duration(age)
            ),
        },
    );
    line(
        "pending",
        match &survey.pending {
            None => "none".to_owned(),
            Some(pending) => format!(
                "batch {} of {} is unconfirmed: the next start determines whether it was released",
                pending.batch,
                counted(pending.records, "record")
            ),
        },
    );
    for position in &survey.positions {
        let topic = topics.get(usize::from(position.topic)).map_or("the file", String::as_str);
        line("read up to", format!("{topic}, partition {}, offset {}", position.partition, position.offset));
    }
    let totals = &survey.totals;
    line(
        "records",
        format!(
            "consumed {} = released {} + suppressed {} + held {} + dead-lettered {} + dropped {}",
            totals.consumed, totals.released, totals.suppressed, survey.held, totals.dead_lettered, totals.dropped
        ),
    );
    line("waiting", counted(survey.waiting_lines, "line"));
    line(
        "plan",
        match survey.plan {
            0 => "none yet".to_owned(),
            version => format!("version {version}"),
        },
    );
    line(
        "ledger",
        format!("{} bytes in memory, {} deltas", HumanCount(survey.ledger_bytes), HumanCount(survey.ledger_deltas)),
    );
    line("release log", HumanCount(survey.said_lines).to_string());
    line(
        "window",
        format!("{} {}", HumanCount(survey.window_batches), plural(survey.window_batches, "batch", "batches")),
    );
    line("sample", counted(survey.sample_rows, "row"));
    line("profiles", HumanCount(survey.profiles).to_string());
    line("disk", format!("{} bytes", HumanCount(survey.disk_bytes)));
    text
}
