//! Errors of reading a file as a table.

use std::path::PathBuf;

use crate::io::file::SourceError;
use throng_core::values::dictionary::DictionaryFull;

/// Error of reading a table.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum TableReadError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(
        "record {record} of {path} (counted from 1) cannot be read: {reason}; correct it, or skip and count such \
         records (--skip-unreadable)"
    )]
    Unreadable { path: PathBuf, record: u64, reason: String },
    #[error("{path} has no records: check the file")]
    NoRecords { path: PathBuf },
    #[error(
        "none of the {records} records of {path} can be read (first error: {reason}): check its format (--format) and the schema"
    )]
    NothingReadable { path: PathBuf, records: u64, reason: String },
    #[error("the schema {schema} has no attribute \"{column}\": correct the name, or add it to the schema")]
    NotInSchema { schema: String, column: String },
    #[error(
        "{path} needs more than {limit} after {records} records: select columns (--columns), sample the records, use \
         temporary files (throng audit --temp), or raise the limit (--memory)"
    )]
    TooLarge { path: PathBuf, records: u64, limit: String },
    #[error("column {place} of {path}: {source}")]
    Full { path: PathBuf, place: usize, source: DictionaryFull },
    #[error(
        "the header of column {place} of {path} looks like an identifier ({shape}): the first row seems to be a record, \
         not a header; add a header row"
    )]
    NoHeader { path: PathBuf, place: usize, shape: &'static str },
    #[error("the first line of {path} is a comment (#), not a header row: remove the lines above the header")]
    Comment { path: PathBuf },
    #[error("{path} has a single column whose header contains a separator: set the right one (--separator)")]
    Separator { path: PathBuf },
    #[error(
        "column \"{column}\" of {path} has more distinct values after {records} records than fit into {limit} with the \
         other columns, and too few to be an identifier: exclude it (--columns), round it in a schema, or raise the \
         limit (--memory)"
    )]
    ManyValues { path: PathBuf, column: String, records: u64, limit: String },
    #[error("the table cannot be written to {directory}: {source}; name a directory with more space (--temp)")]
    Temporary { directory: PathBuf, source: std::io::Error },
}
