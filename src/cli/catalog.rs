//! `throng catalog`.

use super::outcome::Failure;
use super::written::refuse_overwriting;
use crate::config::Used;
use crate::dataset::apply_catalog;
use crate::telemetry::silence_panic_payloads;
use std::path::PathBuf;

/// Read a release with counterfeits by its catalog
#[derive(Debug, clap::Subcommand)]
pub enum CatalogArgs {
    /// Write the truthful release: as many lines dropped as were invented, and what could have been one of them without the
    /// cells by which its group differs
    Apply(ApplyArgs),
}

/// What `throng catalog apply` is given.
#[derive(Debug, clap::Args)]
pub struct ApplyArgs {
    /// The release, as CSV or NDJSON
    #[arg(value_name = "RELEASED")]
    released: PathBuf,
    /// The catalog that was written with it
    #[arg(long, value_name = "FILE")]
    catalog: PathBuf,
    /// Where the truthful release goes, in the same format
    #[arg(short, long, value_name = "OUTPUT")]
    output: PathBuf,
}

/// Runs `throng catalog`.
pub fn run(args: &CatalogArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    let CatalogArgs::Apply(args) = args;
    let read = [Used::file("the release", &args.released), Used::file("--catalog", &args.catalog)];
    refuse_overwriting(&[Used::file("--output", &args.output)], &read)?;
    let applied = apply_catalog(&args.released, &args.catalog, &args.output).map_err(|error| {
        if error.is_usage() { Failure::Usage(error.into()) } else { Failure::Running(error.into()) }
    })?;
    eprintln!(
        "{} lines, {} of them counterfeits and dropped; {} could have been one and lost the cells by which their groups differ",
        applied.lines, applied.dropped, applied.coarsened
    );
    Ok(())
}
