//! `throng catalog`: releases with counterfeits.

use super::outcome::Failure;
use super::output_checks::refuse_overwriting;
use super::text_format::counted;
use crate::config::UsedFile;
use crate::dataset::apply_catalog;
use crate::telemetry::silence_panic_payloads;
use std::path::PathBuf;

/// Process a release with counterfeits using its catalog
#[derive(Debug, clap::Subcommand)]
pub enum CatalogArgs {
    /// Write the truthful release: drops one line per counterfeit, and hides the differing cells of lines that could
    /// have been one
    Apply(ApplyArgs),
}

/// Arguments of `throng catalog apply`.
#[derive(Debug, clap::Args)]
pub struct ApplyArgs {
    /// Release, as CSV or NDJSON
    #[arg(value_name = "RELEASED")]
    released: PathBuf,
    /// Catalog that was written with the release
    #[arg(long, value_name = "FILE")]
    catalog: PathBuf,
    /// Output file of the truthful release, in the same format
    #[arg(short, long, value_name = "OUTPUT")]
    output: PathBuf,
}

/// Runs `throng catalog`.
pub fn run(args: &CatalogArgs) -> Result<(), Failure> {
    silence_panic_payloads();
    let CatalogArgs::Apply(args) = args;
    let read = [UsedFile::file("the release", &args.released), UsedFile::file("--catalog", &args.catalog)];
    refuse_overwriting(&[UsedFile::file("--output", &args.output)], &read)?;
    let applied = apply_catalog(&args.released, &args.catalog, &args.output).map_err(|error| {
        if error.is_usage() { Failure::Usage(error.into()) } else { Failure::Running(error.into()) }
    })?;
    eprintln!(
        "{}, {} dropped, {} without the cells in which their groups differ",
        counted(applied.lines, "line"),
        counted(applied.dropped, "counterfeit"),
        counted(applied.coarsened, "possible counterfeit")
    );
    Ok(())
}
