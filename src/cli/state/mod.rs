//! `throng state`.

mod inspect;
mod named;
mod verify;

use super::outcome::Failure;
use crate::telemetry::silence_panic_payloads;
use clap::Subcommand;

/// What is done about a state directory.
#[derive(Debug, Subcommand)]
pub enum StateArgs {
    /// Print what a state holds, in figures: batches, positions, what became of records, memories and their bytes
    Inspect(inspect::InspectArgs),
    /// Open and read every value of a state, and ask whether they fit together and belong to this configuration
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
