//! `throng verify-release`.

use super::json;
use super::loaded_release::{aligned_table, load_release_policy, read_original, subject_digest_key};
use super::outcome::Failure;
use super::text_format::{counted, number};
use crate::config::Config;
use crate::evaluation::verification::{RecountViolation, ReleaseRecount, SeriesRowCounts, recount_release};
use crate::start::series_settings::series_terms;
use crate::telemetry::silence_panic_payloads;
use anyhow::anyhow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use throng_core::values::schema::Schema;
use throng_eval::original::OriginalData;

const MAX_PRINTED_FINDINGS: usize = 20;

/// Recount a release without the daemon: its form and its class sizes
///
/// Reads the release with the configuration of the run, and checks from the bytes alone: attributes and their order,
/// every cell against types and hierarchies, the size of every class, and the number of subjects behind every
/// sensitive value. For series: rounding, roll-ups, and that no bucket is released twice. No value of the data is
/// printed: findings are a file and a line.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "With --lineage (the file of `throng run --lineage`), people are counted instead of lines and batches are distinguished.\nAlso checked: class sizes per batch, lines per person, the order of lines, pairs forced by counting; for series, cohorts\nand contributor sets. With --original: also the values of series.\n\nExit codes: 0 no violations · 1 a file cannot be read · 2 bad usage or configuration · 4 violations found"
)]
pub struct VerifyReleaseArgs {
    /// Release: the `sink.path` of the run, or, for one group, a file, directory or pattern of its files. With
    /// several groups, also the files next to it with the group name before the extension
    #[arg(value_name = "RELEASED")]
    released: PathBuf,
    /// Configuration of the run
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Lineage, from record to output line
    #[arg(long, value_name = "FILE")]
    lineage: Option<PathBuf>,
    /// Original records, for recounting the values of series
    #[arg(long, value_name = "FILE", requires = "lineage")]
    original: Option<PathBuf>,
    /// Print the complete result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `throng verify-release`.
///
/// # Errors
/// See [`Failure`]; a violation is [`Failure::FindingAboveLimit`].
pub fn run(args: &VerifyReleaseArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    let (config, schema, shapes) =
        load_release_policy(&args.config, &[("SINK", &args.released)], args.lineage.as_deref())?;
    let file = args.config.display().to_string();
    let terms = series_terms(&config, &schema, &file)?;
    let original = match (&args.original, &terms) {
        (Some(path), Some(_)) => Some(read_keyed_original(&config, &schema, &file, path)?),
        (Some(path), None) => {
            return Err(Failure::Usage(anyhow!(
                "--original {}: needs a series, but {file} has none (remove the option)",
                path.display()
            )));
        }
        (None, _) => None,
    };
    let policy = (&config, schema.as_ref(), shapes.as_slice());
    let found = recount_release(policy, &args.released, args.lineage.as_deref(), terms.as_ref(), original.as_ref())?;
    if args.json {
        println!("{}", json::pretty_json(&found)?);
    } else {
        print!("{}", format_recount(&found));
    }
    if found.kept {
        return Ok(());
    }
    let broken = counted(found.broken_in_all, "violation");
    Err(Failure::FindingAboveLimit(anyhow!("{broken} in {}", args.released.display())))
}

fn read_keyed_original(
    config: &Config,
    schema: &Arc<Schema>,
    file: &str,
    path: &Path,
) -> Result<OriginalData, Failure> {
    let key = subject_digest_key(config).ok_or_else(|| {
        Failure::Usage(anyhow!(
            "--original needs the secret of the run, but {file} names none (set state.secret_file for the run and here)"
        ))
    })?;
    Ok(read_original(config, schema, file, path, Some(&key))?)
}

fn format_recount(found: &ReleaseRecount) -> String {
    let heads = ["group", "lines", "classes", "smallest", "in a batch"];
    let rows: Vec<Vec<String>> = found
        .groups
        .iter()
        .map(|group| {
            vec![
                group.group.clone(),
                number(group.lines),
                number(group.classes),
                number(group.smallest_class),
                group.smallest_class_in_batch.map_or_else(|| "?".to_owned(), number),
            ]
        })
        .collect();
    let required = number(found.crowd as u64);
    let mut text = format!("class sizes counted in {}: at least {required} required in every batch\n", found.counted);
    if !rows.is_empty() {
        text += &format!("\n{}", aligned_table(&heads, &rows));
    }
    if !found.series.is_empty() {
        text +=
            &format!("\n{}", aligned_table(&SERIES_HEADS, &found.series.iter().map(series_row).collect::<Vec<_>>()));
    }
    if found.kept {
        text += "\nno violations found\n";
    } else {
        text += &format!("\n{}:\n", counted(found.broken_in_all, "violation"));
        found.broken.iter().take(MAX_PRINTED_FINDINGS).for_each(|broken| text += &violation_line(broken));
        if found.broken_in_all > MAX_PRINTED_FINDINGS as u64 {
            text += &format!("  … and {} more\n", number(found.broken_in_all - MAX_PRINTED_FINDINGS as u64));
        }
    }
    text += "\nnot checked:\n";
    found.not_checked.iter().for_each(|what| text += &format!("  {what}\n"));
    text
}

const SERIES_HEADS: [&str; 5] = ["series", "rows", "buckets", "smallest set", "fewest present"];

fn series_row(of: &SeriesRowCounts) -> Vec<String> {
    let present = of.fewest_present.map_or_else(|| "?".to_owned(), number);
    vec![of.series.clone(), number(of.rows), number(of.buckets), number(of.smallest_set), present]
}

fn violation_line(broken: &RecountViolation) -> String {
    let attribute = broken.attribute.as_ref().map_or(String::new(), |name| format!(" ({name})"));
    let counts = match (broken.found, broken.asked) {
        (Some(found), Some(asked)) => format!(": {} of {}", number(found), number(asked)),
        _ => String::new(),
    };
    format!("  {}:{}: {}{attribute}{counts}\n", broken.file, broken.line, broken.promise)
}
