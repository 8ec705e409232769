//! `throng forget`: erases subjects from a state.

use super::outcome::Failure;
use super::run::begin_logging;
use super::text_format::{counted, wrap_text};
use super::{daemon_client, json};
use crate::config::{self, Config, TelemetryConfig};
use crate::daemon::erasure::{
    ErasureError, ErasureReceipt, MAX_SUBJECTS, NamedSubjects, RemovedEntries, erase_stopped_state,
};
use crate::daemon::state::directory::StateError;
use crate::start::checked_config::CheckedConfig;
use crate::telemetry::printable;
use anyhow::{Context, anyhow};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zeroize::Zeroizing;

/// Erase subjects from the state: window, model, sample, ledger, withheld lines, profiles
///
/// If no daemon uses the state directory, this command rewrites it. Otherwise it sends the request to the running
/// daemon at `telemetry.listen`, with the token of `telemetry.token_file`, and the daemon erases between two batches.
/// After a crash at any moment, the state is the old or the new one. The receipt lists the removed data, the data
/// that stays, and the data that cannot be recalled. The receipt of an unknown subject has the same form, with zeros.
/// A repeated request does no harm.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Arguments are visible in process lists and in the shell history: `--from -` reads the subjects from standard input instead.\nErase people at the source first (topic, file, profiles): data that is read again is stored again.\nExit codes: 0 done, also for unknown subjects · 1 failed · 2 bad usage or configuration"
)]
pub struct ForgetArgs {
    /// Configuration of the daemon
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Subjects to erase: values of the subject attribute, spelled as in a CSV field
    #[arg(value_name = "SUBJECT")]
    subjects: Vec<String>,
    /// Read subjects from a file, one per line; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Show the data to erase, and erase nothing
    #[arg(long)]
    dry_run: bool,
    /// Send the request to the running daemon at this address [default: telemetry.listen, if a daemon uses the state]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Print the receipt as JSON
    #[arg(long)]
    json: bool,
}

const MAX_SUBJECT_LIST_BYTES: u64 = 16 << 20;
/// Longer than the daemon's time limit.
const FORGET_TIMEOUT: Duration = Duration::from_secs(31 * 60);

/// Runs `throng forget`.
pub fn run(args: &ForgetArgs) -> Result<(), Failure> {
    let subjects = collect_subjects(args)?;
    let config = config::load(&args.config, std::env::vars())?;
    begin_logging(&config)?;
    let named = NamedSubjects { subjects, dry_run: args.dry_run };
    let receipt = match &args.url {
        Some(url) => request_daemon_erasure(&config.telemetry, Some(url), &named)?,
        None => erase_or_request(config, &args.config, &named)?,
    };
    if args.json {
        println!("{}", json::pretty_json(&receipt)?);
    } else {
        print!("{}", format_receipt(&receipt));
    }
    Ok(())
}

fn collect_subjects(args: &ForgetArgs) -> Result<Vec<String>, Failure> {
    let mut subjects = args.subjects.clone();
    if let Some(path) = &args.from {
        let failed = |error: std::io::Error| {
            Failure::Usage(anyhow!("--from {}: {error}: name a readable file of UTF-8 text", path.display()))
        };
        let mut text = String::new();
        let read = if path == Path::new("-") {
            std::io::stdin().lock().take(MAX_SUBJECT_LIST_BYTES + 1).read_to_string(&mut text)
        } else {
            std::fs::File::open(path).and_then(|file| file.take(MAX_SUBJECT_LIST_BYTES + 1).read_to_string(&mut text))
        };
        if read.map_err(failed)? as u64 > MAX_SUBJECT_LIST_BYTES {
            return Err(Failure::Usage(anyhow!("--from {}: larger than 16 MiB: split it", path.display())));
        }
        subjects.extend(text.lines().filter(|line| !line.is_empty()).map(str::to_owned));
    }
    match subjects.len() {
        0 => Err(Failure::Usage(anyhow!("no subject is named: give a SUBJECT, or --from FILE"))),
        1..=MAX_SUBJECTS => Ok(subjects),
        many => Err(Failure::Usage(ErasureError::TooMany(many).into())),
    }
}

/// Sends the request if a daemon has locked the state.
fn erase_or_request(config: Config, file: &Path, named: &NamedSubjects) -> Result<ErasureReceipt, Failure> {
    let checked = CheckedConfig::new(config, &file.display().to_string())?;
    erase_stopped_state(&checked, named).or_else(|error| match error {
        ErasureError::State(StateError::Locked(_)) => request_daemon_erasure(&checked.config.telemetry, None, named),
        error if error.is_usage() => Err(Failure::Usage(error.into())),
        ErasureError::State(error) if error.is_refusal() => Err(Failure::Usage(error.into())),
        error => Err(Failure::Running(error.into())),
    })
}

fn request_daemon_erasure(
    telemetry: &TelemetryConfig,
    url: Option<&str>,
    named: &NamedSubjects,
) -> Result<ErasureReceipt, Failure> {
    let body = Zeroizing::new(serde_json::to_string(named).context("cannot serialize the request")?);
    let Some((url, status, text)) = daemon_client::post_to_daemon(telemetry, url, "/forget", &body, FORGET_TIMEOUT)?
    else {
        return Err(Failure::Usage(anyhow!(
            "a daemon uses the state, and an erasure request to it needs a token: set telemetry.token_file and restart the daemon, or stop it and retry"
        )));
    };
    let said = printable(&text);
    match status {
        200 => serde_json::from_str(&text).map_err(|_| {
            Failure::Running(anyhow!(
                "the answer of {url} is not a receipt: check that the address is that of the daemon"
            ))
        }),
        400 | 413 => Err(Failure::Usage(anyhow!("the daemon at {url} refused the request: {said}"))),
        401 | 403 => Err(Failure::Usage(anyhow!("the daemon at {url} rejected the token: {said}"))),
        404 => Err(Failure::Usage(anyhow!(
            "the daemon at {url} does not accept erasure requests: it was started without telemetry.token_file, or is another version"
        ))),
        _ => Err(Failure::Running(anyhow!("the daemon at {url} failed (status {status}): {said}"))),
    }
}

fn format_receipt(receipt: &ErasureReceipt) -> String {
    let RemovedEntries {
        window_rows,
        sample_rows,
        held_rows,
        supporters,
        said_lines,
        profiles,
        reference_counts,
        series_entries,
    } = receipt.removed;
    let what = if receipt.dry_run { "would be erased" } else { "erased" };
    let mut out = format!("{} {what}\n", counted(receipt.subjects, "subject"));
    for (count, of) in [
        (window_rows, "rows of the window, and their counts in the model"),
        (sample_rows, "rows of the planner's sample"),
        (held_rows, "held records and waiting lines"),
        (supporters, "entries of tenure and budgets"),
        (said_lines, "entries of the release log"),
        (profiles, "join profiles"),
        (reference_counts, "counts of the reference distributions"),
        (series_entries, "people, open buckets and cohort memberships of series"),
        (receipt.dropped_records, "held records, now counted as dropped"),
    ] {
        out.push_str(&format!("{count:>10}  {of}\n"));
    }
    for (title, lines) in
        [("next steps", &receipt.follows), ("kept", &receipt.kept), ("cannot be recalled", &receipt.not_recalled)]
    {
        out.push_str(&format!("{title}:\n"));
        for line in lines {
            out.push_str(&wrap_text("  - ", line));
            out.push('\n');
        }
    }
    out
}
