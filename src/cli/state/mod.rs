//! `throng state`: commands for state directories.

mod inspect;
mod state_selection;
mod verify;

use super::outcome::Failure;
use crate::telemetry::silence_panic_payloads;
use clap::Subcommand;

/// Commands for state directories.
#[derive(Debug, Subcommand)]
pub enum StateArgs {
    /// Print the figures of a state: batches, positions, outcome of the records, contents and their sizes
    Inspect(inspect::InspectArgs),
    /// Read every value of a state, and check the consistency of the values and their match with the configuration
    Verify(verify::VerifyArgs),
}

/// Runs `throng state`.
pub fn run(args: &StateArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    match args {
        StateArgs::Inspect(args) => inspect::run(args),
        StateArgs::Verify(args) => verify::run(args),
    }
}
