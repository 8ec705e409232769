//! `throng evaluate`.

use super::measured::{Measured, Named, option, table};
use super::outcome::Failure;
use super::text::{counted, number, percent};
use super::written::{refuse_overwriting, unwritable};
use crate::config::Used;
use crate::evaluation::quality::{Quality, quality};
use crate::evaluation::queries::{QueryErrors, errors};
use crate::evaluation::risk::{GroupRisk, risks};
use crate::io::file::whole;
use crate::telemetry::silence_panic_payloads;
use anyhow::Context;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::path::PathBuf;

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
    /// Range queries of each width
    #[arg(long, value_name = "N", default_value_t = 200)]
    queries: usize,
    /// Fixes the queries
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

/// Everything that is measured.
#[derive(Serialize)]
struct Evaluation {
    /// k of the configuration.
    k: usize,
    /// Records that could not be read.
    rejected: u64,
    quality: Quality,
    risk: Vec<GroupRisk>,
    queries: Vec<QueryErrors>,
}

/// Runs `throng evaluate`.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: &EvaluateArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    let named = Named {
        original: &args.original,
        released: &args.released,
        config: &args.config,
        lineage: option(args.lineage.as_ref()),
    };
    let written: Vec<Used> = args.report.iter().map(|path| Used::file("the report", path)).collect();
    refuse_overwriting(&written, &named.read_files())?;
    if let Some(path) = &args.report {
        whole::check(path).map_err(|error| unwritable("the report", path, error))?;
    }
    let Measured { config, original, facts, shapes, groups } = named.read()?;
    let k = config.privacy.crowd();
    let mut dice = ChaCha8Rng::seed_from_u64(args.seed);
    let evaluation = Evaluation {
        k,
        rejected: original.rejected,
        quality: quality(&original, &facts, &shapes, &groups),
        risk: risks(&original, &shapes, &groups, k),
        queries: errors(&original, &facts, &groups, args.queries, &mut dice),
    };
    let json = serde_json::to_string_pretty(&evaluation).context("the report has no JSON")?;
    if let Some(path) = &args.report {
        whole::write(path, json.as_bytes()).map_err(|error| unwritable("the report", path, error))?;
    }
    if args.json {
        println!("{json}");
    } else {
        print!("{}", words(&evaluation));
    }
    Ok(())
}

/// The measures as people read them.
fn words(evaluation: &Evaluation) -> String {
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
    let row = |name: &str, of_lines: String, of_all: String| vec![name.to_owned(), of_lines, of_all];
    let three = |value: f64| format!("{value:.3}");
    text += "\n";
    text += &table(
        &["worth", "of the lines", "of all records"],
        &[
            row("mean loss (0 best)", three(quality.loss), three(quality.loss_of_all)),
            row(
                "pairwise information (1 best)",
                three(quality.pairwise_information),
                three(quality.pairwise_information_of_all),
            ),
            row("exact cells", percent(quality.exact), String::new()),
            row("altered cells (distortion)", percent(quality.distortion), String::new()),
            row("data score, of the original's", String::new(), three(quality.data_score)),
        ],
    );
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
    let rows: Vec<Vec<String>> = evaluation
        .risk
        .iter()
        .zip(&quality.groups)
        .map(|(risk, group)| risk_row(risk, group.lines, group.classes))
        .collect();
    let counted = evaluation.risk.first().map_or("lines", |risk| risk.counted);
    text += &format!("\nrisk, classes counted in {counted}, k = {}\n", evaluation.k);
    text += &table(
        &["group", "lines", "classes", "smallest", "in a batch", "highest", "mean", "below k", "alone before"],
        &rows,
    );
    let rows: Vec<Vec<String>> = quality
        .attributes
        .iter()
        .map(|a| {
            let falsified = if a.falsified == 0 { String::new() } else { number(a.falsified) };
            vec![
                a.attribute.clone(),
                a.group.clone(),
                three(a.loss),
                three(a.loss_of_all),
                percent(a.exact),
                format!("{:.2}", a.bits_hidden),
                falsified,
            ]
        })
        .collect();
    text += "\n";
    text += &table(&["attribute", "group", "loss", "of all", "exact", "bits hidden", "falsified"], &rows);
    text
}

fn risk_row(risk: &GroupRisk, lines: u64, classes: u64) -> Vec<String> {
    vec![
        risk.group.clone(),
        number(lines),
        number(classes),
        number(risk.smallest_class),
        risk.smallest_class_in_batch.map_or_else(|| "?".to_owned(), number),
        percent(risk.prosecutor_highest),
        percent(risk.prosecutor_average),
        percent(risk.below_k),
        percent(risk.unique_before),
    ]
}
