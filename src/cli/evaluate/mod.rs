//! `throng evaluate`: utility and risk of a finished release.

mod moment_models;
mod page;
mod report;

use crate::cli::json;
use crate::cli::loaded_release::{LoadedRelease, ReleaseFiles, aligned_table};
use crate::cli::outcome::Failure;
use crate::cli::output_checks::{refuse_overwriting, write_failure};
use crate::cli::progress::spinner;
use crate::cli::text_format::{counted, number, percent};
use crate::config::{CohortConfig, Config, SeriesConfig, UsedFile};
use crate::evaluation::series_evidence::series_charts;
use crate::io::file::atomic_file;
use crate::start::checked_config::policy_files;
use crate::start::series_settings::series_terms;
use crate::telemetry::silence_panic_payloads;
use anyhow::anyhow;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use report::{
    CONTRAST_HEADS, EvaluationReport, FragmentEvaluation, SIGNAL_HEADS, UsefulnessByForm, contrast_rows, moments_note,
    signal_rows,
};
use std::path::PathBuf;
use throng_core::plan::GroupShape;
use throng_core::series::AllSeriesTerms;
use throng_core::values::schema::Schema;
use throng_eval::learning::{LearnedWeight, LearningScores, LearningTarget, PredictionScores, learn_target};
use throng_eval::original::OriginalData;
use throng_eval::quality::{ReleaseQuality, quality};
use throng_eval::queries::measure_queries;
use throng_eval::risk::measure_risks;
use throng_eval::series::{MomentModel, SeriesEvidence, SeriesQuality, fragment_utility};

/// Measure a finished release: its utility and the distinguishability of its lines
///
/// Reads the original records and the released lines, with the configuration of the run. Prints measures of utility
/// (loss, exact cells, pairwise information, data score, distortion, errors of range queries) and of risk
/// (prosecutor, marketer, uniqueness before and after). No value of the data is printed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "With --lineage (the file of `throng run --lineage`), people are counted instead of lines, also per batch,\nfalsified values are found, and records without a released line are counted.\n\nExit codes: 0 done · 1 a file cannot be read · 2 bad usage or configuration"
)]
pub struct EvaluateArgs {
    /// Original records: CSV, NDJSON or Parquet, by extension or `source.format`
    #[arg(value_name = "ORIGINAL")]
    original: PathBuf,
    /// Release: the `sink.path` of the run. With several groups, also the files next to it with the group name before
    /// the extension
    #[arg(value_name = "RELEASED")]
    released: PathBuf,
    /// Configuration of the run
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Lineage, from record to output line
    #[arg(long, value_name = "FILE")]
    lineage: Option<PathBuf>,
    /// Print the complete report as JSON
    #[arg(long)]
    json: bool,
    /// Write the complete report as JSON to a file
    #[arg(long, value_name = "REPORT.json")]
    report: Option<PathBuf>,
    /// Write the complete report as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Number of range queries per width
    #[arg(long, value_name = "N", default_value_t = 200)]
    queries: usize,
    /// Learn this column (logistic regression) from the original records and from the released lines, and test both
    /// models on held-out records; `any(disease_*) = DOID:3393` predicts whether one of several columns has a value.
    /// For a series with moments: the linear model of this signal by the others, from moments and from the original
    /// records. May be given more than once
    #[arg(long, value_name = "COLUMN")]
    target: Vec<String>,
    /// Use only these columns as features; may be given more than once (default: all released columns)
    #[arg(long, value_name = "COLUMN", requires = "target")]
    feature: Vec<String>,
    /// Seed of the queries and of the choice of held-out records
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

/// Runs `throng evaluate`.
pub fn run(args: &EvaluateArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    let named = ReleaseFiles {
        original: &args.original,
        released: &args.released,
        config: &args.config,
        lineage: args.lineage.as_deref(),
    };
    let mut written: Vec<UsedFile> = args.report.iter().map(|path| UsedFile::file("the report", path)).collect();
    written.extend(args.html.iter().map(|path| UsedFile::file("--html", path)));
    refuse_overwriting(&written, &named.protected_files())?;
    if let Some(path) = &args.report {
        atomic_file::check_writable(path).map_err(|error| write_failure("the report", path, error))?;
    }
    if let Some(path) = &args.html {
        atomic_file::check_writable(path).map_err(|error| write_failure("the page", path, error))?;
    }
    let LoadedRelease { config, original, facts, shapes, groups, series } = named.load_release()?;
    let files = policy_files(&config, &args.config.display().to_string());
    refuse_overwriting(&written, &[config.files_written(), files].concat())?;
    let k = config.privacy.required_subjects();
    let mut dice = ChaCha8Rng::seed_from_u64(args.seed);
    let features = args.parse_features(&original)?;
    let is_feature = |attribute: usize| features.is_empty() || features.contains(&attribute);
    let models = args.fit_moment_models(&config, series.as_ref())?;
    let is_of_moments = |name: &String| models.iter().any(|model| model.target == *name);
    let learning = args.parse_targets(&original, &shapes, is_of_moments)?.into_iter().filter_map(|target| {
        let bar = spinner("{spinner} training {msg}");
        bar.set_message(target.name().to_owned());
        let learned = learn_target(&original, &facts, &groups, &target, is_feature, args.seed);
        bar.finish_and_clear();
        learned
    });
    let learning = learning.collect();
    let fragments = config.release.fragments.then(|| FragmentEvaluation {
        k,
        rejected: original.rejected,
        quality: quality(&original, &facts, &shapes, &groups),
        risk: measure_risks(&original, &shapes, &groups, k),
        queries: measure_queries(&original, &facts, &groups, args.queries, &mut dice),
        learning,
    });
    let usefulness = UsefulnessByForm {
        series: series.as_ref().map(SeriesEvidence::series_utility),
        fragments: fragments.as_ref().and_then(|_| {
            let daily = daily_terms(&config, &original.schema);
            fragment_utility(&original, &groups, daily.as_ref())
        }),
    };
    let report =
        EvaluationReport { usefulness, series: series.as_ref().map(SeriesEvidence::quality), models, fragments };
    let json = json::pretty_json(&report)?;
    if let Some(path) = &args.report {
        atomic_file::write(path, json.as_bytes()).map_err(|error| write_failure("the report", path, error))?;
    }
    if let Some(path) = &args.html {
        let name = args.released.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let charts = series.as_ref().map(series_charts).unwrap_or_default();
        let page = page::render(&report, &charts, &name, chrono::Utc::now());
        atomic_file::write(path, page.as_bytes()).map_err(|error| write_failure("the page", path, error))?;
    }
    if args.json {
        println!("{json}");
    } else {
        print!("{}", format_evaluation_report(&report));
    }
    Ok(())
}

/// Daily series over all numbers; none without event time, subject or number.
fn daily_terms(config: &Config, schema: &Schema) -> Option<AllSeriesTerms> {
    let cohort = CohortConfig { strata: Vec::new(), ..config.cohort.clone() };
    let series = vec![SeriesConfig { name: "daily".to_owned(), ..SeriesConfig::default() }];
    series_terms(&Config { series, cohort, ..config.clone() }, schema, "").ok().flatten()
}

impl EvaluateArgs {
    /// Fits models of targets that are signals of moments.
    fn fit_moment_models(&self, config: &Config, series: Option<&SeriesEvidence>) -> Result<Vec<MomentModel>, Failure> {
        let has_moments = config.series.iter().any(|series| series.moments.is_some());
        if !self.target.is_empty() && has_moments && series.is_none() {
            return Err(Failure::Usage(anyhow!(
                "--target of a series needs --lineage and the secret of the run (state.secret_file)"
            )));
        }
        Ok(self.target.iter().filter_map(|name| series?.linear_model(name)).collect())
    }

