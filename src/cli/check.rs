//! `throng check`.

mod chosen_groups;
mod connection_check;
mod consumer_knowledge;
mod endpoint_phrases;
mod explain;
mod explain_series;
mod form_comparison;
mod memory_report;
mod sample_check;
mod treatment_report;

use super::outcome::Failure;
use super::policy_test_runs::run_policy_tests;
use super::progress::spinner;
use super::reload_handler::PolicyTrialResult;
use super::stop_signals::exit_on_signals;
use super::text_format::number;
use crate::config::{self, Config, GroupSelection};
use crate::daemon::http::PageSite;
use crate::io::registry::FrameEncoding;
use crate::start::checked_config::CheckedConfig;
use crate::start::clusters;
use crate::start::output_names::output_schema_kind;
use crate::start::output_schema::output_schemas;
use crate::start::schema_registration::plain_schemas;
use crate::start::schema_warnings;
use crate::telemetry::silence_panic_payloads;
use anyhow::{Context, anyhow};
use humantime::format_duration;
use indicatif::ProgressBar;
use std::path::PathBuf;
use throng_core::series::{DELTA, SeriesTerms, epsilon_of, rho_of};
use throng_core::values::schema::{Role, Schema};

/// Check a configuration with its schema and hierarchies, and report all problems
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The tests of the configuration ([[test]], see docs/policies.md) run through the real pipeline.\n\nExit codes: 0 no problems (warnings are printed) · 1 a broker or registry does not answer (--connect) ·\n2 problems, each with file, key and remedy, or a failed test ·\n4 the release of the sample would represent less than release.min_represented\n\n--sample: the best attack is the one of `throng attack` (200 targets each) whose 95 % interval begins furthest above chance.\nCohorts are drawn: another draw can put another attack first."
)]
pub struct CheckArgs {
    /// Configuration
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Explain in sentences the treatment of each attribute, the guarantees, the attackers and the limits
    #[arg(long, conflicts_with = "output_schema")]
    explain: bool,
    /// Print only the JSON Schema of the output, one per group
    #[arg(long)]
    output_schema: bool,
    /// Also connect to brokers and schema registry, and check topics and rights. Releases and commits nothing
    #[arg(long, conflicts_with_all = ["explain", "output_schema", "sample", "effective"])]
    connect: bool,
    /// Print only the configuration with all defaults and environment variables, as TOML without secrets
    #[arg(long, conflicts_with_all = ["explain", "output_schema", "sample"])]
    effective: bool,
    /// Try the configuration on the records of INPUT (CSV, NDJSON or Parquet) and keep nothing: compares single
    /// records with statistics over time, and shows schema mismatches, losses and the expected output
    #[arg(long, value_name = "INPUT", conflicts_with_all = ["explain", "output_schema"])]
    sample: Option<PathBuf>,
    /// Print only the findings on the sample, as JSON
    #[arg(long, requires = "sample")]
    json: bool,
    /// Run the tests and print the JSON that a reloading daemon expects
    #[arg(long, hide = true, conflicts_with_all = ["explain", "output_schema", "sample"])]
    for_reload: bool,
}

/// Larger groups are reported (docs/internals/methods.md §11.6).
const WIDE_GROUP_THRESHOLD: usize = 8;

/// Prints warnings on exposed pages, wide groups and sensitive attributes without a privacy model.
fn warn_of_exposure_and_groups(checked: &CheckedConfig, file: &str) {
    let CheckedConfig { config, schema, shapes, protections, .. } = checked;
    for warning in config.telemetry.exposure_warnings() {
        eprintln!("warning: {file}: {warning}");
    }
    for shape in shapes {
        if shape.quasi.len() > WIDE_GROUP_THRESHOLD && config.release.fragments {
            eprintln!(
                "warning: {file}: group {:?} has {} quasi attributes; beyond {WIDE_GROUP_THRESHOLD} most cells are suppressed (split it into several [[group]]s)",
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
                "warning: {}: attribute {:?} is sensitive, but no diversity is required: all members of a class may have the same value (set a [[privacy.model]])",
                config.schema.file.display(),
                attribute.name
            );
        }
    }
}

/// Runs `throng check`.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let config = config::load_for_job(&args.config, std::env::vars())?;
    let file = args.config.display().to_string();
    if let Some(input) = &args.sample {
        silence_panic_payloads();
        return sample_check::run(config, &file, input, args.json);
    }
    let asked = config.clone();
    let checked = check_with_progress(config, &file)?;
    if args.for_reload {
        silence_panic_payloads();
        let failed = run_policy_tests(&checked, &asked, &exit_on_signals()?)?
            .into_iter()
            .filter(|tried| !tried.unmet.is_empty());
        let trial =
            PolicyTrialResult { policy: checked.policy.to_string(), failed: failed.map(|tried| tried.name).collect() };
        println!("{}", serde_json::to_string(&trial).context("cannot encode the trial result as JSON")?);
        return Ok(());
    }
    let CheckedConfig { config, schema, shapes, .. } = &checked;
    if print_requested_document(args, &checked)? {
        return Ok(());
    }
    print!("{}", treatment_report::describe_treatments(&checked.selected_treatments, schema, &file));
    if let Some(grown) = &checked.planned_groups {
        print!("{}", chosen_groups::describe_chosen_groups(grown, schema, &file));
    }
    PageSite::new(checked.telemetry(), &config.telemetry).map_err(|error| Failure::Usage(error.into()))?;
    let refused = clusters::problems(config, &file);
    if !refused.is_empty() {
        return Err(refused.into());
    }
    warn_of_exposure_and_groups(&checked, &file);
    print!("{}", memory_report::describe_memory_division(&checked));
    for line in describe_series_outputs(&checked)
        .into_iter()
        .chain(describe_repetition_limits(config, schema))
        .chain(describe_missing_secret(config))
    {
        println!("{file}: {line}");
    }
    for warning in schema.warnings() {
        eprintln!("warning: {}: {warning}", config.schema.file.display());
    }
    let told = schema_warnings::configuration_warnings(config, schema)
        .into_iter()
        .chain(schema_warnings::first_record_warnings(config, schema));
    for doubt in told {
        eprintln!("warning: {}: {doubt}", config.schema.file.display());
    }
    if args.explain {
        print!("{}", explain::explain_configuration(&checked));
        println!();
        print!("{}", memory_report::container_limit_warning(&checked));
    }
    print_test_results(&checked, &asked)?;
    if args.connect {
        connection_check::check_connections(&checked)?;
    }
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

