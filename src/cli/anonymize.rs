//! `throng anonymize`: one data set, best policy.

use super::input_formats::{check_inputs, detect_record_format, input_paths, size_argument};
use super::outcome::Failure;
use super::output_checks::{refuse_overwriting, write_failure};
use super::run::{create_secret, share_argument};
use super::stop_signals::JobSignals;
use super::text_format::{self, percent, percent_with_digits, plural};
use crate::config;
use crate::config::{RecodingScope, UsedFile};
use crate::daemon::stream::loss_message;
use crate::dataset::{
    AnonymizationReport, AnonymizationStep, AnonymizeError, CeilingReport, DatasetSource, FrontierPoint,
    MicroaggregationReport, RunCallbacks, anonymize, files_written, frontier,
};
use crate::io::file::{FileFormat, atomic_file};
use crate::start::checked_config::policy_files;
use crate::start::run_findings::RunFinding;
use crate::telemetry::silence_panic_payloads;
use anyhow::anyhow;
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;
use throng_core::lattice::recoding_passes::{EarlyEndReason, RecodingPass};
use throng_core::lattice::search::LatticeSearchProgress;
use throng_core::quality::{QualityMeasure, QualityValues};

/// Anonymize one data set in one run: proved best generalization, verified and written
///
/// Searches the lattice of the schema's hierarchies for the policy of best quality. Its classes satisfy k and every
/// [[privacy.model]], with at most the configured share of records suppressed. The output is sorted. Ctrl-C ends the
/// search with the best policy found so far, as anonymize.time_limit does. Before and after the search, and with a
/// second Ctrl-C, it ends the program without replacing any output.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "throng anonymize [OPTIONS] --config <FILE> --output <OUTPUT> <INPUT> [MORE]...\n       throng anonymize [OPTIONS] --config <FILE> --frontier[=<K,K,…>] <INPUT> [MORE]...",
    after_help = "Examples:
  throng anonymize patients.csv -c config.toml -o released.csv --report report.json
  throng anonymize 'days/*.parquet' archive/ -c config.toml -o released.csv
      several files as one data set
  throng anonymize decade/ -c config.toml -o released.csv --memory 3GiB --temp /var/tmp
      a directory of files that is larger than memory

Every key of the configuration can be overridden by the environment: THRONG__PRIVACY__K=10,\nTHRONG__ANONYMIZE__SUPPRESSION_LIMIT=0, THRONG__ANONYMIZE__MEASURE=nue, THRONG__ANONYMIZE__STRATEGY=flash2p"
)]
pub struct AnonymizeArgs {
    /// Data set: a file, directory or pattern of files; CSV, NDJSON, Parquet or Apple Health, by `source.format`, its
    /// extension or its content
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// Further files, directories or patterns of the same kind, appended to the same data set
    #[arg(value_name = "MORE")]
    more: Vec<PathBuf>,
    /// Configuration (example: config/adult-anonymize.toml)
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Output file of the release; an existing file is replaced. Required without --frontier
    #[arg(short, long, value_name = "OUTPUT", required_unless_present = "frontier")]
    output: Option<PathBuf>,
    /// Output file of the catalog of counterfeits, one JSON line per group; overrides anonymize.ceiling.catalog
    #[arg(long, value_name = "FILE", conflicts_with = "frontier")]
    catalog: Option<PathBuf>,
    /// Write a report: policy, measures before and after, risks, policies checked
    #[arg(long, value_name = "REPORT.json")]
    report: Option<PathBuf>,
    /// Print the best quality for each k, for choosing one, and release nothing
    #[arg(long, value_name = "K,K,…", value_delimiter = ',', num_args = 0.., default_missing_value = "2,3,5,10,20,50,100", conflicts_with = "output")]
    frontier: Option<Vec<u64>>,
    /// End with exit code 1 if more than this share of the records (0 to 1) is suppressed or swallowed by an unclosed
    /// quote, or if all are lost. The release is written in any case
    #[arg(long, value_name = "SHARE", value_parser = share_argument, default_value = "1", conflicts_with = "frontier")]
    fail_above: f64,
    /// Refuse a data set with codes that exceed this memory (12 bytes per cell, 64 per record, plus distinct values;
    /// the search and the lines need more); with --temp, the limit covers the whole run
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = size_argument)]
    memory: u64,
    /// Keep the data set in files in this directory: the same release, byte for byte, for a data set larger than
    /// memory. The files have no name and disappear when the command ends in any way. They hold codes (1 to 4 bytes
    /// per cell, 8 to 12 per record, and the released records a second time) and the verified lines. Refuses local
    /// recoding, aggregates, counterfeits, populations and profiles
    #[arg(long, value_name = "DIR", conflicts_with = "frontier")]
    temp: Option<PathBuf>,
}

