//! The lines of a group in files that are rotated: each file is complete once the next one has a committed batch.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::SinkError;
use super::append::{Access, AppendFile, sync_directory};
use crate::config;

/// When a file is followed by another one. A file holds whole batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// From this length in bytes on; 0: whatever its length.
    pub bytes: u64,
    /// This many milliseconds after its first batch, by the clock of the batches; 0: however old.
    pub age_ms: u64,
}

/// How far the output of a group is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// Bytes of the file that is being written.
    pub length: u64,
    /// Its number in the series, from 0; always 0 of a single file.
    pub number: u64,
    /// Stamp of the first batch in it; 0 where there is none yet.
    pub since_ms: u64,
}

/// Before a group in the lengths of a commit: the number of its file, and the stamp of the first batch there.
const FILE: &str = "/file/";
const SINCE: &str = "/since/";

/// Whether a committed length tells where a file stands, besides the length that has the name of the group.
pub(super) fn tells_of_series(name: &str) -> bool {
    name.starts_with(FILE) || name.starts_with(SINCE)
}

/// The group that a committed length is of.
pub(super) fn group_of(name: &str) -> &str {
    name.strip_prefix(FILE).or_else(|| name.strip_prefix(SINCE)).unwrap_or(name)
}

impl Standing {
    /// What the lengths of a commit say of a group; none where they do not know it.
    pub fn of(group: &str, lengths: &[(String, u64)]) -> Option<Self> {
        let told = |wanted: &str| lengths.iter().find(|(name, _)| name == wanted).map(|(_, told)| *told);
        let length = told(group)?;
        let number = told(&format!("{FILE}{group}")).unwrap_or(0);
        Some(Self { length, number, since_ms: told(&format!("{SINCE}{group}")).unwrap_or(0) })
    }

    /// Whether a commit that knows the group was of files that are rotated.
    pub fn was_rotated(group: &str, lengths: &[(String, u64)]) -> bool {
        lengths.iter().any(|(name, _)| name.strip_prefix(FILE) == Some(group))
    }

    /// What a commit says of a group.
    pub fn told(self, group: &str, rotated: bool, lengths: &mut Vec<(String, u64)>) {
        lengths.push((group.to_owned(), self.length));
        if rotated {
            lengths.push((format!("{FILE}{group}"), self.number));
            lengths.push((format!("{SINCE}{group}"), self.since_ms));
        }
    }
}

/// The output of a group: one file, or a series of them.
#[derive(Debug)]
pub(super) struct Series {
    path: PathBuf,
    preamble: Vec<u8>,
    rotation: Option<Rotation>,
    number: u64,
    since_ms: u64,
    file: AppendFile,
}

/// The file that is written: `path` itself, or with its number before the extension.
pub(super) fn file_at(path: &Path, rotated: bool, number: u64) -> PathBuf {
    if rotated { config::numbered(path, number) } else { path.to_owned() }
}

impl Series {
    /// Opens the file that a commit left off in, cut back to its length, and removes the next one, which is of a batch that was not
    /// committed: a batch turns once. Each file begins with `preamble`.
    pub fn open(path: &Path, preamble: Vec<u8>, rotation: Option<Rotation>, at: Standing) -> Result<Self, SinkError> {
        let file = Self::opened(path, &preamble, rotation, at)?;
        Ok(Self { path: path.into(), preamble, rotation, number: at.number, since_ms: at.since_ms, file })
    }

    fn opened(path: &Path, preamble: &[u8], rotation: Option<Rotation>, at: Standing) -> Result<AppendFile, SinkError> {
        let current = file_at(path, rotation.is_some(), at.number);
        let file = AppendFile::open(&current, Access::Shared, preamble.to_vec(), at.length)?;
        if rotation.is_some() {
            remove_next(path, at.number)?;
        }
        Ok(file)
    }

    /// Goes on with the next file where this one is long or old enough, before a batch with the stamp `clock_ms` is written. To be
    /// called behind a sync.
    pub fn turn(&mut self, clock_ms: u64) -> Result<(), SinkError> {
        let Some(rotation) = self.rotation else { return Ok(()) };
        if self.file.length() <= self.preamble.len() as u64 {
            self.since_ms = clock_ms;
            return Ok(());
        }
        let is_long = rotation.bytes > 0 && self.file.length() >= rotation.bytes;
        let is_old = rotation.age_ms > 0 && clock_ms.saturating_sub(self.since_ms) >= rotation.age_ms;
        if is_long || is_old {
            let next = file_at(&self.path, true, self.number + 1);
            match fs::metadata(&next) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(SinkError::Open { path: next, source }),
                // What is ours behind the committed one was removed at the start.
                Ok(_) => return Err(SinkError::Occupied { path: next }),
            }
            self.file = AppendFile::open(&next, Access::Shared, self.preamble.clone(), 0)?;
            (self.number, self.since_ms) = (self.number + 1, clock_ms);
        }
        Ok(())
    }

    pub fn append(&mut self, lines: &[u8]) -> Result<(), SinkError> {
        self.file.append(lines)
    }

    /// Brings everything to the disk; gives how far it stands then.
    pub fn sync(&mut self) -> Result<Standing, SinkError> {
        let length = self.file.sync()?;
        Ok(Standing { length, number: self.number, since_ms: self.since_ms })
    }

    /// Forgets everything behind a commit.
    pub fn truncate_to(&mut self, at: Standing) -> Result<(), SinkError> {
        if at.number == self.number {
            self.file.truncate_to(at.length)?;
        } else {
            self.file = Self::opened(&self.path, &self.preamble, self.rotation, at)?;
        }
        (self.number, self.since_ms) = (at.number, at.since_ms);
        Ok(())
    }

    pub fn is_rotated(&self) -> bool {
        self.rotation.is_some()
    }

    pub fn fingerprint(&self) -> Result<u64, SinkError> {
        self.file.fingerprint()
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

/// Removes the file behind number `last` of a series, if it is there.
fn remove_next(path: &Path, last: u64) -> Result<(), SinkError> {
    let next = file_at(path, true, last + 1);
    match fs::remove_file(&next) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(SinkError::Open { path: next, source }),
        Ok(()) => sync_directory(path.parent().unwrap_or(Path::new("."))),
    }
}

/// Refuses files of a series behind number `last`, which nobody but somebody else can have made.
pub(super) fn refuse_behind(path: &Path, last: u64) -> Result<(), SinkError> {
    let files = config::series_of(path).map_err(|source| SinkError::Open { path: path.into(), source })?;
    match files.range(last + 1..).next() {
        Some((_, file)) => Err(SinkError::Occupied { path: file.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
