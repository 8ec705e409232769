//! Files as sources and sinks.

mod apple_health;
pub mod atomic_file;
mod csv_rows;
mod decompression;
mod file_listing;
mod file_snapshot;
#[cfg(test)]
mod file_test_helpers;
mod format_detection;
mod format_reader;
pub mod lineage_entries;
mod name_pattern;
mod ndjson_lines;
mod output_columns;
mod output_writers;
mod parquet_rows;
mod parquet_writer;
mod pipe_reader;
mod schemaless_files;
mod separator;
pub mod sink;
mod sink_error;
mod source;
mod source_error;
mod text_stream;

pub use file_listing::{content_digest_of, files_of, format_sample_of, is_rereadable, names_several_files};
pub use file_snapshot::FileSnapshot;
pub use output_columns::{ColumnType, OutputColumn};
pub use output_writers::{GroupColumns, ReleaseTarget};
pub use parquet_rows::declared_row_count;
pub use parquet_writer::cell_bounds;
pub use pipe_reader::StopFlag;
pub use schemaless_files::{ColumnChoice, format_by_content, separator_of};
pub use sink_error::SinkError;
pub use source::{FileSource, ReadOutcome, SourcePosition};
pub use source_error::SourceError;
pub use text_stream::{open_text, plain_length};

use crate::telemetry::RejectionReason;
use throng_formats::{DecodeLimits, FieldPath, UnknownCellPolicy};

/// Format of the records in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// One JSON object per line.
    Ndjson,
    /// Header row, then one row per record.
    Csv {
        /// ASCII byte, neither quote nor line break.
        separator: u8,
    },
    /// Apache Parquet.
    Parquet,
    /// XML export of Apple's Health app; input only.
    AppleHealth,
}

/// Settings of a file source.
#[derive(Clone, Debug)]
pub struct FileReadSettings {
    /// Format of the files.
    pub format: FileFormat,
    /// Fields of a record.
    pub fields: Vec<FieldPath>,
    /// Size limits of a record.
    pub limits: DecodeLimits,
    /// Treatment of unknown members.
    pub unknown: UnknownCellPolicy,
    /// Interrupts long reads.
    pub stop: StopFlag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextRecord {
    Record,
    Rejected(RejectionReason),
    Tombstone,
    Blank,
    /// Another format, with the remedy.
    Foreign(&'static str),
    TooManyColumns,
    End,
}
