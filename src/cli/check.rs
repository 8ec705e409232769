//! `throng check`.

mod consumer;
mod explain;
mod explain_series;
mod forms;
mod groups;
mod memory;
mod places;
mod sample;
mod treatments;

use super::outcome::Failure;
use super::reloading::Trial;
use super::stopping::end_on_signals;
use super::text::number;
use super::trials::run_all;
use crate::anonymity::series::{DELTA, SeriesTerms, epsilon_of, rho_of};
use crate::config::{self, Config};
use crate::daemon::http::Site;
use crate::io::registry::FramedAs;
use crate::start::checked::Checked;
use crate::start::clusters;
use crate::start::doubts;
use crate::start::output_names::written_under;
use crate::start::output_schema::output_schemas;
use crate::start::registered::plain_schemas;
use crate::telemetry::silence_panic_payloads;
use anyhow::{Context, anyhow};
use humantime::format_duration;
use std::path::PathBuf;
use throng_core::values::schema::{Role, Schema};

/// Check a configuration with its schema and hierarchies; every problem at once
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The tests of the configuration ([[test]], see docs/policies.md) run through the real pipeline.\n\nExit codes: 0 nothing wrong (warnings are printed) · 2 problems, each with file, key and remedy, or a test that fails ·\n4 the release of the sample would represent less than release.min_represented\n\n--sample: the best attack is the one of `throng attack` (200 targets each) whose 95 % interval begins furthest above what guessing gives.\nCohorts are drawn, so that another try can put another attack first."
)]
pub struct CheckArgs {
    /// The configuration
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Say in sentences what each attribute gets, what is guaranteed, against whom, and what is not
    #[arg(long, conflicts_with = "output_schema")]
    explain: bool,
    /// Print what leaves as JSON Schema, one a group, and nothing else
    #[arg(long)]
    output_schema: bool,
    /// Try it on the records of INPUT (CSV, NDJSON or Parquet) with nothing kept: single records and statistics over time compared, what does
    /// not fit, what is lost, what would leave
    #[arg(long, value_name = "INPUT", conflicts_with_all = ["explain", "output_schema"])]
    sample: Option<PathBuf>,
    /// Print what was found on the sample as JSON, and nothing else
    #[arg(long, requires = "sample")]
    json: bool,
    /// Run the tests and print as JSON what a running daemon asks
    #[arg(long, hide = true, conflicts_with_all = ["explain", "output_schema", "sample"])]
    for_reload: bool,
}

/// Attributes in one fragment from which crowds become hopeless (docs/methods.md §11.6).
const WIDE: usize = 8;

/// Runs `throng check`.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let config = config::load_for_job(&args.config, std::env::vars())?;
    let file = args.config.display().to_string();
    if let Some(input) = &args.sample {
        silence_panic_payloads();
        return sample::run(config, &file, input, args.json);
    }
    let asked = config.clone();
    let checked = Checked::new(config, &file)?;
    if args.for_reload {
        silence_panic_payloads();
        let failed = run_all(&checked, &asked, &end_on_signals()?)?.into_iter().filter(|tried| !tried.unmet.is_empty());
        let trial = Trial { policy: checked.policy.to_string(), failed: failed.map(|tried| tried.name).collect() };
        println!("{}", serde_json::to_string(&trial).context("a trial has no JSON")?);
        return Ok(());
    }
    let Checked { config, schema, shapes, protections, .. } = &checked;
    if args.output_schema {
        match written_under(&checked.config) {
            // A file a group, as readers of plain records need them.
            Some(FramedAs::Protobuf) => {
                for (name, text) in plain_schemas(&checked) {
                    println!("// {name}\n{text}");
                }
            }
            _ => println!("{:#}", output_schemas(&checked)),
        }
        return Ok(());
    }
    print!("{}", treatments::described(&checked.treated, schema, &file));
    if let Some(grown) = &checked.grown {
        print!("{}", groups::described(grown, schema, &file));
    }
    Site::new(checked.telemetry(), &config.telemetry).map_err(|error| Failure::Usage(error.into()))?;
    let refused = clusters::problems(config, &file);
    if !refused.is_empty() {
        return Err(refused.into());
    }
    for warning in config.telemetry.warnings() {
        eprintln!("warning: {file}: {warning}");
    }
    for shape in shapes {
        if shape.quasi.len() > WIDE && config.release.fragments {
            eprintln!(
                "warning: {file}: group {:?} has {} quasi attributes; beyond {WIDE} most cells are lost (split it into [[group]]s)",
                shape.name,
                shape.quasi.len()
            );
        }
    }
    for (position, attribute) in schema.attributes.iter().enumerate() {
        if config.release.fragments
            && attribute.role == Role::Sensitive
            && protections.iter().all(|p| p.attribute != position)
        {
            eprintln!(
                "warning: {}: attribute {:?} is sensitive and no diversity is asked for: a class may share one value",
                config.schema.file.display(),
                attribute.name
            );
        }
    }
    print!("{}", memory::described(&checked));
    for line in series(&checked).into_iter().chain(repetition(config, schema)).chain(secret(config)) {
        println!("{file}: {line}");
    }
    for warning in schema.warnings() {
        eprintln!("warning: {}: {warning}", config.schema.file.display());
    }
    let told = doubts::of_configuration(config, schema).into_iter().chain(doubts::of_first_records(config, schema));
    for doubt in told {
        eprintln!("warning: {}: {doubt}", config.schema.file.display());
    }
    if args.explain {
        print!("{}", explain::explained(&checked));
        println!();
        print!("{}", memory::unlimited(&checked));
    }
    try_tests(&checked, &asked)?;
    println!(
        "{file}: {} attributes in {} group(s), k = {}, schema {}, policy {}: no problems",
        schema.attributes.len(),
        shapes.len(),
        config.privacy.k,
        config.schema.file.display(),
        checked.policy.short()
    );
    Ok(())
}