/// Runs `throng anonymize`.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: &AnonymizeArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    let sink = args.output.clone().unwrap_or_else(|| PathBuf::from("-"));
    // Before the configuration's check, so that messages name options.
    let mut given: Vec<UsedFile> =
        input_paths(&args.input, &args.more).map(|path| UsedFile::file("the input", path)).collect();
    given.push(UsedFile::file("the configuration", &args.config));
    check_inputs(&args.input, &args.more, args.temp.as_deref())?;
    refuse_overwriting(&args.files_to_write(Vec::new()), &given)?;
    // Command line before configuration.
    let named = [
        ("SOURCE__KIND", "file".to_owned()),
        ("SOURCE__PATH", utf8_path(&args.input)?),
        ("SINK__KIND", "file".to_owned()),
        ("SINK__PATH", utf8_path(&sink)?),
    ];
    let catalog = args.catalog.as_deref().map(utf8_path).transpose()?;
    let catalog = catalog.map(|path| ("ANONYMIZE__CEILING__CATALOG", path));
    let named = named.into_iter().chain(catalog).map(|(key, value)| (format!("THRONG__{key}"), value));
    let mut config = config::load_for_job(&args.config, std::env::vars().chain(named))?;
    if config.source.format.is_none() {
        let found =
            detect_record_format(&args.input, None, Some(b',')).map_err(|error| Failure::Usage(error.into()))?;
        config.source.format = Some(match found {
            FileFormat::Csv { .. } => config::RecordFormat::Csv,
            FileFormat::Ndjson => config::RecordFormat::Json,
            FileFormat::Parquet => config::RecordFormat::Parquet,
            FileFormat::AppleHealth => config::RecordFormat::AppleHealth,
        });
    }
    if args.frontier.is_some() {
        config.sink.format = Some(config::RecordFormat::Json);
    }
    let written = args.files_to_write(if args.output.is_some() { files_written(&config) } else { Vec::new() });
    let mut read = given;
    read.extend(policy_files(&config, &args.config.display().to_string()));
    read.extend(config.files_besides_outputs());
    refuse_overwriting(&written, &read)?;
    if let Some(path) = &args.report {
        atomic_file::check_writable(path).map_err(|error| write_failure("the report", path, error))?;
    }
    let file = args.config.display().to_string();
    create_secret(&mut config, &file)?;
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    bar.enable_steady_tick(Duration::from_millis(200));
    let watch = |progress: &LatticeSearchProgress| {
        let best = progress.best.map_or("none yet".to_owned(), |best| format!("{best:.6}"));
        let left = progress.left.map_or(String::new(), |left| format!(", {:.0} s left", left.as_secs_f64()));
        bar.set_message(format!(
            "pass {}: {} policies checked, best {} so far {best}, {:.1} s{left}",
            progress.pass,
            progress.checked,
            config.anonymize.measure.name(),
            progress.seconds
        ));
    };
    let signals = JobSignals::catch(&bar)?;
    let note = |finding: &RunFinding| bar.suspend(|| eprintln!("note: {finding}"));
    let step = |step: AnonymizationStep| {
        bar.set_message(step_message(step));
        signals.record_step(step)
    };
    let attended = RunCallbacks { watch: &watch, stop: signals.flag(), note: &note, step: &step };
    let source = DatasetSource { more: &args.more, memory: args.memory, temp: args.temp.as_deref(), part: None };
    if let Some(ks) = &args.frontier {
        let points = frontier(&config, &file, &source, ks, attended).map_err(Failure::from)?;
        bar.finish_and_clear();
        print_frontier(&points, config.anonymize.measure);
        return write_report(
            args,
            &json!({ "measure": config.anonymize.measure.name(), "frontier": points.iter().map(frontier_json).collect::<Vec<_>>() }),
        );
    }
    let done = anonymize(&config, &file, &source, attended);
    bar.finish_and_clear();
    let done = done?;
    write_report(args, &anonymization_json(&done))?;
    print_anonymization_summary(&done);
    let lost = done.recoded.overall_figures.suppressed + done.swallowed;
    let share = lost as f64 / (done.to_release + done.swallowed).max(1) as f64;
    loss_message(share, done.swallowed, args.fail_above, false)
        .map_or(Ok(()), |what| Err(Failure::Running(anyhow!(what))))
}

