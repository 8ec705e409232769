//! `throng anonymize`.

use super::outcome::Failure;
use super::run::{create_secret, share};
use super::stopping::JobSignals;
use super::text;
use super::written::{refuse_overwriting, unwritable};
use super::written_down::{check_inputs, format_of, inputs, size};
use crate::anonymity::lattice::passes::{Cut, Pass};
use crate::anonymity::lattice::search::Progress;
use crate::anonymity::quality::{Measure, Worth};
use crate::config;
use crate::config::{Transformation, Used};
use crate::daemon::stream::loss;
use crate::dataset::{
    Aggregated, AnonymizeError, Anonymized, Attended, Ceiled, Point, Source, Step, anonymize, files_written, frontier,
};
use crate::io::file::{Format, whole};
use crate::start::checked::policy_files;
use crate::start::findings::Finding;
use crate::telemetry::silence_panic_payloads;
use anyhow::anyhow;
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Anonymize one data set at once: the best generalization of all, proved, verified and written
///
/// Searches the lattice of the schema's hierarchies for the policy of best quality whose classes satisfy k and every
/// [[privacy.model]], with at most the configured share of records suppressed. The output is sorted. Ctrl-C ends the
/// search with the best found so far, as anonymize.time_limit does. Before and after the search it ends the program, and so does a
/// second one; no output is replaced then.
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
    /// The data set: a file, or a directory or pattern of files; CSV, NDJSON or Parquet, by `source.format`, its extension or its content
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// Further files, directories or patterns of the same kind, read behind it as one data set
    #[arg(value_name = "MORE")]
    more: Vec<PathBuf>,
    /// The configuration (config/adult-anonymize.toml is a ready one)
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Where the release goes. A file that is there is replaced. Required, but with --frontier
    #[arg(short, long, value_name = "OUTPUT", required_unless_present = "frontier")]
    output: Option<PathBuf>,
    /// Where the catalog of counterfeits goes, one JSON line a group; in the place of anonymize.ceiling.catalog
    #[arg(long, value_name = "FILE", conflicts_with = "frontier")]
    catalog: Option<PathBuf>,
    /// Write what was found: policy, measures before and after, risks, policies checked
    #[arg(long, value_name = "REPORT.json")]
    report: Option<PathBuf>,
    /// Release nothing; print the best quality for each k instead, for choosing one
    #[arg(long, value_name = "K,K,…", value_delimiter = ',', num_args = 0.., default_missing_value = "2,3,5,10,20,50,100", conflicts_with = "output")]
    frontier: Option<Vec<u64>>,
    /// End with exit code 1 when a larger share of the records is suppressed, or swallowed by a quote left open, 0 to 1, or
    /// all of them are; the release is written all the same
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "1", conflicts_with = "frontier")]
    fail_above: f64,
    /// Refuse a data set whose codes alone need more memory than this (12 bytes a cell, 64 a record and its different values; the search
    /// and the lines come on top); with --temp, keep to it all the way
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = size)]
    memory: u64,
    /// Keep the data set in files in this directory: the same release, byte for byte, of one that is larger than memory. The files have no
    /// name and are gone however the command ends. They hold codes (1 to 4 bytes a cell, 8 to 12 a record, what leaves once more), and the
    /// lines that have been verified. Local recoding, aggregates, counterfeits, populations and profiles are refused then
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
    // The input and the output take the place of the configuration's: that they are two is told in words of their own.
    let mut given: Vec<Used> = inputs(&args.input, &args.more).map(|path| Used::file("the input", path)).collect();
    given.push(Used::file("the configuration", &args.config));
    check_inputs(&args.input, &args.more, args.temp.as_deref())?;
    refuse_overwriting(&args.written(Vec::new()), &given)?;
    // The files of the command line take the place of the configuration's.
    let named = [
        ("SOURCE__KIND", "file".to_owned()),
        ("SOURCE__PATH", path(&args.input)?),
        ("SINK__KIND", "file".to_owned()),
        ("SINK__PATH", path(&sink)?),
    ];
    let catalog = args.catalog.as_deref().map(path).transpose()?;
    let catalog = catalog.map(|path| ("ANONYMIZE__CEILING__CATALOG", path));
    let named = named.into_iter().chain(catalog).map(|(key, value)| (format!("THRONG__{key}"), value));
    let mut config = config::load_for_job(&args.config, std::env::vars().chain(named))?;
    if config.source.format.is_none() {
        let found = format_of(&args.input, None, Some(b',')).map_err(|error| Failure::Usage(error.into()))?;
        config.source.format = Some(match found {
            Format::Csv { .. } => config::Format::Csv,
            Format::Ndjson => config::Format::Json,
            Format::Parquet => config::Format::Parquet,
        });
    }
    if args.frontier.is_some() {
        config.sink.format = Some(config::Format::Json);
    }
    let written = args.written(if args.output.is_some() { files_written(&config) } else { Vec::new() });
    let mut read = given;
    read.extend(policy_files(&config, &args.config.display().to_string()));
    read.extend(config.files_beside_the_output());
    refuse_overwriting(&written, &read)?;
    if let Some(path) = &args.report {
        whole::check(path).map_err(|error| unwritable("the report", path, error))?;
    }
    let file = args.config.display().to_string();
    create_secret(&mut config, &file)?;
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    bar.enable_steady_tick(Duration::from_millis(200));
    let watch = |progress: &Progress| {
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
    let note = |finding: &Finding| bar.suspend(|| eprintln!("note: {finding}"));
    let step = |step: Step| {
        bar.set_message(told(step));
        signals.hear(step)
    };
    let attended = Attended { watch: &watch, stop: signals.flag(), note: &note, step: &step };
    let source = Source { more: &args.more, memory: args.memory, temp: args.temp.as_deref(), part: None };
    if let Some(ks) = &args.frontier {
        let points = frontier(&config, &file, &source, ks, attended).map_err(Failure::from)?;
        bar.finish_and_clear();
        show_frontier(&points, config.anonymize.measure);
        return write_report(
            args,
            &json!({ "measure": config.anonymize.measure.name(), "frontier": points.iter().map(point).collect::<Vec<_>>() }),
        );
    }
    let done = anonymize(&config, &file, &source, attended);
    bar.finish_and_clear();
    let done = done?;
    write_report(args, &report(&done))?;
    summarize(&done);
    let lost = done.recoded.account.suppressed + done.swallowed;
    let share = lost as f64 / (done.to_release + done.swallowed).max(1) as f64;
    loss(share, done.swallowed, args.fail_above, false).map_or(Ok(()), |what| Err(Failure::Running(anyhow!(what))))
}

