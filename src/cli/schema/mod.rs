//! `throng schema`: commands for record schemas.

pub mod infer;

use super::outcome::Failure;
use clap::Subcommand;

/// Commands for record schemas.
#[derive(Debug, Subcommand)]
pub enum SchemaArgs {
    /// Propose a record schema for undocumented records
    Infer(infer::InferArgs),
}

/// Runs `throng schema`.
pub fn run(args: &SchemaArgs) -> Result<(), Failure> {
    match args {
        SchemaArgs::Infer(args) => infer::run(args),
    }
}