fn step_message(step: AnonymizationStep) -> String {
    let of = |done: u64, of: u64| format!("{} of {}", text_format::number(done), text_format::number(of));
    match step {
        AnonymizationStep::Reading { records } => format!("reading: {}", text_format::counted(records, "record")),
        AnonymizationStep::Counting { records, of: all } => format!("counting: {} records", of(records, all)),
        AnonymizationStep::Searching => "searching".to_owned(),
        AnonymizationStep::Dividing { records, of: all } => format!("dividing: {} records", of(records, all)),
        AnonymizationStep::Verifying { part, of: all } => format!("verifying: {} parts", of(part, all)),
        AnonymizationStep::Writing { lines, of: all } => format!("writing: {} lines", of(lines, all)),
    }
}

fn utf8_path(path: &Path) -> Result<String, Failure> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Failure::Usage(anyhow!("path {} is not valid UTF-8: rename it", path.display())))
}

impl AnonymizeArgs {
    /// The release by its final paths (`release`), and the report.
    fn files_to_write(&self, release: Vec<UsedFile>) -> Vec<UsedFile> {
        let named = self.output.iter().filter(|_| release.is_empty()).map(|path| UsedFile::file("--output", path));
        let report = self.report.iter().map(|path| UsedFile::file("--report", path));
        let catalog = self.catalog.iter().filter(|_| release.is_empty()).map(|path| UsedFile::file("--catalog", path));
        named.chain(catalog).collect::<Vec<_>>().into_iter().chain(release).chain(report).collect()
    }
}

impl From<AnonymizeError> for Failure {
    fn from(error: AnonymizeError) -> Self {
        match error {
            AnonymizeError::Configuration(problems) => Self::Problems(problems),
            error if error.is_usage() => Self::Usage(error.into()),
            error => Self::Running(error.into()),
        }
    }
}

fn write_report(args: &AnonymizeArgs, report: &Value) -> Result<(), Failure> {
    let Some(path) = &args.report else { return Ok(()) };
    atomic_file::write(path, format!("{report:#}\n").as_bytes())
        .map_err(|error| write_failure("the report", path, error))
}

fn worth_json(worth: &QualityValues) -> Value {
    let named = worth.0.iter().map(|(measure, value)| (measure.name().to_owned(), json!(value)));
    Value::Object(named.collect::<Map<_, _>>())
}

/// May exceed the exact integers of a double.
fn exact_count(number: f64) -> Value {
    if number < 9e15 { json!(number as u64) } else { json!(number) }
}

