//! Dead letters of a file sink: one JSON object a line.

use std::path::Path;

use super::SinkError;
use super::append::{Access, AppendFile};
use crate::io::dead_letter::DeadLetter;

/// An NDJSON file of dead letters, truncated and synced like a sink.
#[derive(Debug)]
pub struct DeadLetterFile(AppendFile);

impl DeadLetterFile {
    /// Opens the file, locked, and truncates it to its committed length.
    ///
    /// # Errors
    /// When it cannot be opened, is shorter than committed, or is open in another process.
    pub fn open(path: &Path, durable: u64) -> Result<Self, SinkError> {
        AppendFile::open(path, Access::Shared, Vec::new(), durable).map(Self)
    }

    /// Appends the body of `letter` as one line.
    ///
    /// # Errors
    /// When writing fails.
    pub fn append(&mut self, letter: &DeadLetter<'_>) -> Result<(), SinkError> {
        let mut line = letter.body();
        line.push('\n');
        self.0.append(line.as_bytes())
    }

    /// Brings everything to the disk; gives the length for the commit.
    ///
    /// # Errors
    /// When writing or syncing fails.
    pub fn sync(&mut self) -> Result<u64, SinkError> {
        self.0.sync()
    }

    /// By what the file, synced, is known again.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn fingerprint(&self) -> Result<u64, SinkError> {
        self.0.fingerprint()
    }

    /// Forgets everything after the first `length` bytes.
    ///
    /// # Errors
    /// When the file is shorter or cannot be truncated.
    pub fn truncate_to(&mut self, length: u64) -> Result<(), SinkError> {
        self.0.truncate_to(length)
    }
}