    /// Targets must be released or be signals of moments.
    fn parse_targets(
        &self,
        original: &OriginalData,
        shapes: &[GroupShape],
        is_of_moments: impl Fn(&String) -> bool,
    ) -> Result<Vec<LearningTarget>, Failure> {
        let of_shape = |shape: &GroupShape, a: usize| {
            [&shape.quasi, &shape.sensitive, &shape.insensitive].into_iter().any(|role| role.contains(&a))
        };
        let leaves = |a: usize| shapes.iter().any(|shape| of_shape(shape, a));
        let of = |text: &String| {
            LearningTarget::parse(text, original, leaves).map_err(|error| Failure::Usage(anyhow!(error)))
        };
        let in_groups = |text: &&String| !is_of_moments(text) || original.schema.position(text).is_some_and(&leaves);
        self.target.iter().filter(in_groups).map(of).collect()
    }

    /// Empty means all.
    fn parse_features(&self, original: &OriginalData) -> Result<Vec<usize>, Failure> {
        let of = |name: &String| {
            let found = original.schema.position(name);
            found.ok_or_else(|| Failure::Usage(anyhow!("--feature {name}: no such attribute; name one of the schema")))
        };
        self.feature.iter().map(of).collect()
    }
}

fn format_learning(learning: &[LearningScores]) -> String {
    let mut text = String::new();
    for of in learning {
        let errors = |scores: &PredictionScores| match &scores.errors {
            Some(errors) => [percent(errors.false_positives), percent(errors.false_negatives)],
            None => [String::new(), String::new()],
        };
        let row = |name: &str, scores: Option<&PredictionScores>| -> Vec<String> {
            let Some(scores) = scores else {
                let nothing = [name, "no training data", "", "", "", "", ""];
                return nothing.map(str::to_owned).into();
            };
            let own = [
                name.to_owned(),
                number(scores.rows),
                percent(scores.accuracy),
                percent(scores.balanced_accuracy),
                format!("{:.3}", scores.auc),
            ];
            own.into_iter().chain(errors(scores)).collect()
        };
        let mut rows = vec![
            row("before, all attributes", of.whole.as_ref()),
            row("before, those of the group", of.before.as_ref()),
            row("after", of.after.as_ref()),
        ];
        if let (Some(before), Some(after)) = (&of.before, &of.after) {
            let ratio = |after: f64, before: f64| format!("{:.3}", after / before.max(1e-9));
            rows.push(vec![
                "after / before".to_owned(),
                String::new(),
                ratio(after.accuracy, before.accuracy),
                ratio(after.balanced_accuracy, before.balanced_accuracy),
                ratio(after.auc, before.auc),
                String::new(),
                String::new(),
            ]);
        }
        let by =
            if of.features.is_empty() { "no attribute (released alone)".to_owned() } else { of.features.join(", ") };
        text += &format!("\n{} ({} classes: {}) by {by}\n", of.target, of.classes, of.classes_are);
        text += &aligned_table(
            &["trained on", "rows", "accuracy", "balanced", "AUC", "false positives", "false negatives"],
            &rows,
        );
        let tested = counted(of.tested, "record");
        text += &format!("tested on {tested}, held out by {}; majority class: {}\n", of.split_by, percent(of.majority));
        text += &format_coefficients(&of.coefficients);
        if of.leaks {
            text += "no lineage: training includes lines of held-out records, so the accuracy after the release is overstated\n";
        }
    }
    text
}

/// The JSON report has all of them.
const PRINTED_COEFFICIENTS: usize = 12;

fn format_coefficients(all: &[LearnedWeight]) -> String {
    let most = |of: &LearnedWeight| of.before.or(of.whole).unwrap_or(0.0).max(of.after.unwrap_or(0.0));
    let mut sorted: Vec<&LearnedWeight> = all.iter().filter(|of| most(of) > 0.0).collect();
    sorted.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let cell = |weight: Option<f64>| weight.map_or(String::new(), |weight| format!("{weight:.1}"));
    let row = |of: &&LearnedWeight| vec![of.attribute.clone(), cell(of.whole), cell(of.before), cell(of.after)];
    let rows: Vec<Vec<String>> = sorted.iter().take(PRINTED_COEFFICIENTS).map(row).collect();
    if rows.is_empty() { String::new() } else { aligned_table(&["weight", "before, all", "before", "after"], &rows) }
}

fn format_evaluation_report(report: &EvaluationReport) -> String {
    let figures = report.usefulness.rows();
    let mut text = if figures.is_empty() {
        "people and records represented: not computable without --lineage and, for series, the secret of the run (state.secret_file)\n".to_owned()
    } else {
        aligned_table(&UsefulnessByForm::HEADS, &figures) + &report.usefulness.unreadable_note()
    };
    if let Some(series) = &report.series {
        text += &format!("\n{}", format_series_quality(series));
    }
    text += &moment_models::format_moment_models(&report.models);
    if let Some(fragments) = &report.fragments {
        text += &format!("\n{}", format_fragment_quality(fragments));
    }
    text
}

fn format_series_quality(series: &SeriesQuality) -> String {
    let mut text = aligned_table(&SIGNAL_HEADS, &signal_rows(series, str::to_owned));
    text.extend(moments_note(series).map(|note| format!("{note}\n")));
    if !series.contrasts.is_empty() {
        text += &format!("\n{}", aligned_table(&CONTRAST_HEADS, &contrast_rows(series, str::to_owned)));
        if let Some(error) = series.contrast_error() {
            text += &format!("error of a difference ÷ its sampling error, median: {error:.2}\n");
        }
    }
    text
}

fn format_fragment_quality(evaluation: &FragmentEvaluation) -> String {
    let ReleaseQuality { records, lines, nothing_released, .. } = evaluation.quality;
    let quality = &evaluation.quality;
    let mut text = format!(
        "{} before ({} more could not be read); {} after, in {}\n",
        counted(records, "record"),
        number(evaluation.rejected),
        counted(lines, "line"),
        counted(quality.groups.len() as u64, "group")
    );
    if let Some(share) = nothing_released {
        text += &format!("no line released for {} of the records\n", percent(share));
    }
    text += "\n";
    text += &aligned_table(&["utility", "of the lines", "of all records"], &evaluation.worth_rows().map(Vec::from));
    let rows: Vec<Vec<String>> = evaluation
        .queries
        .iter()
        .map(|q| {
            vec![
                format!("range queries over {}", counted(q.attributes as u64, "attribute")),
                percent(q.median),
                percent(q.mean),
            ]
        })
        .collect();
    text += "\n";
    text += &aligned_table(&["error of counts", "median", "mean"], &rows);
    let counted = evaluation.risk.first().map_or("lines", |risk| risk.counted);
    text += &format!("\nrisk, classes counted in {counted}, k = {}\n", evaluation.k);
    text += &aligned_table(
        &["group", "lines", "classes", "smallest", "in a batch", "highest", "mean", "below k", "unique before"],
        &evaluation.risk_rows(str::to_owned),
    );
    text += "\n";
    text += &aligned_table(
        &FragmentEvaluation::ATTRIBUTE_HEADS,
        &evaluation.attribute_rows(str::to_owned).collect::<Vec<_>>(),
    );
    text + &format_learning(&evaluation.learning)
}
