//! Early checks of output files.

use super::outcome::Failure;
use crate::config::{UsedFile, find_overwritten};
use crate::io::file::SinkError;
use anyhow::anyhow;
use std::path::Path;

/// Refuses to overwrite an input or another output.
pub fn refuse_overwriting(written: &[UsedFile], read: &[UsedFile]) -> Result<(), Failure> {
    find_overwritten(written, read).map_or(Ok(()), |said| Err(Failure::Usage(anyhow!(said))))
}

/// Describes an unwritable file.
#[must_use]
pub fn write_failure(what: &str, path: &Path, error: SinkError) -> Failure {
    let said = format!("{what} {} cannot be written: name a writable file", path.display());
    Failure::Running(anyhow::Error::from(error).context(said))
}