/// How far everything beside the search is, in words.
fn told(step: Step) -> String {
    let of = |done: u64, of: u64| format!("{} of {}", text::number(done), text::number(of));
    match step {
        Step::Reading { records } => format!("reading: {}", text::counted(records, "record")),
        Step::Counting { records, of: all } => format!("counting: {} records", of(records, all)),
        Step::Searching => "searching".to_owned(),
        Step::Dividing { records, of: all } => format!("dividing: {} records", of(records, all)),
        Step::Verifying { part, of: all } => format!("verifying: {} parts", of(part, all)),
        Step::Writing { lines, of: all } => format!("writing: {} lines", of(lines, all)),
    }
}

fn path(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| Failure::Usage(anyhow!("{} is no UTF-8 path", path.display())))
}

impl AnonymizeArgs {
    /// What is written: the release, by the paths that it takes (at first, its name alone), and the report.
    fn written(&self, release: Vec<Used>) -> Vec<Used> {
        let named = self.output.iter().filter(|_| release.is_empty()).map(|path| Used::file("--output", path));
        let report = self.report.iter().map(|path| Used::file("--report", path));
        let catalog = self.catalog.iter().filter(|_| release.is_empty()).map(|path| Used::file("--catalog", path));
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
    whole::write(path, format!("{report:#}\n").as_bytes()).map_err(|error| unwritable("the report", path, error))
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
    let (recoded, account) = (&done.recoded, &done.recoded.account);
    let pruned = (done.lattice - recoded.checked() as f64).max(0.0);
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
        "policy": recoded.passes.first().map(|pass| levels(&done.quasi, &pass.policy)),
        "levels": recoded.passes.first().map(|pass| labels(done, &pass.policy)),
        "suppressed_records": account.suppressed,
        "released_records": done.to_release - account.suppressed,
        "measure": done.measure.name(),
        "strategy": done.strategy.name(),
        "measures": measures(&account.worth),
        "measures_before": measures(&recoded.before),
        "classes": account.classes,
        "smallest_class": account.smallest,
        "risks": { "highest": done.risk.highest, "average": done.risk.average() },
        "risks_before": { "highest": done.risk_before.highest, "average": done.risk_before.average },
        "people": done.people.map(|people| json!({ "all": people.all, "lost": people.lost })),
        "suppressed_sensitive_cells": done.rare_sensitive_cells,
        "untruthful": done.aggregated.iter().map(|a| a.attribute.as_str()).collect::<Vec<_>>(),
        "policies": {
            "lattice": count(done.lattice),
            "checked": recoded.checked(),
            "pruned": if one && first.complete { count(pruned) } else { Value::Null },
        },
        "optimal": one && first.complete && recoded.cut.is_none(),
        "cut_short": recoded.cut.map(|cut| match cut {
            Cut::Time => "time",
            Cut::Stopped => "stopped",
        }),
        "seconds": done.seconds,
        "search_seconds": recoded.searches.iter().map(|found| found.seconds).sum::<f64>(),
        "history": history,
    });
    if done.transformation == Transformation::Local {
        report["passes"] = recoded.passes.iter().map(|pass| self::pass(done, pass)).collect();
        report["measures_first_pass"] =
            recoded.after_first.as_ref().map_or(Value::Null, |account| measures(&account.worth));
    }
    if let Some(ceiled) = &done.ceiled {
        report["ceiling"] = self::ceiled(ceiled);
    }
    if !done.aggregated.is_empty() {
        report["microaggregation"] = done.aggregated.iter().map(aggregated).collect();
    }
    report
}

