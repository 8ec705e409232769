//! Detection of changed input files during a long read.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::file_listing::{files_of, files_or_self};
use super::{FileFormat, SourceError};

/// Device, inode, length, modification time (s, ns).
type FileState = (u64, u64, u64, i64, i64);

/// State of regular files at one moment.
#[derive(Debug, PartialEq, Eq)]
pub struct FileSnapshot(Vec<(PathBuf, FileState)>);

impl FileSnapshot {
    /// Records the state of files.
    ///
    /// # Errors
    /// As [`files_of`].
    pub fn of(path: &Path, more: &[PathBuf], format: FileFormat) -> Result<Self, SourceError> {
        let mut files = Vec::new();
        for path in std::iter::once(path).chain(more.iter().map(PathBuf::as_path)) {
            let one = || if path.is_file() { vec![path.to_owned()] } else { vec![] };
            files.extend(files_of(path, format)?.unwrap_or_else(one));
        }
        let state = |file: PathBuf| current_state(&file).map(|(state, _)| (file, state));
        Ok(Self(files.into_iter().map(state).collect::<Result<_, _>>()?))
    }

    /// Records the state of regular files.
    ///
    /// # Errors
    /// As [`files_of`]; [`SourceError::NotRegular`].
    pub fn of_regular(path: &Path, format: FileFormat) -> Result<Self, SourceError> {
        let state = |file: PathBuf| match current_state(&file)? {
            (state, true) => Ok((file, state)),
            _ => Err(SourceError::NotRegular { path: file }),
        };
        Ok(Self(files_or_self(path, format)?.into_iter().map(state).collect::<Result<_, _>>()?))
    }

    /// Returns the files in order.
    pub fn files(&self) -> Vec<PathBuf> {
        self.0.iter().map(|(file, _)| file.clone()).collect()
    }

    /// Rejects changed files.
    ///
    /// # Errors
    /// [`SourceError::Changed`].
    pub fn reject_changed_files(&self) -> Result<(), SourceError> {
        let is_as_before =
            |(file, before): &&(PathBuf, FileState)| current_state(file).is_ok_and(|(now, _)| now == *before);
        match self.0.iter().find(|file| !is_as_before(file)) {
            Some((path, _)) => Err(SourceError::Changed { path: path.clone() }),
            None => Ok(()),
        }
    }

    /// Rejects changed, added and removed files.
    ///
    /// # Errors
    /// [`SourceError::Changed`]; as [`of`](Self::of).
    pub fn reject_differences(&self, path: &Path, more: &[PathBuf], format: FileFormat) -> Result<(), SourceError> {
        let now = Self::of(path, more, format)?;
        if *self == now {
            return Ok(());
        }
        let changed =
            self.0.iter().find(|file| !now.0.contains(file)).or(now.0.iter().find(|file| !self.0.contains(file)));
        Err(SourceError::Changed { path: changed.map_or_else(|| path.to_owned(), |(path, _)| path.clone()) })
    }
}

fn current_state(file: &Path) -> Result<(FileState, bool), SourceError> {
    let found = file.metadata().map_err(|source| SourceError::Open { path: file.to_owned(), source })?;
    let state = (found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec());
    Ok((state, found.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_or_added_file_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("written");
        write("a.csv", "x\n1\n");
        let csv = FileFormat::Csv { separator: b',' };
        let standing = FileSnapshot::of(directory.path(), &[], csv).expect("there");
        assert!(standing.reject_differences(directory.path(), &[], csv).is_ok());
        write("b.csv", "x\n1\n");
        assert!(standing.reject_changed_files().is_ok());
        let said = standing.reject_differences(directory.path(), &[], csv).expect_err("one more").to_string();
        assert!(said.contains("b.csv has changed"), "{said}");
        let standing = FileSnapshot::of(directory.path(), &[], csv).expect("there");
        write("a.csv", "x\n1\n2\n");
        let said = standing.reject_differences(directory.path(), &[], csv).expect_err("written").to_string();
        assert!(said.contains("a.csv has changed"), "{said}");
    }
}