/// Runs the tests of a configuration, a line each; more where one has failed.
fn try_tests(checked: &Checked, asked: &Config) -> Result<(), Failure> {
    if asked.test.is_empty() {
        return Ok(());
    }
    silence_panic_payloads();
    let tried = run_all(checked, asked, &end_on_signals()?)?;
    for test in &tried {
        print!("{}", test.described());
    }
    match tried.iter().filter(|test| !test.unmet.is_empty()).count() {
        0 => Ok(()),
        failed => Err(Failure::Usage(anyhow!("{}: {failed} of {} tests failed: see above", checked.file, tried.len()))),
    }
}

/// Describes the secret of a job over files that has none yet.
fn secret(config: &Config) -> Option<String> {
    if config.secret.is_some() || !config.is_job() {
        return None;
    }
    match &config.state.secret_file {
        Some(path) => Some(format!("the first run creates {} (state.secret_file)", path.display())),
        None if config.has_state() => None,
        None => Some(
            "each run draws a secret of its own, so that two releases of one input differ and can be compared by their \
             readers (name a file in state.secret_file to keep one)"
                .to_owned(),
        ),
    }
}

/// What each series publishes, a line each.
fn series(checked: &Checked) -> Vec<String> {
    let Some(terms) = &checked.series else { return Vec::new() };
    let (crowd, size) = (terms.cohorts.crowd, terms.cohorts.size);
    let line = |series: &SeriesTerms| {
        let signals: Vec<&str> = series.signals.iter().map(|signal| signal.name.as_str()).collect();
        if let Some(noise) = series.noise {
            let people = (6.0 * noise.scale(series).sum_deviation()).powi(2).ceil() as u64;
            return format!(
                "series {:?}: every {} number of people and mean of {} for everybody, with noise: ε = {}, δ = {DELTA} for a person and \
                 week; the noise of a mean is below its sampling error from about {} people on, where the deviation is a sixth of the range \
                 (throng check --sample measures it)",
                series.name,
                series.every,
                signals.join(", "),
                noise.epsilon,
                number(people)
            );
        }
        let whose = if series.pooled { "all cohorts together" } else { "each cohort and all together" };
        let (every, statistics, whose) = match &series.moments {
            None => (&series.every, "mean, deviation and quartiles", whose),
            Some(moments) if series.pooled => (&moments.every, "means and covariances", whose),
            Some(moments) => (&moments.every, "means and covariances", "each cohort"),
        };
        format!(
            "series {:?}: every {every} {statistics} of {} for {whose}, cohorts of about {size} people, at least {crowd} of them present",
            series.name,
            signals.join(", ")
        )
    };
    let mut lines: Vec<String> = terms.series.iter().map(line).collect();
    let noise: Vec<f64> =
        terms.series.iter().filter_map(|series| series.noise).map(|noise| rho_of(noise.epsilon)).collect();
    if noise.len() > 1 {
        let epsilon = epsilon_of(noise.iter().sum());
        lines.push(format!("series with noise together: ε = {epsilon:.2}, δ = {DELTA} for a person and week"));
    }
    if !checked.config.release.fragments {
        lines.push("no record of a single person leaves (release.fragments = false)".to_owned());
    }
    lines
}

/// What is kept back of a subject that sends again and again, or what it means that nothing is.
fn repetition(config: &Config, schema: &Schema) -> Vec<String> {
    if schema.subject.is_none() || !config.release.fragments {
        return Vec::new();
    }
    let lines = match config.privacy.max_lines_per_subject {
        0 => "a batch may release every line of a subject (privacy.max_lines_per_subject = 0): equal numbers of lines \
              in two groups tell which belong together"
            .to_owned(),
        most => format!(
            "a batch releases at most {most} line(s) of a subject in each group, further ones are thinned (privacy.max_lines_per_subject)"
        ),
    };
    let delay = config.privacy.longest_delay();
    let still = if delay.is_zero() {
        "what does not change within a person leaves with every record (privacy.max_delay = \"0s\"): over many \
         batches such groups can be joined again"
            .to_owned()
    } else {
        format!(
            "a group that does not change within a person leaves once a person and {}, up to {} late (privacy.static_window, privacy.max_delay)",
            format_duration(config.privacy.static_window),
            format_duration(delay)
        )
    };
    vec![lines, still]
}
