//! `throng schema`.

pub mod infer;

use super::outcome::Failure;
use clap::Subcommand;

/// What is done about record schemas.
#[derive(Debug, Subcommand)]
pub enum SchemaArgs {
    /// Propose a record schema for records that nobody has described
    Infer(infer::InferArgs),
}

/// Runs `throng schema`.
pub fn run(args: &SchemaArgs) -> Result<(), Failure> {
    match args {
        SchemaArgs::Infer(args) => infer::run(args),
    }
}
