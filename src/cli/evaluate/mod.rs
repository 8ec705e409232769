//! `throng evaluate`.

mod models;
mod page;
mod report;

use crate::anonymity::planner::GroupShape;
use crate::anonymity::series::Terms;
use crate::cli::json;
use crate::cli::measured::{Measured, Named, table};
use crate::cli::outcome::Failure;
use crate::cli::progress::spinner;
use crate::cli::text::{counted, number, percent};
use crate::cli::written::{refuse_overwriting, unwritable};
use crate::config::{Cohort, Config, Series, Used};
use crate::evaluation::learning::{Coefficient, Learning, Scores, Target, learn};
use crate::evaluation::original::Original;
use crate::evaluation::quality::{Quality, quality};
use crate::evaluation::queries::errors;
use crate::evaluation::risk::risks;
use crate::evaluation::series::{Evidence, MomentModel, SeriesQuality, of_fragments};
use crate::io::file::whole;
use crate::start::checked::policy_files;
use crate::start::series::series_terms;
use crate::telemetry::silence_panic_payloads;
use anyhow::anyhow;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use report::{
    CONTRAST_HEADS, Evaluation, Report, SIGNAL_HEADS, UsefulnessByForm, contrast_rows, moments_note, signal_rows,
};
use std::path::PathBuf;
use throng_core::values::schema::Schema;

/// Measure a release from outside: what it is worth, and how far its lines stand out
///
/// Reads the records before and the lines after, by the configuration that made them. Prints measures of utility (loss, exact
/// cells, pairwise information, data score, distortion, errors of range queries) and of risk (prosecutor, marketer, uniqueness
/// before and after). No value of the data is printed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "With --lineage (the file of `throng run --lineage`) people are counted instead of lines, inside batches too,\nfalsified values are found, and records of which nothing left are counted.\n\nExit codes: 0 done · 1 a file cannot be read · 2 bad usage or configuration"
)]
pub struct EvaluateArgs {
    /// The records before: CSV, NDJSON or Parquet, by its extension or `source.format`
    #[arg(value_name = "ORIGINAL")]
    original: PathBuf,
    /// What left: the `sink.path` of the run. Of several groups the files beside it with the name of the group before the extension
    #[arg(value_name = "RELEASED")]
    released: PathBuf,
    /// The configuration that made it
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Which line came from which record
    #[arg(long, value_name = "FILE")]
    lineage: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Write everything as JSON to a file
    #[arg(long, value_name = "REPORT.json")]
    report: Option<PathBuf>,
    /// Write everything as a self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Range queries of each width
    #[arg(long, value_name = "N", default_value_t = 200)]
    queries: usize,
    /// Learn this column (logistic regression) from the records before and from the lines after, and test both on records that
    /// are held out; `any(disease_*) = DOID:3393` asks whether one of several columns has a value. Of a series with moments: the linear
    /// model of this signal by the others, from moments and from the records before. May be given more than once
    #[arg(long, value_name = "COLUMN")]
    target: Vec<String>,
    /// Learn by these columns alone; may be given more than once (default: all that leave)
    #[arg(long, value_name = "COLUMN", requires = "target")]
    feature: Vec<String>,
    /// Fixes the queries, and who is held out
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

/// Runs `throng evaluate`.
pub fn run(args: &EvaluateArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    let named = Named {
        original: &args.original,
        released: &args.released,
        config: &args.config,
        lineage: args.lineage.as_deref(),
    };
    let mut written: Vec<Used> = args.report.iter().map(|path| Used::file("the report", path)).collect();
    written.extend(args.html.iter().map(|path| Used::file("--html", path)));
    refuse_overwriting(&written, &named.read_files())?;
    if let Some(path) = &args.report {
        whole::check(path).map_err(|error| unwritable("the report", path, error))?;
    }
    if let Some(path) = &args.html {
        whole::check(path).map_err(|error| unwritable("the page", path, error))?;
    }
    let Measured { config, original, facts, shapes, groups, series } = named.read()?;
    let files = policy_files(&config, &args.config.display().to_string());
    refuse_overwriting(&written, &[config.files_written(), files].concat())?;
    let k = config.privacy.crowd();
    let mut dice = ChaCha8Rng::seed_from_u64(args.seed);
    let features = args.features(&original)?;
    let is_feature = |attribute: usize| features.is_empty() || features.contains(&attribute);
    let models = args.models(&config, series.as_ref())?;
    let is_of_moments = |name: &String| models.iter().any(|model| model.target == *name);
    let learning = args.targets(&original, &shapes, is_of_moments)?.into_iter().filter_map(|target| {
        let bar = spinner("{spinner} learning {msg}");
        bar.set_message(target.name().to_owned());
        let learned = learn(&original, &facts, &groups, &target, is_feature, args.seed);
        bar.finish_and_clear();
        learned
    });
    let learning = learning.collect();
    let fragments = config.release.fragments.then(|| Evaluation {
        k,
        rejected: original.rejected,
        quality: quality(&original, &facts, &shapes, &groups),
        risk: risks(&original, &shapes, &groups, k),
        queries: errors(&original, &facts, &groups, args.queries, &mut dice),
        learning,
    });
    let usefulness = UsefulnessByForm {
        series: series.as_ref().map(Evidence::usefulness),
        fragments: fragments.as_ref().and_then(|_| {
            let daily = daily_terms(&config, &original.schema);
            of_fragments(&original, &groups, daily.as_ref())
        }),
    };
    let report = Report { usefulness, series: series.as_ref().map(Evidence::quality), models, fragments };
    let json = json::pretty(&report)?;
    if let Some(path) = &args.report {
        whole::write(path, json.as_bytes()).map_err(|error| unwritable("the report", path, error))?;
    }
    if let Some(path) = &args.html {
        let name = args.released.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let charts = series.as_ref().map(Evidence::charts).unwrap_or_default();
        let page = page::render(&report, &charts, &name, chrono::Utc::now());
        whole::write(path, page.as_bytes()).map_err(|error| unwritable("the page", path, error))?;
    }
    if args.json {
        println!("{json}");
    } else {
        print!("{}", words(&report));
    }
    Ok(())
}

/// Terms of a series of days over all numbers of the schema; none without an event time, a subject or a number.
fn daily_terms(config: &Config, schema: &Schema) -> Option<Terms> {
    let cohort = Cohort { strata: Vec::new(), ..config.cohort.clone() };
    let series = vec![Series { name: "daily".to_owned(), ..Series::default() }];
    series_terms(&Config { series, cohort, ..config.clone() }, schema, "").ok().flatten()
}

impl EvaluateArgs {
    /// The linear models of targets that are signals of series with moments.
    fn models(&self, config: &Config, series: Option<&Evidence>) -> Result<Vec<MomentModel>, Failure> {
        let has_moments = config.series.iter().any(|series| series.moments.is_some());
        if !self.target.is_empty() && has_moments && series.is_none() {
            return Err(Failure::Usage(anyhow!(
                "--target of a series needs --lineage, and the secret of the run (state.secret_file)"
            )));
        }
        Ok(self.target.iter().filter_map(|name| series?.model(name)).collect())
    }

