//! Certificates of a file sink: one envelope a line.

use std::path::Path;

use super::SinkError;
use super::append::{Access, AppendFile};

/// An NDJSON file of certificates, truncated and synced like a sink.
#[derive(Debug)]
pub struct CertificateFile(AppendFile);

impl CertificateFile {
    /// Opens the file, locked, and truncates it to its committed length.
    ///
    /// # Errors
    /// When it cannot be opened, is shorter than committed, or is open in another process.
    pub fn open(path: &Path, durable: u64) -> Result<Self, SinkError> {
        AppendFile::open(path, Access::Shared, Vec::new(), durable).map(Self)
    }

    /// Appends one certificate, which has no line break.
    ///
    /// # Errors
    /// When writing fails.
    pub fn append(&mut self, certificate: &[u8]) -> Result<(), SinkError> {
        self.0.append(certificate)?;
        self.0.append(b"\n")
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
