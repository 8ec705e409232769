//! Settings and progress of reading a table.

use std::path::{Path, PathBuf};

use crate::io::file::FileFormat;
use throng_core::values::schema::Schema;
use throng_formats::DecodeLimits;

/// Settings for reading a table.
#[derive(Clone, Debug)]
pub struct TableRequest<'a> {
    /// Path; `-` is standard input (NDJSON and CSV).
    pub path: &'a Path,
    /// Further files, directories or patterns.
    pub more: &'a [PathBuf],
    /// Format of the files.
    pub format: FileFormat,
    /// Schema of the attributes; otherwise columns are texts.
    pub schema: Option<&'a Schema>,
    /// True to read only the records that the schema selects (`only`).
    pub selects: bool,
    /// Columns to read; `None` for all.
    pub columns: Option<&'a [String]>,
    /// Size limits of a record.
    pub limits: DecodeLimits,
    /// Maximum number of columns.
    pub max_columns: usize,
    /// Maximum memory in bytes.
    pub max_bytes: u64,
    /// Number of first records; `None` for all.
    pub max_records: Option<u64>,
    /// True to skip and count unreadable records.
    pub skip_unreadable: bool,
}

impl TableRequest<'_> {
    /// Returns the display name of the input.
    pub fn named(&self) -> PathBuf {
        named(self.path, self.more)
    }
}

/// Returns the display name of several paths.
pub fn named(path: &Path, more: &[PathBuf]) -> PathBuf {
    if more.is_empty() { path.to_owned() } else { format!("{} and {} more", path.display(), more.len()).into() }
}

/// Settings for a table that exceeds memory.
#[derive(Clone, Copy, Debug)]
pub struct SpillSettings<'a> {
    /// Directory of the unnamed file for the codes.
    pub directory: &'a Path,
    /// Maximum bytes of distinct values.
    pub dictionaries: u64,
    /// Minimum distinct values per record of an identifier, which may be given up.
    pub identifier_cardinality: f64,
    /// Subject column, never given up.
    pub people: Option<&'a str>,
}

/// Read progress of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadProgress {
    /// Records read, including unreadable ones.
    pub records: u64,
    /// Bytes read; for Parquet the length of the file.
    pub bytes: u64,
}
