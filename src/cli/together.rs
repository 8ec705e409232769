//! Files that are written together or not at all: where one of them fails, what was there before is there again.

use super::outcome::Failure;
use super::written::unwritable;
use crate::io::file::whole;
use anyhow::{Context, anyhow};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What stood at the place of a file.
enum Before {
    Nothing,
    File(Vec<u8>),
}

/// The files written so far, and the directories made for them.
#[derive(Default)]
pub struct Together {
    files: Vec<(PathBuf, Before)>,
    directories: Vec<PathBuf>,
}

impl Together {
    /// Makes a directory, and those above it.
    pub fn directory(&mut self, path: &Path) -> Result<(), Failure> {
        let missing = path.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists());
        self.directories = missing.map(Path::to_owned).collect();
        let made = fs::create_dir_all(path);
        Ok(made.with_context(|| format!("{} cannot be made: name another --directory", path.display()))?)
    }

    /// Writes a file; with `over` also where one is there.
    ///
    /// # Errors
    /// When it cannot be written, or is there by now and may not be written over.
    pub fn put(&mut self, path: &Path, what: &str, text: &str, over: bool) -> Result<(), Failure> {
        let failed = |error| {
            let said = format!("{what} {} cannot be written: name a writable file", path.display());
            Failure::Running(anyhow::Error::from(error).context(said))
        };
        if over {
            match fs::read(path) {
                Ok(bytes) => {
                    self.files.push((path.to_owned(), Before::File(bytes)));
                    return whole::write(path, text.as_bytes()).map_err(|error| unwritable(what, path, error));
                }
                Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {}
                // A link that leads nowhere, a directory.
                Err(error) => return Err(failed(error)),
            }
        }
        self.make(path, text, 0o666)?.then_some(()).ok_or_else(|| {
            Failure::Usage(anyhow!("{} has come into being meanwhile: name another file, or --force", path.display()))
        })
    }

    /// Makes a file with these permissions, as far as the process grants them; false where one is there already.
    pub fn make(&mut self, path: &Path, text: &str, mode: u32) -> Result<bool, Failure> {
        let said = || format!("{} cannot be written: name a writable --directory", path.display());
        let mut file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(Failure::Running(anyhow::Error::from(error).context(said()))),
        };
        self.files.push((path.to_owned(), Before::Nothing));
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(said)?;
        Ok(true)
    }

    /// Puts everything back as it was. What cannot be put back is said, and the rest goes on.
    pub fn undo(self) {
        for (path, before) in self.files.into_iter().rev() {
            let undone = match before {
                Before::Nothing => fs::remove_file(&path),
                Before::File(bytes) => fs::write(&path, bytes),
            };
            if let Err(error) = undone {
                eprintln!("warning: {} could not be put back as it was ({error})", path.display());
            }
        }
        for directory in self.directories {
            // Somebody else may have put something there.
            if fs::remove_dir(&directory).is_err() {
                break;
            }
        }
    }
}
