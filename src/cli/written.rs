//! Files that a command writes: what is refused before the work begins.

use super::outcome::Failure;
use crate::config::{Used, overwritten};
use crate::io::file::SinkError;
use anyhow::anyhow;
use std::path::Path;

/// Refuses to write over what is read, or over what is written under another name.
pub fn refuse_overwriting(written: &[Used], read: &[Used]) -> Result<(), Failure> {
    overwritten(written, read).map_or(Ok(()), |said| Err(Failure::Usage(anyhow!(said))))
}

/// A file that cannot be written.
#[must_use]
pub fn unwritable(what: &str, path: &Path, error: SinkError) -> Failure {
    let said = format!("{what} {} cannot be written: name a writable file", path.display());
    Failure::Running(anyhow::Error::from(error).context(said))
}
