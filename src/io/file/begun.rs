//! Several files as one source: which of them have been read, so that a restart goes on in the right one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::fingerprint::imprint;
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

    /// The same file, read to its end, which has this length and digest.
    pub(super) fn end(self, imprint: (u64, u64)) -> Self {
        Self { ended: Some(imprint), ..self }
    }
}

fn name_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn imprint_of(path: &Path) -> io::Result<(u64, u64)> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    imprint(&file, length)
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
    /// What of the files begun so far still matters, in their order: each once, those that are gone left out, the last one kept.
    pub known: Vec<FileBegun>,
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
        return Ok(Place { files, within: SourcePosition::default(), first: 0, known: Vec::new() });
    }
    let mut known: BTreeMap<&str, &FileBegun> = BTreeMap::new();
    let mut last = None;
    for file in begun.iter().filter(|file| file.first < start.records) {
        known.insert(&file.name, file);
        last = Some(file);
    }
    let last = last.ok_or_else(|| SourceError::OtherKind { path: path.into() })?;
    let (before, behind): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| name_of(file).as_bytes() <= last.name.as_bytes());
    let mut listed = Vec::new();
    for file in &before {
        let Some(read) = known.get(name_of(file).as_str()) else {
            return Err(SourceError::Appeared { path: file.clone(), last: last.name.clone().into() });
        };
        if read.ended.is_some_and(|ended| imprint_of(file).ok() != Some(ended)) {
            return Err(SourceError::ReadBefore { path: file.clone() });
        }
        listed.push(*read);
    }
    let earlier = listed.into_iter().filter(|file| file.name != last.name);
    let known = earlier.chain([last]).cloned().collect();
    if last.ended.is_some() {
        return Ok(Place { files: behind, within: SourcePosition::default(), first: start.records, known });
    }
    let Some(current) = before.into_iter().find(|file| name_of(file) == last.name) else {
        return Err(SourceError::Gone { path: last.name.clone().into() });
    };
    let within = SourcePosition { records: start.records - last.first, bytes: start.bytes };
    Ok(Place { files: [vec![current], behind].concat(), within, first: last.first, known })
}

/// Looks whether a batch that had begun or ended the files of `pending`, and is to be read once more from `place`, will be read from
/// the same ones: its bytes may have been seen.
///
/// # Errors
/// When one of them is gone or has changed, or another one stands before it.
pub(super) fn repeats(place: &Place, pending: &[FileBegun]) -> Result<(), SourceError> {
    let mut nth = 0;
    let mut files = pending.iter().peekable();
    while let Some(mut file) = files.next() {
        // A file that was begun and ended is named twice, the second time with its imprint.
        while let Some(later) = files.next_if(|later| later.name == file.name) {
            file = later;
        }
        let rest = place.files.get(nth..).unwrap_or_default();
        let failed = |path: &Path, what| Err(SourceError::OtherBatch { path: path.into(), what });
        match rest.iter().position(|there| name_of(there) == file.name) {
            None => return failed(Path::new(&file.name), "gone"),
            Some(0) => {}
            Some(_) => return failed(&rest[0], "new, and stands before files of the last batch"),
        }
        if file.ended.is_some_and(|ended| imprint_of(&rest[0]).ok() != Some(ended)) {
            return failed(&rest[0], "another one than before");
        }
        nth += 1;
    }
    Ok(())
}

#[cfg(test)]
#[path = "begun_tests.rs"]
mod tests;
