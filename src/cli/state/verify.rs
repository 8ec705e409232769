//! `throng state verify`.

use super::state_selection::{StateSelection, configured_secret, state_failure};
use crate::cli::outcome::Failure;
use crate::cli::progress::progress_bar;
use crate::daemon::engine::build::assemble::new_ledger;
use crate::daemon::state::store::StateStore;
use crate::daemon::state::store::examine::KindExamination;
use crate::daemon::state::store::value_kinds::UNKNOWN_KIND;
use crate::start::checked_config::CheckedConfig;
use anyhow::anyhow;
use indicatif::HumanCount;
use serde_json::json;
use std::collections::BTreeMap;

/// Read every value of a state, and check their consistency
///
/// Changes nothing. Counts the findings by kind, and prints no value and no subject.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 sound · 1 damaged, or in use · 2 no state, another secret or format")]
pub struct VerifyArgs {
    #[command(flatten)]
    named: StateSelection,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `throng state verify`.
///
/// # Errors
/// [`Failure::Running`] for a damaged state; see [`Failure`].
pub fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let (config, file) = args.named.load()?;
    let checked = CheckedConfig::new(config, &file)?;
    let path = &checked.config.state.path;
    let (mut store, _) = StateStore::open_existing(path, configured_secret(&checked.config)).map_err(state_failure)?;
    let bar = progress_bar("{spinner} {bytes} of about {total_bytes} read {bar:30} {elapsed}", store.bytes());
    let kinds = store.examine(|bytes| bar.inc(bytes)).map_err(state_failure)?;
    bar.finish_and_clear();
    let mut found = describe_damage(&kinds);
    if found.is_empty() {
        let mut ledger = new_ledger(&checked);
        match store.load(&mut ledger) {
            Ok(recovered) => found = recovered.contradictions(&checked.schema),
            Err(error) if error.is_damage() => found.push(error.to_string()),
            Err(error) => return Err(state_failure(error)),
        }
    }
    if args.json {
        println!("{:#}", json!({ "sound": found.is_empty(), "kinds": kinds, "found": found }));
    } else {
        for (kind, counted) in &kinds {
            println!(
                "{kind:<16} {:>12} values {:>16} bytes",
                HumanCount(counted.values).to_string(),
                HumanCount(counted.bytes).to_string()
            );
        }
    }
    if found.is_empty() {
        if !args.json {
            println!("{}: every value decrypts, matches its key and is consistent with the others", path.display());
        }
        return Ok(());
    }
    Err(Failure::Running(anyhow!(
        "state directory {} is damaged: {} (restore it from a backup; for a job over files, a new directory forgets the earlier releases)",
        path.display(),
        found.join("; ")
    )))
}

fn describe_damage(kinds: &BTreeMap<&'static str, KindExamination>) -> Vec<String> {
    let mut found = Vec::new();
    for (kind, counted) in kinds {
        if *kind == UNKNOWN_KIND {
            found.push(format!("{} values have keys that are unknown in this format", counted.values));
            continue;
        }
        if counted.sealed_otherwise > 0 {
            found.push(format!(
                "{} of {} values of kind `{kind}` cannot be decrypted",
                counted.sealed_otherwise, counted.values
            ));
        }
        if counted.unreadable > 0 {
            found.push(format!("{} of {} values of kind `{kind}` cannot be read", counted.unreadable, counted.values));
        }
    }
    found
}
