//! Errors of file sources, without file content.

use std::io;
use std::path::PathBuf;

use super::pipe_reader::is_stop;
use crate::telemetry::RejectionReason;
use throng_formats::{ArrowColumnError, HeaderError};

/// Error that ends the reading of a file.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum SourceError {
    #[error("cannot open {path}: {source}; check the path and its permissions")]
    Open { path: PathBuf, source: io::Error },
    #[error(
        "attribute {attribute:?} of the schema differs by topic (topics, pointers), but {path} has no topics: remove \
         these keys, or write a schema for the file"
    )]
    DiffersByTopic { path: PathBuf, attribute: String },
    #[error("cannot read {path} at byte {byte}: {source}")]
    Read { path: PathBuf, byte: u64, source: io::Error },
    #[error("{path} has no file that ends in .{extensions}: set another format (source.format), or name a pattern")]
    NoFileIn { path: PathBuf, extensions: String },
    #[error("no file matches {path}: correct the pattern")]
    NoMatch { path: PathBuf },
    #[error("{path} is not a valid file name pattern: correct its * ? and [ ]")]
    Pattern { path: PathBuf },
    #[error("{path} matches more than {limit} files: select fewer with a pattern")]
    TooManyFiles { path: PathBuf, limit: usize },
    #[error(
        "{path} and {first} are two names of one file, and its records would be read twice: remove the link, or name a \
         pattern that matches only one of them"
    )]
    SameFile { path: PathBuf, first: PathBuf },
    #[error(
        "{path} and {first} have the same file name, which names the person of an Apple Health export: rename them \
         (ana.xml, ben.xml)"
    )]
    SamePerson { path: PathBuf, first: PathBuf },
    #[error("the name of {path} is not UTF-8 and therefore ambiguous: rename it")]
    FileName { path: PathBuf },
    #[error(
        "{path} has different {columns} than {first}, but both are read as one table: make them equal, or read each file separately"
    )]
    OtherColumns { path: PathBuf, first: PathBuf, columns: String },
    #[error("{path} has changed while it was read: wait until it is complete, and read it again")]
    Changed { path: PathBuf },
    #[error("{path} is not a regular file: send the data of a pipe to standard input (source.path = \"-\")")]
    NotRegular { path: PathBuf },
    #[error("standard input can be NDJSON or CSV, but not Parquet, which is read from its end: name a file")]
    ParquetOnStandardInput,
    #[error("the separator of a CSV file must be one ASCII byte that is neither a quote nor a line break")]
    Separator,
    #[error(
        "the first line of {path} declares the separator {named:?}, but it is read with {given:?}: set the declared \
         separator (--separator, source.separator)"
    )]
    OtherSeparator { path: PathBuf, named: char, given: char },
    #[error("{path} is empty: a CSV file starts with a header row; write one, or read it as ndjson")]
    NoHeader { path: PathBuf },
    #[error(
        "{path} is not NDJSON, but the schema explodes an array of each record: name a file of JSON records, or a \
         schema without explode"
    )]
    ExplodeUnsupported { path: PathBuf },
    #[error("{path} is {what}")]
    Foreign { path: PathBuf, what: &'static str },
    #[error("the header row of {path} cannot be read ({rejection}): correct line 1")]
    UnreadableHeader { path: PathBuf, rejection: RejectionReason },
    #[error("cannot use the header row of {path}: {source}")]
    Header { path: PathBuf, source: HeaderError },
    #[error("cannot use the columns of {path}: {source}")]
    Columns { path: PathBuf, source: ArrowColumnError },
    #[error("{path} cannot be read as Parquet after record {record} ({fault}): write it again or convert it to ndjson")]
    Parquet { path: PathBuf, record: u64, fault: &'static str },
    #[error(
        "{path} cannot be read as Parquet after record {record} (a page{column} is damaged, at row group {group} of {groups}): \
         write it again or convert it to ndjson"
    )]
    ParquetPage { path: PathBuf, record: u64, column: String, group: usize, groups: usize },
    #[error(
        "column \"{column}\" of {path} is compressed with {codec}, which is not supported: write the file with zstd or \
         snappy, or omit the column"
    )]
    ParquetCodec { path: PathBuf, column: String, codec: &'static str },
    #[error(
        "{path} has more than {limit} columns: use a file with fewer; `throng audit` can also read a selection (--columns A,B,…)"
    )]
    TooManyColumns { path: PathBuf, limit: usize },
    #[error("{path} has no column \"{column}\"{near}: check its spelling and, for CSV, the separator")]
    NoSuchColumn { path: PathBuf, column: String, near: String },
    #[error("columns {first} and {second} of {path} have the same name: rename one of them")]
    RepeatedColumn { path: PathBuf, first: usize, second: usize },
    #[error(
        "columns {first} and {second} of {path} have no name: name them in the header row, and remove lines above it, \
         such as a title"
    )]
    NamelessColumns { path: PathBuf, first: usize, second: usize },
}

impl SourceError {
    /// Returns true if the stop flag interrupted the read.
    pub fn is_stop(&self) -> bool {
        matches!(self, Self::Read { source, .. } if is_stop(source))
    }
}
