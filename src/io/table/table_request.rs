//! Settings and progress of reading a table.

use std::path::{Path, PathBuf};

use crate::io::file::FileFormat;
use throng_core::values::schema::Schema;
use throng_formats::DecodeLimits;

/// Settings for reading a table.
#[derive(Clone, Debug)]
pub struct TableRequest<'a> {
    /// Path of the input; `-` is standard input (NDJSON and CSV).
    pub path: &'a Path,
    /// Further files, directories or patterns, appended to the same table.
    pub more: &'a [PathBuf],
    /// Format of the files.
    pub format: FileFormat,
    /// Types, rounding, missing values and positions of the attributes; without a schema, columns are texts.
    pub schema: Option<&'a Schema>,
    /// Names of the only columns to read.
    pub columns: Option<&'a [String]>,
    /// Size limits of a record.
    pub limits: DecodeLimits,
    /// Maximum number of columns.
    pub max_columns: usize,
    /// Maximum memory in bytes.
    pub max_bytes: u64,
    /// Number of first records to read; none for all.
    pub max_records: Option<u64>,
    /// Skips and counts unreadable records instead of failing at the first.
    pub skip_unreadable: bool,
}

impl TableRequest<'_> {
    /// Display name of the input.
    pub fn named(&self) -> PathBuf {
        named(self.path, self.more)
    }
}

/// Display name of a path with further paths.
pub fn named(path: &Path, more: &[PathBuf]) -> PathBuf {
    if more.is_empty() { path.to_owned() } else { format!("{} and {} more", path.display(), more.len()).into() }
}

/// Settings for a table that exceeds memory.
#[derive(Clone, Copy, Debug)]
pub struct SpillSettings<'a> {
    /// Directory of the unnamed temporary file for the codes.
    pub directory: &'a Path,
    /// Maximum bytes of distinct values; the largest column is given up beyond it.
    pub dictionaries: u64,
    /// Distinct values per record from which a column that is given up counts as an identifier. Below it, reading
    /// fails.
    pub identifier_cardinality: f64,
    /// Column that counts subjects; it cannot be given up.
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
