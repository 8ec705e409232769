//! Checks of output files before the work begins.

use super::outcome::Failure;
use crate::config::{UsedFile, find_overwritten};
use crate::io::file::SinkError;
use anyhow::anyhow;
use std::path::Path;

/// Refuses to overwrite an input, or an output under another name.
pub fn refuse_overwriting(written: &[UsedFile], read: &[UsedFile]) -> Result<(), Failure> {
    find_overwritten(written, read).map_or(Ok(()), |said| Err(Failure::Usage(anyhow!(said))))
}

/// Error for a file that cannot be written.
#[must_use]
pub fn write_failure(what: &str, path: &Path, error: SinkError) -> Failure {
    let said = format!("{what} {} cannot be written: name a writable file", path.display());
    Failure::Running(anyhow::Error::from(error).context(said))
}