/// Returns true if a document was requested in place of the report.
fn print_requested_document(args: &CheckArgs, checked: &CheckedConfig) -> Result<bool, Failure> {
    if args.effective {
        print!("{}", toml::to_string(&*checked.config).context("cannot write the configuration as TOML")?);
    } else if args.output_schema {
        match output_schema_kind(&checked.config) {
            // One file per group, as required by readers of plain records.
            Some(FrameEncoding::Protobuf) => {
                for (name, text) in plain_schemas(checked) {
                    println!("// {name}\n{text}");
                }
            }
            _ => println!("{:#}", output_schemas(checked)),
        }
    }
    Ok(args.effective || args.output_schema)
}

/// The planner can take minutes to choose groups.
fn check_with_progress(config: Config, file: &str) -> Result<CheckedConfig, Failure> {
    let has_given_groups = config.plan.groups == GroupSelection::Given;
    let bar = if has_given_groups { ProgressBar::hidden() } else { spinner("{spinner} choosing groups {elapsed}") };
    let checked = CheckedConfig::new(config, file);
    bar.finish_and_clear();
    Ok(checked?)
}

/// One line per test, with details of failures.
fn print_test_results(checked: &CheckedConfig, asked: &Config) -> Result<(), Failure> {
    if asked.test.is_empty() {
        return Ok(());
    }
    silence_panic_payloads();
    let tried = run_policy_tests(checked, asked, &exit_on_signals()?)?;
    for test in &tried {
        print!("{}", test.result_text());
    }
    match tried.iter().filter(|test| !test.unmet.is_empty()).count() {
        0 => Ok(()),
        failed => Err(Failure::Usage(anyhow!("{}: {failed} of {} tests failed: see above", checked.file, tried.len()))),
    }
}

/// Missing secret of a job.
fn describe_missing_secret(config: &Config) -> Option<String> {
    if config.secret.is_some() || !config.is_job() {
        return None;
    }
    match &config.state.secret_file {
        Some(path) => Some(format!("the first run creates {} (state.secret_file)", path.display())),
        None if config.has_state() => None,
        None => Some(
            "each run draws a new secret: two releases of one input differ, and readers can compare them (set \
             state.secret_file to keep one secret)"
                .to_owned(),
        ),
    }
}

fn describe_series_outputs(checked: &CheckedConfig) -> Vec<String> {
    let Some(terms) = &checked.series else { return Vec::new() };
    let (crowd, size) = (terms.cohorts.crowd, terms.cohorts.size);
    let line = |series: &SeriesTerms| {
        let signals: Vec<&str> = series.signals.iter().map(|signal| signal.name.as_str()).collect();
        if let Some(noise) = series.noise {
            let people = (6.0 * noise.scale(series).sum_deviation()).powi(2).ceil() as u64;
            return format!(
                "series {:?}: every {} number of people and mean of {} over all people, with noise: ε = {}, δ = {DELTA} per person and \
                 week; the noise of a mean is below its sampling error from about {} people on, if the deviation is a sixth of the range \
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
        lines.push(format!("series with noise together: ε = {epsilon:.2}, δ = {DELTA} per person and week"));
    }
    if !checked.config.release.fragments {
        lines.push("no record of a single person is released (release.fragments = false)".to_owned());
    }
    lines
}

/// Limits for repeated senders, or the risk.
fn describe_repetition_limits(config: &Config, schema: &Schema) -> Vec<String> {
    if schema.subject.is_none() || !config.release.fragments {
        return Vec::new();
    }
    let lines = match config.privacy.max_lines_per_subject {
        0 => "a batch may release every line of a subject (privacy.max_lines_per_subject = 0): equal numbers of lines \
              in two groups show which lines belong together"
            .to_owned(),
        most => format!(
            "a batch releases at most {most} line(s) of a subject in each group; further lines are thinned (privacy.max_lines_per_subject)"
        ),
    };
    let delay = config.privacy.longest_delay();
    let still = if delay.is_zero() {
        "attributes that do not change within a person are released with every record (privacy.max_delay = \"0s\"): over \
         many batches such groups can be linked again"
            .to_owned()
    } else {
        format!(
            "a group that does not change within a person is released once per person and {}, up to {} late (privacy.static_window, privacy.max_delay)",
            format_duration(config.privacy.static_window),
            format_duration(delay)
        )
    };
    vec![lines, still]
}