fn anonymization_json(done: &AnonymizationReport) -> Value {
    let (recoded, account) = (&done.recoded, &done.recoded.overall_figures);
    let pruned = (done.lattice - recoded.checked_policy_count() as f64).max(0.0);
    let first = &recoded.searches[0];
    let history: Vec<Value> = first
        .history
        .iter()
        .map(|p| json!({ "seconds": p.seconds, "checked": p.checked, "quality": p.best }))
        .collect();
    let one = recoded.searches.len() == 1;
    let mut report = json!({
        "rows": done.rows,
        "transformation": done.transformation.name(),
        "policy": recoded.passes.first().map(|pass| policy_levels(&done.quasi, &pass.policy)),
        "levels": recoded.passes.first().map(|pass| policy_labels(done, &pass.policy)),
        "suppressed_records": account.suppressed,
        "released_records": done.to_release - account.suppressed,
        "measure": done.measure.name(),
        "strategy": done.strategy.name(),
        "measures": worth_json(&account.policy_quality),
        "measures_before": worth_json(&recoded.raw_quality),
        "classes": account.classes,
        "smallest_class": account.smallest,
        "risks": { "highest": done.risk.highest, "average": done.risk.average() },
        "risks_before": { "highest": done.risk_before.highest, "average": done.risk_before.average },
        "people": done.people.map(|people| json!({ "all": people.all, "lost": people.without_release })),
        "suppressed_sensitive_cells": done.rare_sensitive_cells,
        "untruthful": done.aggregated.iter().map(|a| a.attribute.as_str()).collect::<Vec<_>>(),
        "policies": {
            "lattice": exact_count(done.lattice),
            "checked": recoded.checked_policy_count(),
            "pruned": if one && first.complete { exact_count(pruned) } else { Value::Null },
        },
        "optimal": one && first.complete && recoded.early_end_reason.is_none(),
        "cut_short": recoded.early_end_reason.map(|cut| match cut {
            EarlyEndReason::Time => "time",
            EarlyEndReason::Stopped => "stopped",
        }),
        "seconds": done.seconds,
        "search_seconds": recoded.searches.iter().map(|found| found.seconds).sum::<f64>(),
        "history": history,
    });
    if done.transformation == RecodingScope::Local {
        report["passes"] = recoded.passes.iter().map(|pass| self::pass_json(done, pass)).collect();
        report["measures_first_pass"] =
            recoded.first_pass_figures.as_ref().map_or(Value::Null, |account| worth_json(&account.policy_quality));
    }
    if let Some(ceiled) = &done.ceiled {
        report["ceiling"] = self::ceiling_json(ceiled);
    }
    if !done.aggregated.is_empty() {
        report["microaggregation"] = done.aggregated.iter().map(aggregation_json).collect();
    }
    report
}

/// Does not identify the invented lines.
fn ceiling_json(ceiled: &CeilingReport) -> Value {
    json!({
        "h": ceiled.h,
        "found": ceiled.is_found,
        "highest_degree": ceiled.degree,
        "lines": ceiled.lines,
        "counterfeits": ceiled.counterfeits,
        "filled_classes": ceiled.filled,
        "groups": ceiled.groups.0,
        "grouped_classes": ceiled.groups.1,
        "rce": ceiled.rce.marginal,
        "rce_joint": ceiled.rce.joint,
    })
}

fn policy_levels(quasi: &[String], policy: &[u8]) -> Value {
    Value::Object(quasi.iter().zip(policy).map(|(name, level)| (name.clone(), json!(level))).collect())
}

/// Released values at a level.
fn level_label(done: &AnonymizationReport, attribute: usize, policy: &[u8]) -> String {
    let label = &done.labels[attribute][usize::from(policy[attribute])];
    match done.aggregated.iter().find(|aggregated| aggregated.attribute == done.quasi[attribute]) {
        Some(_) => format!("mean of each class, formed by {label}"),
        None => label.clone(),
    }
}

fn policy_labels(done: &AnonymizationReport, policy: &[u8]) -> Value {
    let of = |(attribute, name): (usize, &String)| (name.clone(), json!(level_label(done, attribute, policy)));
    Value::Object(done.quasi.iter().enumerate().map(of).collect())
}

fn pass_json(done: &AnonymizationReport, pass: &RecodingPass) -> Value {
    json!({
        "policy": policy_levels(&done.quasi, &pass.policy),
        "levels": policy_labels(done, &pass.policy),
        "records": pass.records,
        "released_records": pass.released,
        // Classes that fail a diversity model; no later pass includes them.
        "suppressed_for_good": pass.refused,
        "classes": pass.classes,
        "quality": pass.quality,
        "checked": pass.found.checked,
        "optimal": pass.found.complete,
        "seconds": pass.found.seconds,
    })
}

fn aggregation_json(aggregated: &MicroaggregationReport) -> Value {
    json!({
        "attribute": aggregated.attribute,
        "aggregate": "mean",
        "variance_lost": aggregated.distortion,
        "suppressed_cells": aggregated.withheld,
    })
}