    /// The targets that are to be learned, of attributes that leave in some group. Signals of moments need not.
    fn targets(
        &self,
        original: &Original,
        shapes: &[GroupShape],
        is_of_moments: impl Fn(&String) -> bool,
    ) -> Result<Vec<Target>, Failure> {
        let of_shape = |shape: &GroupShape, a: usize| {
            [&shape.quasi, &shape.sensitive, &shape.insensitive].into_iter().any(|role| role.contains(&a))
        };
        let leaves = |a: usize| shapes.iter().any(|shape| of_shape(shape, a));
        let of = |text: &String| Target::parse(text, original, leaves).map_err(|error| Failure::Usage(anyhow!(error)));
        let in_groups = |text: &&String| !is_of_moments(text) || original.schema.position(text).is_some_and(&leaves);
        self.target.iter().filter(in_groups).map(of).collect()
    }

    /// The attributes that may predict; all where none is named.
    fn features(&self, original: &Original) -> Result<Vec<usize>, Failure> {
        let of = |name: &String| {
            let found = original.schema.position(name);
            found.ok_or_else(|| Failure::Usage(anyhow!("--feature {name}: no such attribute; name one of the schema")))
        };
        self.feature.iter().map(of).collect()
    }
}

/// What was learned, as people read it.
fn learned(learning: &[Learning]) -> String {
    let mut text = String::new();
    for of in learning {
        let errors = |scores: &Scores| match &scores.errors {
            Some(errors) => [percent(errors.false_positives), percent(errors.false_negatives)],
            None => [String::new(), String::new()],
        };
        let row = |name: &str, scores: Option<&Scores>| -> Vec<String> {
            let Some(scores) = scores else {
                let nothing = [name, "nothing to learn from", "", "", "", "", ""];
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
        let by = if of.features.is_empty() { "nothing: it leaves alone".to_owned() } else { of.features.join(", ") };
        text += &format!("\n{} ({} classes: {}) by {by}\n", of.target, of.classes, of.classes_are);
        text +=
            &table(&["learned", "from", "accuracy", "balanced", "AUC", "false positives", "false negatives"], &rows);
        let tested = counted(of.tested, "record");
        text +=
            &format!("tested on {tested}, held out by {}; always the same: {}\n", of.split_by, percent(of.majority));
        text += &coefficients(&of.coefficients);
        if of.leaks {
            text += "no lineage: lines of who is held out are learned from as well, so that after looks better than it is\n";
        }
    }
    text
}

/// Attributes with a weight that are printed; the JSON report has all.
const PRINTED_COEFFICIENTS: usize = 12;

/// The weights of attributes as people read them, the largest first.
fn coefficients(all: &[Coefficient]) -> String {
    let most = |of: &Coefficient| of.before.or(of.whole).unwrap_or(0.0).max(of.after.unwrap_or(0.0));
    let mut sorted: Vec<&Coefficient> = all.iter().filter(|of| most(of) > 0.0).collect();
    sorted.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let cell = |weight: Option<f64>| weight.map_or(String::new(), |weight| format!("{weight:.1}"));
    let row = |of: &&Coefficient| vec![of.attribute.clone(), cell(of.whole), cell(of.before), cell(of.after)];
    let rows: Vec<Vec<String>> = sorted.iter().take(PRINTED_COEFFICIENTS).map(row).collect();
    if rows.is_empty() { String::new() } else { table(&["weight", "before, all", "before", "after"], &rows) }
}

/// The measures as people read them, the figures of every form first.
fn words(report: &Report) -> String {
    let figures = report.usefulness.rows();
    let mut text = if figures.is_empty() {
        "people and records represented: they need --lineage, and for series the secret of the run (state.secret_file)\n".to_owned()
    } else {
        table(&UsefulnessByForm::HEADS, &figures) + &report.usefulness.unreadable_note()
    };
    if let Some(series) = &report.series {
        text += &format!("\n{}", words_of_series(series));
    }
    text += &models::words(&report.models);
    if let Some(fragments) = &report.fragments {
        text += &format!("\n{}", words_of_fragments(fragments));
    }
    text
}

/// The measures of series.
fn words_of_series(series: &SeriesQuality) -> String {
    let mut text = table(&SIGNAL_HEADS, &signal_rows(series, str::to_owned));
    text.extend(moments_note(series).map(|note| format!("{note}\n")));
    if !series.contrasts.is_empty() {
        text += &format!("\n{}", table(&CONTRAST_HEADS, &contrast_rows(series, str::to_owned)));
        if let Some(error) = series.contrast_error() {
            text += &format!("error of a difference ÷ its sampling error, median: {error:.2}\n");
        }
    }
    text
}

/// The measures of fragments.
fn words_of_fragments(evaluation: &Evaluation) -> String {
    let Quality { records, lines, nothing_released, .. } = evaluation.quality;
    let quality = &evaluation.quality;
    let mut text = format!(
        "{} before ({} more could not be read); {} after, in {}\n",
        counted(records, "record"),
        number(evaluation.rejected),
        counted(lines, "line"),
        counted(quality.groups.len() as u64, "group")
    );
    if let Some(share) = nothing_released {
        text += &format!("nothing left of {} of the records\n", percent(share));
    }
    text += "\n";
    text += &table(&["worth", "of the lines", "of all records"], &evaluation.worth_rows().map(Vec::from));
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
    text += &table(&["error of counts", "median", "mean"], &rows);
    let counted = evaluation.risk.first().map_or("lines", |risk| risk.counted);
    text += &format!("\nrisk, classes counted in {counted}, k = {}\n", evaluation.k);
    text += &table(
        &["group", "lines", "classes", "smallest", "in a batch", "highest", "mean", "below k", "alone before"],
        &evaluation.risk_rows(str::to_owned),
    );
    text += "\n";
    text += &table(&Evaluation::ATTRIBUTE_HEADS, &evaluation.attribute_rows(str::to_owned).collect::<Vec<_>>());
    text + &learned(&evaluation.learning)
}
