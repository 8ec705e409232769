//! `throng verify-release`.

use super::json;
use super::measured::{named_policy, read_original, subjects_key, table};
use super::outcome::Failure;
use super::text::{counted, number};
use crate::config::Config;
use crate::evaluation::original::Original;
use crate::evaluation::verification::{Broken, Recount, SeriesCount, recount};
use crate::start::series::series_terms;
use crate::telemetry::silence_panic_payloads;
use anyhow::anyhow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use throng_core::values::schema::Schema;

/// Findings that are printed; `--json` has more.
const SHOWN: usize = 20;

/// Recount a release without the daemon: its form, and its crowds
///
/// Reads what left by the configuration that made it, and checks from the bytes alone: attributes and their order, every cell against
/// types and hierarchies, the crowd of every class and of every sensitive value; of series rounding, roll-ups, and that no bucket leaves
/// twice. No value of the data is printed: findings are a file and a line.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "With --lineage (the file of `throng run --lineage`) people are counted instead of lines, batches are told apart, and\nso are checked too: crowds inside batches, lines of one person, the order of lines, pairs that counting forces; of series\ncohorts and contributor sets. With --original too: the values of series.\n\nExit codes: 0 nothing is broken · 1 a file cannot be read · 2 bad usage or configuration · 4 a promise is broken"
)]
pub struct VerifyReleaseArgs {
    /// What left: the `sink.path` of the run, or of one group a file, a directory or a pattern of its files. Of several groups the
    /// files beside it with the name of the group before the extension
    #[arg(value_name = "RELEASED")]
    released: PathBuf,
    /// The configuration that made it
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Which line came from which record
    #[arg(long, value_name = "FILE")]
    lineage: Option<PathBuf>,
    /// The records before: the values of series are recounted from them
    #[arg(long, value_name = "FILE", requires = "lineage")]
    original: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `throng verify-release`.
///
/// # Errors
/// See [`Failure`]; a broken promise is [`Failure::Found`].
pub fn run(args: &VerifyReleaseArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    let (config, schema, shapes) = named_policy(&args.config, &[("SINK", &args.released)], args.lineage.as_deref())?;
    let file = args.config.display().to_string();
    let terms = series_terms(&config, &schema, &file)?;
    let original = match (&args.original, &terms) {
        (Some(path), Some(_)) => Some(original(&config, &schema, &file, path)?),
        (Some(path), None) => {
            return Err(Failure::Usage(anyhow!(
                "--original {} is for series, and {file} has none (leave the option out)",
                path.display()
            )));
        }
        (None, _) => None,
    };
    let policy = (&config, schema.as_ref(), shapes.as_slice());
    let found = recount(policy, &args.released, args.lineage.as_deref(), terms.as_ref(), original.as_ref())?;
    if args.json {
        println!("{}", json::pretty(&found)?);
    } else {
        print!("{}", words(&found));
    }
    if found.kept {
        return Ok(());
    }
    let broken = counted(found.broken_in_all, "broken promise");
    Err(Failure::Found(anyhow!("{broken} in {}", args.released.display())))
}

/// Reads the records before, with the secret of the run.
fn original(config: &Config, schema: &Arc<Schema>, file: &str, path: &Path) -> Result<Original, Failure> {
    let key = subjects_key(config).ok_or_else(|| {
        Failure::Usage(anyhow!(
            "--original needs the secret of the run, and {file} names none (set state.secret_file for the run and here)"
        ))
    })?;
    Ok(read_original(config, schema, file, path, Some(&key))?)
}

/// The recount as people read it.
fn words(found: &Recount) -> String {
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
    let asked = format!("{} asked for in every batch", number(found.crowd as u64));
    let mut text = format!("crowds in {}: {asked}\n", found.counted);
    if !rows.is_empty() {
        text += &format!("\n{}", table(&heads, &rows));
    }
    if !found.series.is_empty() {
        text += &format!("\n{}", table(&SERIES_HEADS, &found.series.iter().map(series_row).collect::<Vec<_>>()));
    }
    if found.kept {
        text += "\nnothing of what was checked is broken\n";
    } else {
        text += &format!("\n{}:\n", counted(found.broken_in_all, "broken promise"));
        found.broken.iter().take(SHOWN).for_each(|broken| text += &line(broken));
        if found.broken_in_all > SHOWN as u64 {
            text += &format!("  … and {} more\n", number(found.broken_in_all - SHOWN as u64));
        }
    }
    text += "\nnot checked:\n";
    found.not_checked.iter().for_each(|what| text += &format!("  {what}\n"));
    text
}

const SERIES_HEADS: [&str; 5] = ["series", "rows", "buckets", "smallest set", "fewest present"];

fn series_row(of: &SeriesCount) -> Vec<String> {
    let present = of.fewest_present.map_or_else(|| "?".to_owned(), number);
    vec![of.series.clone(), number(of.rows), number(of.buckets), number(of.smallest_set), present]
}

fn line(broken: &Broken) -> String {
    let attribute = broken.attribute.as_ref().map_or(String::new(), |name| format!(" ({name})"));
    let counts = match (broken.found, broken.asked) {
        (Some(found), Some(asked)) => format!(": {} of {}", number(found), number(asked)),
        _ => String::new(),
    };
    format!("  {}:{}: {}{attribute}{counts}\n", broken.file, broken.line, broken.promise)
}
