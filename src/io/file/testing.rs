//! What the tests of files share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{FileSource, Format, Reading, SourceError, StopFlag};
use throng_formats::{Field, Limits, Unknown};

pub const LIMITS: Limits =
    Limits { max_record_bytes: 64, max_depth: 8, max_elements: 100, max_repeated_bytes: 1 << 20 };
pub const CSV: Format = Format::Csv { separator: b',' };

/// Records of two attributes, `a` and `b`.
pub fn reading(format: Format) -> Reading {
    let (fields, unknown) = (vec![Field::flat("a"), Field::flat("b")], Unknown::Drop);
    Reading { format, fields, limits: LIMITS, unknown, stop: StopFlag::default() }
}

pub fn open(path: &Path, format: Format) -> Result<FileSource, SourceError> {
    FileSource::reading(path, reading(format))
}

/// A file for as long as the directory lives.
pub fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in");
    fs::write(&path, content).unwrap();
    (directory, path)
}

/// A named pipe that nobody has opened.
pub fn pipe() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    (directory, path)
}
