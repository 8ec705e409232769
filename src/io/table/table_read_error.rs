//! Errors of reading a file as a table.

use std::path::PathBuf;

use crate::io::file::SourceError;
use throng_core::values::dictionary::DictionaryFull;

/// Failure to read a file as a table. Messages contain no file content except names of requested columns.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum TableReadError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(
        "record {record} of {path} (counted from 1) cannot be read: {reason}; correct it, or leave such records out \
         and counted (--skip-unreadable)"
    )]
    Unreadable { path: PathBuf, record: u64, reason: String },
    #[error("{path} has no records: nothing can be judged; check the file")]
    NoRecords { path: PathBuf },
    #[error(
        "none of the {records} records of {path} can be read, the first is {reason}: check its format (--format) and the schema"
    )]
    NothingReadable { path: PathBuf, records: u64, reason: String },
    #[error("the schema {schema} has no attribute \"{column}\": correct the name, or add it to the schema")]
    NotInSchema { schema: String, column: String },
    #[error(
        "{path} needs more than {limit} after {records} records: choose columns (--columns), take a sample of the \
         records, keep it in a file (throng audit --temp), or allow more (--memory)"
    )]
    TooLarge { path: PathBuf, records: u64, limit: String },
    #[error("column {place} of {path}: {source}")]
    Full { path: PathBuf, place: usize, source: DictionaryFull },
    #[error(
        "the header of column {place} of {path} has the shape of {shape}: its first row seems to be a record, not a \
         header; add a header row"
    )]
    NoHeader { path: PathBuf, place: usize, shape: &'static str },
    #[error("the first line of {path} is a comment (#) and no header row: take out what is above the header")]
    Comment { path: PathBuf },
    #[error("{path} has a single column whose header holds a separator: name the right one (--separator)")]
    Separator { path: PathBuf },
    #[error(
        "column \"{column}\" of {path} has more different values after {records} records than {limit} hold beside the other \
         columns, and too few to be an identifier: leave it out (--columns), round it in a schema, or allow more (--memory)"
    )]
    ManyValues { path: PathBuf, column: String, records: u64, limit: String },
    #[error("the table cannot be written to {directory}: {source}; name a directory with more room (--temp)")]
    Temporary { directory: PathBuf, source: std::io::Error },
}
