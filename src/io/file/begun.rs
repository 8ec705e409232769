//! Several files as one source: which of them have been read, so that a restart goes on in the right one.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::fingerprint::fingerprint;
use super::{SourceError, SourcePosition};

/// A file of several that has been begun, or read to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileBegun {
    /// Its path, as the source names it.
    pub name: String,
    /// Number of its first record among those of all files, from 0.
    pub first: u64,
    /// Length in bytes and imprint of a file that has been read to its end.
    pub ended: Option<(u64, u64)>,
}

impl FileBegun {
    /// A file whose first record is number `first`.
    pub(super) fn new(path: &Path, first: u64) -> Self {
        Self { name: name_of(path), first, ended: None }
    }

    /// The same file, read to its end.
    pub(super) fn end(mut self, path: &Path) -> Result<Self, SourceError> {
        self.ended = Some(imprint(path)?);
        Ok(self)
    }
}

fn name_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn imprint(path: &Path) -> Result<(u64, u64), SourceError> {
    let fault = |source| SourceError::Open { path: path.into(), source };
    let file = File::open(path).map_err(fault)?;
    let length = file.metadata().map_err(fault)?.len();
    // An empty file is known by being empty.
    let imprint = if length == 0 { 0 } else { fingerprint(&file, length).map_err(fault)? };
    Ok((length, imprint))
}

/// Where reading begins among several files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The file to open, and those behind it; the first one is missing where all have been read.
    pub files: Vec<PathBuf>,
    /// The position inside the first of them.
    pub within: SourcePosition,
    /// Number of its first record among those of all files.
    pub first: u64,
}

/// The place behind the first `start.records` records of `files`, of which `begun` had been begun by then.
///
/// A file that has been read to its end may be gone; every other change before the place is an error, for a record would be lost or
/// read twice.
///
/// # Errors
/// When a file has appeared before the place, has changed behind it, or is gone while it was read.
pub(super) fn place(
    path: &Path,
    files: Vec<PathBuf>,
    begun: &[FileBegun],
    start: SourcePosition,
) -> Result<Place, SourceError> {
    if start.records == 0 {
        return Ok(Place { files, within: SourcePosition::default(), first: 0 });
    }
    let mut known: Vec<&FileBegun> = Vec::new();
    for file in begun.iter().filter(|file| file.first < start.records) {
        known.retain(|earlier| earlier.name != file.name);
        known.push(file);
    }
    let last = *known.last().ok_or_else(|| SourceError::OtherKind { path: path.into() })?;
    let name = |file: &&FileBegun| file.name.clone();
    let (before, behind): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| name_of(file).as_bytes() <= last.name.as_bytes());
    for file in &before {
        let Some(read) = known.iter().find(|known| known.name == name_of(file)) else {
            return Err(SourceError::Appeared { path: file.clone(), last: name(&last).into() });
        };
        if read.ended.is_some_and(|ended| imprint(file).ok() != Some(ended)) {
            return Err(SourceError::ReadBefore { path: file.clone() });
        }
    }
    if last.ended.is_some() {
        return Ok(Place { files: behind, within: SourcePosition::default(), first: start.records });
    }
    let Some(current) = before.into_iter().find(|file| name_of(file) == last.name) else {
        return Err(SourceError::Gone { path: last.name.clone().into() });
    };
    let within = SourcePosition { records: start.records - last.first, bytes: start.bytes };
    Ok(Place { files: [vec![current], behind].concat(), within, first: last.first })
}

#[cfg(test)]
#[path = "begun_tests.rs"]
mod tests;
