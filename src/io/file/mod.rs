//! Files as sources and sinks.
//!
//! A source reads NDJSON, CSV or Parquet in order. What is written is there whole or not at all, but where lines leave as they are
//! released (standard input is a stream).
//!
//! | files | what they hold |
//! |---|---|
//! | `source`, `reader` | files as a source, one after the other |
//! | `listing`, `pattern` | the files of a directory or a pattern |
//! | `standing` | whether files stay as they are while they are read |
//! | `stream`, `inflate`, `pipe` | the text of a file, also where it is compressed or a pipe that is waited for |
//! | `ndjson_lines`, `csv_rows`, `parquet_rows` | the records of each format |
//! | `undescribed`, `separator`, `foreign` | files that no schema describes, or that are something else |
//! | [`whole`] | a file that is written beside its place and renamed |
//! | `outputs` | the output of a group in each format; the release of a data set |
//! | [`lineage`] | lines of the lineage file |
//! | [`sink`] | verified batches into the outputs, dead letters and lineage |
//! | `source_error`, `sink_error` | what can go wrong |

mod csv_rows;
mod foreign;
mod inflate;
pub mod lineage;
mod listing;
mod ndjson_lines;
mod outputs;
mod parquet_rows;
mod pattern;
mod pipe;
mod reader;
mod separator;
pub mod sink;
mod sink_error;
mod source;
mod source_error;
mod standing;
mod stream;
#[cfg(test)]
mod testing;
mod undescribed;
pub mod whole;

pub use csv_rows::LongRows;
pub use listing::{content_digest_of, files_of, is_at_rest, is_of_several, telling};
pub use outputs::{GroupColumns, Replacement};
pub use parquet_rows::rows_announced;
pub use pipe::StopFlag;
pub use sink_error::SinkError;
pub use source::{FileSource, ReadOutcome, SourcePosition};
pub use source_error::SourceError;
pub use standing::Standing;
pub use stream::{open_text, plain_length};
pub use undescribed::{ColumnChoice, format_by_content, separator_of};

use crate::telemetry::RejectionReason;
use throng_formats::{Field, Limits, Unknown};

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

/// How the files of a source are read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// How they are written down.
    pub format: Format,
    /// What is read of a record.
    pub fields: Vec<Field>,
    /// What a record may cost.
    pub limits: Limits,
    /// What becomes of everything else in it.
    pub unknown: Unknown,
    /// When what takes long is given up.
    pub stop: StopFlag,
}

/// The next record of a file, as the readers of the formats give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Added to the batch: a row, or one for each of its elements but those refused.
    Record,
    Rejected(RejectionReason),
    Tombstone,
    /// A blank line, which is no record.
    Blank,
    /// The input is something else: what, and the remedy.
    Foreign(&'static str),
    /// More columns than were allowed; only where nobody announced them.
    TooManyColumns,
    End,
}
