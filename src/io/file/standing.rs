//! Whether files stay as they are while they are read: what is read for hours may be written by somebody meanwhile.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::listing::{all_of, files_of};
use super::{Format, SourceError};

/// Device, inode, length, and seconds and nanoseconds of the last write.
type FileState = (u64, u64, u64, i64, i64);

/// The files of some paths as they are now; empty for what is no regular file.
#[derive(Debug, PartialEq, Eq)]
pub struct Standing(Vec<(PathBuf, FileState)>);

impl Standing {
    /// Those of `path` and `more`.
    ///
    /// # Errors
    /// As [`files_of`].
    pub fn of(path: &Path, more: &[PathBuf], format: Format) -> Result<Self, SourceError> {
        let mut files = Vec::new();
        for path in std::iter::once(path).chain(more.iter().map(PathBuf::as_path)) {
            let one = || if path.is_file() { vec![path.to_owned()] } else { vec![] };
            files.extend(files_of(path, format)?.unwrap_or_else(one));
        }
        let state = |file: PathBuf| state_of(&file).map(|(state, _)| (file, state));
        Ok(Self(files.into_iter().map(state).collect::<Result<_, _>>()?))
    }

    /// The files of `path`, each a regular one.
    ///
    /// # Errors
    /// As [`files_of`]; [`SourceError::NotRegular`].
    pub fn of_regular(path: &Path, format: Format) -> Result<Self, SourceError> {
        let state = |file: PathBuf| match state_of(&file)? {
            (state, true) => Ok((file, state)),
            _ => Err(SourceError::NotRegular { path: file }),
        };
        Ok(Self(all_of(path, format)?.into_iter().map(state).collect::<Result<_, _>>()?))
    }

    /// The files, in their order.
    pub fn files(&self) -> Vec<PathBuf> {
        self.0.iter().map(|(file, _)| file.clone()).collect()
    }

    /// Refuses files that are others by now. Files that have come beside them are not looked at.
    ///
    /// # Errors
    /// [`SourceError::Changed`] with the first of them.
    pub fn refuse_changed_files(&self) -> Result<(), SourceError> {
        let is_as_before = |(file, before): &&(PathBuf, FileState)| state_of(file).is_ok_and(|(now, _)| now == *before);
        match self.0.iter().find(|file| !is_as_before(file)) {
            Some((path, _)) => Err(SourceError::Changed { path: path.clone() }),
            None => Ok(()),
        }
    }

    /// Refuses files that are others by now.
    ///
    /// # Errors
    /// [`SourceError::Changed`] with the first of them; as [`of`](Self::of).
    pub fn refuse_changed(&self, path: &Path, more: &[PathBuf], format: Format) -> Result<(), SourceError> {
        let now = Self::of(path, more, format)?;
        if *self == now {
            return Ok(());
        }
        let changed =
            self.0.iter().find(|file| !now.0.contains(file)).or(now.0.iter().find(|file| !self.0.contains(file)));
        Err(SourceError::Changed { path: changed.map_or_else(|| path.to_owned(), |(path, _)| path.clone()) })
    }
}

/// A file as it is now, and whether it is a regular one.
fn state_of(file: &Path) -> Result<(FileState, bool), SourceError> {
    let found = file.metadata().map_err(|source| SourceError::Open { path: file.to_owned(), source })?;
    let state = (found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec());
    Ok((state, found.is_file()))
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
        assert!(standing.refuse_changed_files().is_ok());
        let said = standing.refuse_changed(directory.path(), &[], csv).expect_err("one more").to_string();
        assert!(said.contains("b.csv has changed"), "{said}");
        let standing = Standing::of(directory.path(), &[], csv).expect("there");
        write("a.csv", "x\n1\n2\n");
        let said = standing.refuse_changed(directory.path(), &[], csv).expect_err("written").to_string();
        assert!(said.contains("a.csv has changed"), "{said}");
    }
}
