//! Files as sources and sinks.
//!
//! A source reads NDJSON, CSV or Parquet in order. What is written is there whole or not at all, but where lines leave as they are
//! released (standard input is a stream).
//!
//! | files | what they hold |
//! |---|---|
//! | `source`, `reader`, `position` | files as a source, one after the other, and how far they have been read |
//! | `listing`, `pattern` | the files of a directory or a pattern |
//! | `stream`, `inflate`, `gzip`, `waiting` | the text of a file, also where it is compressed or a pipe that is waited for |
//! | `ndjson_lines`, `csv_rows`, `parquet_rows` | the records of each format |
//! | `undescribed`, `foreign` | files that no schema describes, or that are something else |
//! | [`whole`] | a file that is written beside its place and renamed |
//! | `outputs` | the output of a group in each format; the release of a data set |
//! | [`sink`], `lineage` | verified batches into the outputs, dead letters and lineage |
//! | `source_error`, `sink_error` | what can go wrong |

mod csv_rows;
mod foreign;
mod gzip;
mod inflate;
mod lineage;
mod listing;
mod ndjson_lines;
mod outputs;
mod parquet_rows;
mod pattern;
mod position;
mod reader;
pub mod sink;
mod sink_error;
mod source;
mod source_error;
mod stream;
mod undescribed;
mod waiting;
pub mod whole;

pub use csv_rows::LongRows;
pub use listing::{content_digest_of, digest_of, files_of, is_at_rest, is_of_several, telling};
pub use outputs::{Filling, GroupColumns, Replacement, Visible};
pub use parquet_rows::rows_announced;
pub use position::SourcePosition;
pub use reader::Reading;
pub use sink_error::SinkError;
pub use source::{FileSource, ReadOutcome};
pub use source_error::SourceError;
pub use stream::{open_text, plain_length};
pub use undescribed::{ColumnChoice, separator_of};
pub use waiting::StopFlag;

/// How records are written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Ndjson,
    /// A header row, then one row a record; fields may be quoted with `"` and then hold line breaks.
    Csv {
        /// One ASCII byte, neither a quote nor a line break.
        separator: u8,
    },
    /// Apache Parquet.
    Parquet,
}
