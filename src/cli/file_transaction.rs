//! Atomic writing of several files.

use super::outcome::Failure;
use super::output_checks::write_failure;
use crate::io::file::atomic_file;
use anyhow::{Context, anyhow};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

enum PreviousContent {
    NoPreviousFile,
    File(Vec<u8>),
}

/// Files and directories to roll back.
#[derive(Default)]
pub struct FileTransaction {
    files: Vec<(PathBuf, PreviousContent)>,
    directories: Vec<PathBuf>,
}

impl FileTransaction {
    /// Creates a directory with parents.
    pub fn create_directory(&mut self, path: &Path) -> Result<(), Failure> {
        let missing = path.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists());
        self.directories = missing.map(Path::to_owned).collect();
        let made = fs::create_dir_all(path);
        Ok(made.with_context(|| format!("cannot create {}: name another --directory", path.display()))?)
    }

    /// Writes a file; `over` allows overwriting.
    ///
    /// # Errors
    /// Fails if it cannot be written, or exists.
    pub fn write_or_replace(&mut self, path: &Path, what: &str, text: &str, over: bool) -> Result<(), Failure> {
        let failed = |error| {
            let said = format!("{what} {} cannot be written: name a writable file", path.display());
            Failure::Running(anyhow::Error::from(error).context(said))
        };
        if over {
            match fs::read(path) {
                Ok(bytes) => {
                    self.files.push((path.to_owned(), PreviousContent::File(bytes)));
                    return atomic_file::write(path, text.as_bytes()).map_err(|error| write_failure(what, path, error));
                }
                Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {}
                // A dangling link or a directory.
                Err(error) => return Err(failed(error)),
            }
        }
        self.create_new_file(path, text, 0o666)?.then_some(()).ok_or_else(|| {
            Failure::Usage(anyhow!(
                "{} was created by another process: name another file, or use --force",
                path.display()
            ))
        })
    }

    /// Creates a file with `mode`, reduced by the umask. Returns false if it exists.
    pub fn create_new_file(&mut self, path: &Path, text: &str, mode: u32) -> Result<bool, Failure> {
        let said = || format!("{} cannot be written: name a writable --directory", path.display());
        let mut file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(Failure::Running(anyhow::Error::from(error).context(said()))),
        };
        self.files.push((path.to_owned(), PreviousContent::NoPreviousFile));
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(said)?;
        Ok(true)
    }

    /// Restores the previous state, with a warning per failure.
    pub fn roll_back(self) {
        for (path, before) in self.files.into_iter().rev() {
            let undone = match before {
                PreviousContent::NoPreviousFile => fs::remove_file(&path),
                PreviousContent::File(bytes) => fs::write(&path, bytes),
            };
            if let Err(error) = undone {
                eprintln!("warning: cannot restore {}: {error}", path.display());
            }
        }
        for directory in self.directories {
            // Another process may have written there.
            if fs::remove_dir(&directory).is_err() {
                break;
            }
        }
    }
}