/// For the custodian: nothing of it says which lines are invented.
fn ceiled(ceiled: &Ceiled) -> Value {
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

fn levels(quasi: &[String], policy: &[u8]) -> Value {
    Value::Object(quasi.iter().zip(policy).map(|(name, level)| (name.clone(), json!(level))).collect())
}

/// What an attribute shows on a level of a policy, in words.
fn label(done: &Anonymized, attribute: usize, policy: &[u8]) -> String {
    let label = &done.labels[attribute][usize::from(policy[attribute])];
    match done.aggregated.iter().find(|aggregated| aggregated.attribute == done.quasi[attribute]) {
        Some(_) => format!("mean of each class, formed by {label}"),
        None => label.clone(),
    }
}

fn labels(done: &Anonymized, policy: &[u8]) -> Value {
    let of = |(attribute, name): (usize, &String)| (name.clone(), json!(label(done, attribute, policy)));
    Value::Object(done.quasi.iter().enumerate().map(of).collect())
}

fn pass(done: &Anonymized, pass: &Pass) -> Value {
    json!({
        "policy": levels(&done.quasi, &pass.policy),
        "levels": labels(done, &pass.policy),
        "records": pass.records,
        "released_records": pass.released,
        // Their class has its crowd and fails a model of values: no later pass gets them.
        "suppressed_for_good": pass.refused,
        "classes": pass.classes,
        "quality": pass.quality,
        "checked": pass.found.checked,
        "optimal": pass.found.complete,
        "seconds": pass.found.seconds,
    })
}

fn aggregated(aggregated: &Aggregated) -> Value {
    json!({
        "attribute": aggregated.attribute,
        "aggregate": "mean",
        "variance_lost": aggregated.distortion,
        "suppressed_cells": aggregated.withheld,
    })
}

fn point(point: &Point) -> Value {
    json!({ "k": point.k, "quality": point.quality, "suppressed_records": point.suppressed, "levels": point.policy, "passes": point.passes, "optimal": point.complete })
}

fn summarize(done: &Anonymized) {
    for warning in &done.warnings {
        eprintln!("warning: {warning}");
    }
    let (recoded, account) = (&done.recoded, &done.recoded.account);
    for (number, pass) in recoded.passes.iter().enumerate() {
        let levels: Vec<String> =
            (0..done.quasi.len()).map(|a| format!("{}: {}", done.quasi[a], label(done, a, &pass.policy))).collect();
        let best = if pass.found.complete { "the optimum" } else { "the best found in time" };
        let of = format!(
            "{best} of {} policies, {} checked\n  {}",
            count(done.lattice),
            pass.found.checked,
            levels.join("\n  ")
        );
        match done.transformation {
            Transformation::FullDomain => eprintln!("{of}"),
            Transformation::Local => {
                eprintln!("pass {}: {} of {} records leave by {of}", number + 1, pass.released, pass.records);
            }
        }
    }
    eprintln!(
        "{} {:.6}, {} of {} records suppressed, {} classes, the smallest of {}",
        done.measure.name(),
        account.worth.of(done.measure),
        account.suppressed,
        done.to_release,
        account.classes,
        account.smallest
    );
    if done.rare_sensitive_cells > 0 {
        eprintln!("{} sensitive cells suppressed: of rare values, and those that hide them", done.rare_sensitive_cells);
    }
    if let Some(people) = done.people {
        eprintln!("{} people, nothing is left of {} of them", people.all, people.lost);
    }
    let percent = |risk: f64| 100.0 * risk;
    eprintln!(
        "risk of a record to be told apart: highest {:.1} %, average {:.2} % (before: {:.1} %, {:.2} %)",
        percent(done.risk.highest),
        percent(done.risk.average()),
        percent(done.risk_before.highest),
        percent(done.risk_before.average)
    );
    match recoded.cut {
        Some(Cut::Stopped) => eprintln!("stopped: this is the best found until then"),
        Some(Cut::Time) => eprintln!("anonymize.time_limit was over: this is the best found until then"),
        None => {}
    }
    if let Some(ceiled) = &done.ceiled {
        eprintln!(
            "untruthful without its catalog: {} counterfeits fill {} classes to {} lines (generalized by {:.4} at most, reconstruction error {:.1}); k counts people and none of them",
            ceiled.counterfeits, ceiled.filled, ceiled.lines, ceiled.degree, ceiled.rce.marginal
        );
    }
    for aggregated in &done.aggregated {
        eprintln!(
            "untruthful: {} shows the mean of each class ({:.1} % of its variance lost, {} cells suppressed)",
            aggregated.attribute,
            100.0 * aggregated.distortion,
            aggregated.withheld
        );
    }
}

fn show_frontier(points: &[Point], measure: Measure) {
    let better = if measure.is_better_higher() { "higher" } else { "lower" };
    let none = |point: &Point| if point.complete { "impossible" } else { "none in time" }.to_owned();
    println!("{:>6}  {:>16}  suppressed  levels    ({better} is better)", "k", measure.name());
    for point in points {
        let quality = point.quality.map_or_else(|| none(point), |quality| format!("{quality:.6}"));
        let levels: Vec<String> = point.policy.iter().map(u8::to_string).collect();
        let proved = if point.complete { "" } else { "  (best found in time)" };
        println!("{:>6}  {quality:>16}  {:>10}  {}{proved}", point.k, point.suppressed, levels.join(" "));
    }
}
