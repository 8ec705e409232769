//! What is read of a file, and how far that is.

use std::path::{Path, PathBuf};

use crate::io::file::Format;
use throng_core::values::schema::Schema;
use throng_formats::Limits;

/// What to read.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// `-` is standard input (NDJSON and CSV).
    pub path: &'a Path,
    /// Further files, directories or patterns, read behind it as one table.
    pub more: &'a [PathBuf],
    /// How the file is written down.
    pub format: Format,
    /// Types, rounding, missing values and places of the attributes; without one, columns are texts.
    pub schema: Option<&'a Schema>,
    /// Only these columns, by name.
    pub columns: Option<&'a [String]>,
    /// What a record may cost.
    pub limits: Limits,
    /// More columns are refused.
    pub max_columns: usize,
    /// More memory, in bytes, is refused.
    pub max_bytes: u64,
    /// Only so many records, the first ones.
    pub max_records: Option<u64>,
    /// Leave unreadable records out and count them, instead of failing at the first.
    pub skip_unreadable: bool,
}

impl Request<'_> {
    /// What is read, as messages name it.
    pub fn named(&self) -> PathBuf {
        named(self.path, self.more)
    }
}

/// A path with further ones behind it, as messages name them.
pub fn named(path: &Path, more: &[PathBuf]) -> PathBuf {
    if more.is_empty() { path.to_owned() } else { format!("{} and {} more", path.display(), more.len()).into() }
}

/// What becomes of a table that is larger than memory.
#[derive(Clone, Copy, Debug)]
pub struct Spill<'a> {
    /// Its codes are written to a file without a name in this directory.
    pub directory: &'a Path,
    /// Bytes of different values that are held; a column that has more is given up.
    pub dictionaries: u64,
    /// From so many different values a record on, a column that is given up is a standalone identifier; below, reading fails.
    pub identifier_cardinality: f64,
    /// The column that counts people, which cannot be given up.
    pub people: Option<&'a str>,
}

/// How far a file has been read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadProgress {
    /// Records read, the unreadable ones included.
    pub records: u64,
    /// Bytes of the file read; for Parquet its length.
    pub bytes: u64,
}
