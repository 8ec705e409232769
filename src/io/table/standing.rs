//! Whether files stay as they are while they are read: what is read for hours may be written by somebody meanwhile.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::TableError;
use crate::io::file::{Format, SourceError, files_of};

/// Device, inode, length, and seconds and nanoseconds of the last write.
type FileState = (u64, u64, u64, i64, i64);

/// The files of some paths as they are now; empty for what is no regular file.
#[derive(Debug, PartialEq, Eq)]
pub struct Standing(Vec<(PathBuf, FileState)>);

impl Standing {
    /// Those of `path` and `more`.
    pub fn of(path: &Path, more: &[PathBuf], format: Format) -> Result<Self, TableError> {
        let mut files = Vec::new();
        for path in std::iter::once(path).chain(more.iter().map(PathBuf::as_path)) {
            let one = || if path.is_file() { vec![path.to_owned()] } else { vec![] };
            files.extend(files_of(path, format)?.unwrap_or_else(one));
        }
        let state = |file: PathBuf| {
            let found = file.metadata().map_err(|source| SourceError::Open { path: file.clone(), source })?;
            let state = (found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec());
            Ok((file, state))
        };
        Ok(Self(files.into_iter().map(state).collect::<Result<_, SourceError>>()?))
    }

    /// Refuses files that are others by now.
    ///
    /// # Errors
    /// [`TableError::Changed`] with the first of them; as [`of`](Self::of).
    pub fn refuse_changed(&self, path: &Path, more: &[PathBuf], format: Format) -> Result<(), TableError> {
        let now = Self::of(path, more, format)?;
        if *self == now {
            return Ok(());
        }
        let changed =
            self.0.iter().find(|file| !now.0.contains(file)).or(now.0.iter().find(|file| !self.0.contains(file)));
        Err(TableError::Changed { path: changed.map_or_else(|| path.to_owned(), |(path, _)| path.clone()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_or_comes_meanwhile_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("written");
        write("a.csv", "x\n1\n");
        let csv = Format::Csv { separator: b',' };
        let standing = Standing::of(directory.path(), &[], csv).expect("there");
        assert!(standing.refuse_changed(directory.path(), &[], csv).is_ok());
        write("b.csv", "x\n1\n");
        let said = standing.refuse_changed(directory.path(), &[], csv).expect_err("one more").to_string();
        assert!(said.contains("b.csv has changed"), "{said}");
        let standing = Standing::of(directory.path(), &[], csv).expect("there");
        write("a.csv", "x\n1\n2\n");
        let said = standing.refuse_changed(directory.path(), &[], csv).expect_err("written").to_string();
        assert!(said.contains("a.csv has changed"), "{said}");
    }
}
