//! `throng anonymize`.

use super::outcome::Failure;
use crate::anonymity::lattice::search::Progress;
use crate::anonymity::quality::{Direction, Measure, Worth};
use crate::config;
use crate::daemon::anonymize::{AnonymizeError, Anonymized, Point, anonymize, frontier};
use crate::telemetry::silence_panic_payloads;
use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// Anonymize one data set at once: the best generalization of all, proved, verified and written
///
/// Searches the lattice of the schema's hierarchies for the policy of best quality whose classes satisfy k and every
/// [[privacy.model]], with at most the configured share of records suppressed. The output is sorted.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every key of the configuration can be overridden by the environment: THRONG__PRIVACY__K=10,\nTHRONG__ANONYMIZE__SUPPRESSION_LIMIT=0, THRONG__ANONYMIZE__MEASURE=nue, THRONG__ANONYMIZE__STRATEGY=flash2p"
)]
pub struct AnonymizeArgs {
    /// The data set: CSV, NDJSON or Parquet, by its extension or `source.format`
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// The configuration (config/adult-anonymize.toml is a ready one)
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Where the release goes; what is there is replaced
    #[arg(short, long, value_name = "OUTPUT", required_unless_present = "frontier")]
    output: Option<PathBuf>,
    /// Write what was found: policy, measures before and after, risks, policies checked
    #[arg(long, value_name = "REPORT.json")]
    report: Option<PathBuf>,
    /// Release nothing; print the best quality for each k instead, for choosing one
    #[arg(long, value_name = "K,K,…", value_delimiter = ',', num_args = 0.., default_missing_value = "2,3,5,10,20,50,100", conflicts_with = "output")]
    frontier: Option<Vec<u64>>,
}

/// Runs `throng anonymize`.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: &AnonymizeArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    let path = |path: &PathBuf| {
        path.to_str().map(str::to_owned).ok_or_else(|| Failure::Usage(anyhow!("{} is no UTF-8 path", path.display())))
    };
    let sink = args.output.clone().unwrap_or_else(|| PathBuf::from("-"));
    if args.output.as_ref().is_some_and(|output| *output == args.input) {
        return Err(Failure::Usage(anyhow!("the release would overwrite the input: name another file with -o")));
    }
    // The files of the command line take the place of the configuration's.
    let named = [
        ("SOURCE__KIND", "file".to_owned()),
        ("SOURCE__PATH", path(&args.input)?),
        ("SINK__KIND", "file".to_owned()),
        ("SINK__PATH", path(&sink)?),
    ];
    let named = named.into_iter().map(|(key, value)| (format!("THRONG__{key}"), value));
    let mut config = config::load(&args.config, std::env::vars().chain(named))?;
    if args.frontier.is_some() {
        config.sink.format = Some(config::Format::Json);
    }
    let file = args.config.display().to_string();
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    bar.enable_steady_tick(Duration::from_millis(200));
    let watch = |progress: &Progress| {
        let best = progress.best.map_or("none yet".to_owned(), |best| format!("{best:.6}"));
        bar.set_message(format!(
            "{} policies checked, best so far {best}, {:.1} s",
            progress.checked, progress.seconds
        ));
    };
    if let Some(ks) = &args.frontier {
        let points = frontier(&config, &file, ks, &watch).map_err(Failure::from)?;
        bar.finish_and_clear();
        show_frontier(&points, config.anonymize.measure);
        return write_report(
            args,
            &json!({ "measure": config.anonymize.measure.name(), "frontier": points.iter().map(point).collect::<Vec<_>>() }),
        );
    }
    let done = anonymize(&config, &file, &watch);
    bar.finish_and_clear();
    let done = done?;
    write_report(args, &report(&done))?;
    summarize(&done);
    Ok(())
}

impl From<AnonymizeError> for Failure {
    fn from(error: AnonymizeError) -> Self {
        match error {
            AnonymizeError::Run(error) => (*error).into(),
            error if error.is_usage() => Self::Usage(error.into()),
            error => Self::Running(error.into()),
        }
    }
}

fn write_report(args: &AnonymizeArgs, report: &Value) -> Result<(), Failure> {
    let Some(path) = &args.report else { return Ok(()) };
    let written = std::fs::write(path, format!("{report:#}\n"));
    written
        .with_context(|| format!("the report {} cannot be written: name a writable file", path.display()))
        .map_err(Failure::Running)
}

fn measures(worth: &Worth) -> Value {
    let named = worth.0.iter().map(|(measure, value)| (measure.name().to_owned(), json!(value)));
    Value::Object(named.collect::<Map<_, _>>())
}

/// A count that may be too large for a double to be whole.
fn count(number: f64) -> Value {
    if number < 9e15 { json!(number as u64) } else { json!(number) }
}

fn report(done: &Anonymized) -> Value {
    let (found, account) = (&done.found, &done.account);
    let pruned = (done.lattice - found.checked as f64).max(0.0);
    let policy: Map<String, Value> = done.policy.iter().map(|(name, level)| (name.clone(), json!(level))).collect();
    let history: Vec<Value> = found
        .history
        .iter()
        .map(|p| json!({ "seconds": p.seconds, "checked": p.checked, "quality": p.best }))
        .collect();
    json!({
        "rows": done.rows,
        "policy": policy,
        "suppressed_records": account.suppressed,
        "released_records": done.to_release - account.suppressed,
        "measure": done.measure.name(),
        "strategy": done.strategy.name(),
        "measures": measures(&account.worth),
        "measures_before": measures(&done.before),
        "classes": account.classes,
        "smallest_class": account.smallest,
        "risks": { "highest": done.risk.highest, "average": done.risk.average() },
        "suppressed_sensitive_cells": done.rare_sensitive_cells,
        "policies": { "lattice": count(done.lattice), "checked": found.checked, "pruned": if found.complete { count(pruned) } else { Value::Null } },
        "optimal": found.complete,
        "seconds": done.seconds,
        "search_seconds": found.seconds,
        "history": history,
    })
}

fn point(point: &Point) -> Value {
    json!({ "k": point.k, "quality": point.quality, "suppressed_records": point.suppressed, "levels": point.policy, "optimal": point.complete })
}

fn summarize(done: &Anonymized) {
    let levels: Vec<String> = done.policy.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let best = if done.found.complete { "the optimum" } else { "the best found in time" };
    eprintln!("{best} of {} policies, {} checked: {}", count(done.lattice), done.found.checked, levels.join(", "));
    let value = done.account.worth.0.iter().find(|(measure, _)| *measure == done.measure).map_or(f64::NAN, |(_, v)| *v);
    eprintln!(
        "{} {value:.6}, {} of {} records suppressed, {} classes, the smallest of {}",
        done.measure.name(),
        done.account.suppressed,
        done.to_release,
        done.account.classes,
        done.account.smallest
    );
}

fn show_frontier(points: &[Point], measure: Measure) {
    let better = if measure.direction() == Direction::HigherIsBetter { "higher" } else { "lower" };
    println!("{:>6}  {:>16}  suppressed  levels    ({better} is better)", "k", measure.name());
    for point in points {
        let quality = point.quality.map_or("impossible".to_owned(), |quality| format!("{quality:.6}"));
        let levels: Vec<String> = point.policy.iter().map(u8::to_string).collect();
        let proved = if point.complete { "" } else { "  (best found in time)" };
        println!("{:>6}  {quality:>16}  {:>10}  {}{proved}", point.k, point.suppressed, levels.join(" "));
    }
}
