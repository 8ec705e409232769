//! Test helpers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{FileFormat, FileReadSettings, FileSource, SourceError, StopFlag};
use throng_formats::{DecodeLimits, FieldPath, UnknownCellPolicy};

pub const LIMITS: DecodeLimits =
    DecodeLimits { max_record_bytes: 64, max_depth: 8, max_elements: 100, max_repeated_bytes: 1 << 20 };
pub const CSV: FileFormat = FileFormat::Csv { separator: b',' };

pub fn reading(format: FileFormat) -> FileReadSettings {
    let (fields, unknown) = (vec![FieldPath::top_level("a"), FieldPath::top_level("b")], UnknownCellPolicy::Drop);
    FileReadSettings { format, fields, limits: LIMITS, unknown, stop: StopFlag::default() }
}

pub fn open(path: &Path, format: FileFormat) -> Result<FileSource, SourceError> {
    FileSource::reading(path, reading(format))
}

/// Exists until the directory is dropped.
pub fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in");
    fs::write(&path, content).unwrap();
    (directory, path)
}

pub fn pipe() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    (directory, path)
}
