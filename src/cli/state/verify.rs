//! `throng state verify`.

use super::named::{Named, failed, secret};
use crate::cli::outcome::Failure;
use crate::cli::progress::bar_of;
use crate::daemon::engine::assemble::ledger;
use crate::daemon::state::store::Store;
use crate::daemon::state::store::examine::Examined;
use crate::daemon::state::store::kinds::UNKNOWN;
use crate::start::checked::Checked;
use anyhow::anyhow;
use indicatif::HumanCount;
use serde_json::json;
use std::collections::BTreeMap;

/// Open and read every value of a state, and ask whether they fit together
///
/// Nothing is changed. What is found is counted by kind; no value and no person is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 sound · 1 damaged, or in use · 2 no state, another secret or format")]
pub struct VerifyArgs {
    #[command(flatten)]
    named: Named,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `throng state verify`.
///
/// # Errors
/// [`Failure::Running`] where something is damaged; see [`Failure`].
pub fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let (config, file) = args.named.load()?;
    let checked = Checked::new(config, &file)?;
    let path = &checked.config.state.path;
    let (mut store, _) = Store::existing(path, secret(&checked.config)).map_err(failed)?;
    let bar = bar_of("{spinner} {bytes} of about {total_bytes} read {bar:30} {elapsed}", store.bytes());
    let kinds = store.examine(|bytes| bar.inc(bytes)).map_err(failed)?;
    bar.finish_and_clear();
    let mut found = damages(&kinds);
    if found.is_empty() {
        let mut ledger = ledger(&checked);
        match store.load(&mut ledger) {
            Ok(recovered) => found = recovered.contradictions(&checked.schema),
            Err(error) if error.is_damage() => found.push(error.to_string()),
            Err(error) => return Err(failed(error)),
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
            println!("{}: every value opens, is what its key says, and they fit together", path.display());
        }
        return Ok(());
    }
    Err(Failure::Running(anyhow!(
        "state directory {} is damaged: {} (restore it from a backup; of a job over files a new directory forgets what has been released)",
        path.display(),
        found.join("; ")
    )))
}

/// A sentence for each kind of damage.
fn damages(kinds: &BTreeMap<&'static str, Examined>) -> Vec<String> {
    let mut found = Vec::new();
    for (kind, counted) in kinds {
        if *kind == UNKNOWN {
            found.push(format!("{} values have keys that no throng of this format writes", counted.values));
            continue;
        }
        if counted.sealed_otherwise > 0 {
            found.push(format!(
                "{} of {} values of kind `{kind}` do not open",
                counted.sealed_otherwise, counted.values
            ));
        }
        if counted.unreadable > 0 {
            found.push(format!("{} of {} values of kind `{kind}` cannot be read", counted.unreadable, counted.values));
        }
    }
    found
}
