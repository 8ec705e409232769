//! Files as sources and sinks.
//!
//! A source reads NDJSON, CSV or Parquet and resumes exactly where it stopped; a sink appends, and the *durable
//! length* that it reports after a sync is what the next start truncates to, so that bytes written after the last
//! commit never stay.
//!
//! | files | what they hold |
//! |---|---|
//! | `source`, `reader`, `position` | files as a source, one after the other, and how far they have been read |
//! | `listing`, `pattern`, `begun` | the files of a directory or a pattern, and which of them have been read |
//! | `stream`, `inflate`, `gzip`, `waiting` | the text of a file, also where it is compressed or a pipe that is waited for |
//! | `ndjson_lines`, `csv_rows`, `parquet_rows` | the records of each format |
//! | `undescribed`, `foreign` | files that no schema describes, or that are something else |
//! | `sink`, `append`, `segments` | the outputs of the groups: lines of one file, segments of a directory |
//! | `series` | lines in files that are rotated |
//! | [`delivery`] | verified batches, dead letters, certificates and lineage in one flushed write |
//! | `dead_letters`, `certificates`, `lineage`, `marker` | what is written beside the outputs |
//! | `places`, `fingerprint` | whether the files that are there are our own |
//! | `replacement`, [`whole`] | files that are there whole or not at all |
//! | `source_error`, `sink_error` | what can go wrong |

mod append;
mod begun;
mod certificates;
mod csv_rows;
mod dead_letters;
pub mod delivery;
mod fingerprint;
mod foreign;
mod gzip;
mod inflate;
mod lineage;
mod listing;
mod marker;
mod ndjson_lines;
mod parquet_rows;
mod pattern;
mod places;
mod position;
mod reader;
mod replacement;
mod segments;
mod series;
mod sink;
mod sink_error;
mod source;
mod source_error;
mod stream;
mod undescribed;
mod waiting;
pub mod whole;

pub use begun::FileBegun;
pub use certificates::CertificateFile;
pub use csv_rows::LongRows;
pub use dead_letters::DeadLetterFile;
pub use lineage::{LineageEntry, LineageFile};
pub use listing::{files_of, is_at_rest, is_of_several, telling};
pub use marker::FileMarker;
pub use parquet_rows::rows_announced;
pub use places::Places;
pub use position::SourcePosition;
pub use reader::Reading;
pub use replacement::{Filling, Replacement};
pub use series::Rotation;
pub use sink::{FileSink, GroupColumns};
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
    /// Apache Parquet; as an output a directory of segments.
    Parquet,
}
