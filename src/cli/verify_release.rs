//! `throng verify-release`.

use super::json;
use super::measured::{named_policy, table};
use super::outcome::Failure;
use super::text::{counted, number};
use crate::evaluation::verification::{Broken, Recount, recount};
use crate::telemetry::silence_panic_payloads;
use anyhow::anyhow;
use std::path::PathBuf;

/// Findings that are printed; `--json` has more.
const SHOWN: usize = 20;

/// Recount a release without the daemon: its form, and its crowds
///
/// Reads what left by the configuration that made it, and checks from the bytes alone: attributes and their order, every cell against
/// types and hierarchies, the crowd of every class and of every sensitive value. The records before are not needed. No value
/// of the data is printed: findings are a file and a line.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "With --lineage (the file of `throng run --lineage`) people are counted instead of lines, batches are told apart, and\nso are checked too: crowds inside batches, lines of one person, the order of lines, pairs that counting forces.\n\nExit codes: 0 nothing is broken · 1 a file cannot be read · 2 bad usage or configuration · 4 a promise is broken"
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
    let found = recount(&config, &schema, &shapes, &args.released, args.lineage.as_deref())?;
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
    let mut text = format!("crowds in {}: {asked}\n\n{}", found.counted, table(&heads, &rows));
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

fn line(broken: &Broken) -> String {
    let attribute = broken.attribute.as_ref().map_or(String::new(), |name| format!(" ({name})"));
    let counts = match (broken.found, broken.asked) {
        (Some(found), Some(asked)) => format!(": {} of {}", number(found), number(asked)),
        _ => String::new(),
    };
    format!("  {}:{}: {}{attribute}{counts}\n", broken.file, broken.line, broken.promise)
}