fn frontier_json(point: &FrontierPoint) -> Value {
    json!({ "k": point.k, "quality": point.quality, "suppressed_records": point.suppressed, "levels": point.policy, "passes": point.passes, "optimal": point.complete })
}

fn print_anonymization_summary(done: &AnonymizationReport) {
    for warning in &done.warnings {
        eprintln!("warning: {warning}");
    }
    let (recoded, account) = (&done.recoded, &done.recoded.overall_figures);
    for (number, pass) in recoded.passes.iter().enumerate() {
        let levels: Vec<String> = (0..done.quasi.len())
            .map(|a| format!("{}: {}", done.quasi[a], level_label(done, a, &pass.policy)))
            .collect();
        let best = if pass.found.complete { "the optimum" } else { "the best found in time" };
        let of = format!(
            "{best} of {} {}, {} checked\n  {}",
            exact_count(done.lattice),
            if done.lattice > 1.0 { "policies" } else { "policy" },
            pass.found.checked,
            levels.join("\n  ")
        );
        match done.transformation {
            RecodingScope::FullDomain => eprintln!("{of}"),
            RecodingScope::Local => {
                eprintln!("pass {}: {} of {} records released with {of}", number + 1, pass.released, pass.records);
            }
        }
    }
    eprintln!(
        "{} {:.6}, {} of {} records suppressed, {} {}, the smallest of {}",
        done.measure.name(),
        account.policy_quality.measure_value(done.measure),
        account.suppressed,
        done.to_release,
        account.classes,
        plural(account.classes, "class", "classes"),
        account.smallest
    );
    if done.rare_sensitive_cells > 0 {
        eprintln!(
            "{} sensitive {} suppressed: rare values and complementary suppression",
            done.rare_sensitive_cells,
            plural(done.rare_sensitive_cells, "cell", "cells")
        );
    }
    if let Some(people) = done.people {
        eprintln!(
            "{} {}, {} of them without a released record",
            people.all,
            plural(people.all, "person", "people"),
            people.without_release
        );
    }
    eprintln!(
        "re-identification risk of a record: highest {}, average {} (before: {}, {})",
        percent(done.risk.highest),
        percent_with_digits(done.risk.average(), 2),
        percent(done.risk_before.highest),
        percent_with_digits(done.risk_before.average, 2)
    );
    match recoded.early_end_reason {
        Some(EarlyEndReason::Stopped) => eprintln!("stopped: this is the best policy found so far"),
        Some(EarlyEndReason::Time) => eprintln!("anonymize.time_limit reached: this is the best policy found so far"),
        None => {}
    }
    if let Some(ceiled) = &done.ceiled {
        eprintln!(
            "untruthful without its catalog: {} counterfeits fill {} classes to {} lines (generalized by {:.4} at most, reconstruction error {:.1}); counterfeits do not count towards k",
            ceiled.counterfeits, ceiled.filled, ceiled.lines, ceiled.degree, ceiled.rce.marginal
        );
    }
    for aggregated in &done.aggregated {
        eprintln!(
            "untruthful: {} shows the mean of each class ({} of its variance lost, {} suppressed)",
            aggregated.attribute,
            percent(aggregated.distortion),
            text_format::counted(aggregated.withheld, "cell")
        );
    }
}

fn print_frontier(points: &[FrontierPoint], measure: QualityMeasure) {
    let better = if measure.is_better_higher() { "higher" } else { "lower" };
    let none = |point: &FrontierPoint| if point.complete { "impossible" } else { "none in time" }.to_owned();
    println!("{:>6}  {:>16}  suppressed  levels    ({better} is better)", "k", measure.name());
    for point in points {
        let quality = point.quality.map_or_else(|| none(point), |quality| format!("{quality:.6}"));
        let levels: Vec<String> = point.policy.iter().map(u8::to_string).collect();
        let proved = if point.complete { "" } else { "  (best found in time)" };
        println!("{:>6}  {quality:>16}  {:>10}  {}{proved}", point.k, point.suppressed, levels.join(" "));
    }
}
