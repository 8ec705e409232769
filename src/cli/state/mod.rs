//! `throng state`.

mod archived;
mod inspect;
mod verify;

use super::outcome::Failure;
use crate::config::{self, Config, Secret};
use crate::daemon::state::directory::StateError;
use crate::telemetry::silence_panic_payloads;
use anyhow::anyhow;
use clap::Subcommand;
use std::path::{Path, PathBuf};

/// What is done about a state directory.
#[derive(Debug, Subcommand)]
pub enum StateArgs {
    /// Print what a state holds, in figures: batches, positions, what became of records, memories and their bytes
    Inspect(inspect::InspectArgs),
    /// Open and read every value of a state, and ask whether they fit together and belong to this configuration
    Verify(verify::VerifyArgs),
    /// Write a state to one file, as sealed as it is and without its secret, for a backup or another machine
    Export(archived::ExportArgs),
    /// Make a state directory of such a file
    Import(archived::ImportArgs),
}

/// The configuration that names the state.
#[derive(Debug, clap::Args)]
struct Named {
    /// The configuration that the state belongs to: `state.path`, its secret, its schema
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

impl Named {
    /// The configuration, and its name in messages.
    fn load(&self) -> Result<(Config, String), Failure> {
        Ok((config::load(&self.config, std::env::vars())?, self.config.display().to_string()))
    }
}

/// The secret that a configuration names; none where the state directory keeps its own.
fn secret(config: &Config) -> Option<&[u8]> {
    config.secret.as_ref().map(Secret::expose)
}

/// A state that cannot be opened, or fails.
fn failed(error: StateError) -> Failure {
    if let StateError::Locked(path) = &error {
        return Failure::Running(anyhow!(
            "state directory {} is in use by a running throng (stop it first; its figures are on its status page meanwhile)",
            path.display()
        ));
    }
    if error.is_refusal() { Failure::Usage(error.into()) } else { Failure::Running(error.into()) }
}

/// The length of a file, or of all files of a folder, for a progress bar; 0 where nobody says.
fn bytes_below(path: &Path) -> u64 {
    let Ok(about) = path.metadata() else { return 0 };
    if about.is_file() {
        return about.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| bytes_below(&entry.path())).sum()
}

/// Runs `throng state`.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: &StateArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    match args {
        StateArgs::Inspect(args) => inspect::run(args),
        StateArgs::Verify(args) => verify::run(args),
        StateArgs::Export(args) => archived::export(args),
        StateArgs::Import(args) => archived::import(args),
    }
}
