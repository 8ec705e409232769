//! Codecs between bytes and cells: decoders for input records, encoders for output lines.
//!
//! A [`RecordDecoder`] finds the cells of the schema's attributes and refuses malformed records. It does not assign types
//! or check values. A refused record adds no row. Its
//! [`RejectionReason`](throng_core::values::rejection::RejectionReason) carries no data values. A
//! [`LineLayout`] writes the lines of a group and reads them back. [`LineFormat`] lists the line formats.
//!
//! | file | content |
//! |---|---|
//! | `json` | JSON objects decoded by the fields of a schema; uses `path_tree` and, for arrays of records, `json_array` |
//! | `json_keys` | JSON objects without a schema: one column per key |
//! | `json_schema` | queries of a JSON Schema about fields |
//! | `avro` | Avro data of a writer schema |
//! | `protobuf` | Protobuf messages of a schema |
//! | `tree` | value tree of a decoded message, and the conversion of the tree to cells |
//! | `text` | message parts that are one text or number |
//! | `not_finite` | NaN and infinities, which JSON lacks but some JSON writers emit |
//! | `csv` | CSV rows under a header |
//! | `arrow_cells`, `arrow_text` | Arrow columns (used for Parquet files) and the text of their cells |
//! | [`message`] | parts of a message, and their mapping to the cells of a record |
//! | `record` | [`RecordDecoder`] and its settings: fields, limits, handling of unknown cells |
//! | `json_lines`, `nested_lines`, `csv_lines`, `avro_lines`, `protobuf_lines` | line formats |
//! | `typed` | lines with typed columns |
//! | `joined_lines` | lines of one group in rows that have a column for every attribute |

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod arrow_cells;
mod arrow_text;
mod avro;
mod avro_lines;
mod csv_decoder;
mod csv_lines;
mod joined_lines;
mod json_array_elements;
mod json_decoder;
mod json_lines;
mod json_schema;
pub mod message;
mod message_tree;
mod nested_lines;
mod non_finite_numbers;
mod path_tree;
mod protobuf;
mod protobuf_lines;
mod record_decoder;
mod scalar_codecs;
mod schemaless_json;
mod typed_lines;

pub use arrow_cells::{ArrowCodec, ArrowColumnError, ArrowRows};
pub use avro::{AvroCodec, AvroSchemaError};
pub use csv_decoder::{CsvCodec, CsvRow, HeaderError};
pub use json_decoder::JsonCodec;
pub use json_schema::{JsonSchema, JsonSchemaError, SchemaFieldStatus};
pub use nested_lines::{NestedPaths, NestingStep};
pub use protobuf::{
    MAX_MESSAGE_INDEXES, MessageIndex, ProtobufCodec, ProtobufMessage, ProtobufSchema, ProtobufSchemaError,
};
pub use record_decoder::{DecodeLimits, FieldPath, NumberedFields, RecordDecoder, UnknownCellPolicy, push_decoded_row};
pub use scalar_codecs::{NumberCodec, TextCodec};
pub use schemaless_json::{SchemalessJsonCodec, SchemalessRefusal};
pub use typed_lines::{CellKind, TypedGroup};

use avro_lines::AvroLines;
use csv_lines::CsvLines;
use joined_lines::JoinedLines;
use json_lines::{FramedJsonLines, JsonLines};
use nested_lines::NestedLines;
use protobuf_lines::ProtobufLines;
use std::sync::Arc;
use throng_core::line_encoder::{LineEncoder, LineLayout};

/// Format of the output lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// One JSON object; an omitted cell has no key.
    Json,
    /// One JSON object with each cell at its attribute's path. Omitted cells have no key.
    Nested(NestedPaths),
    /// One CSV row. A missing cell is empty; an empty string is `""`. A cell cannot be omitted.
    Csv {
        /// One ASCII byte other than a quote or a line break.
        separator: u8,
    },
    /// One JSON object after the schema ID, nested where attribute paths are given. Only the listed groups can be
    /// written, here and below.
    FramedJson(Arc<[TypedGroup]>, Option<NestedPaths>),
    /// One Avro datum; a cell cannot be omitted.
    Avro(Arc<[TypedGroup]>),
    /// One Protobuf message; an omitted cell is encoded as a missing one.
    Protobuf(Arc<[TypedGroup]>),
}

impl LineFormat {
    fn encoder(&self, names: &[&str]) -> Arc<dyn LineEncoder> {
        match self {
            Self::Json => Arc::new(JsonLines::new(names)),
            Self::Nested(nesting) => Arc::new(NestedLines::new(nesting, names)),
            Self::Csv { separator } => Arc::new(CsvLines::new(names.len(), *separator)),
            Self::FramedJson(groups, nesting) => Arc::new(FramedJsonLines::new(groups, nesting.as_ref(), names)),
            Self::Protobuf(groups) => Arc::new(ProtobufLines::of(groups, names)),
            Self::Avro(groups) => Arc::new(AvroLines::of(groups, names)),
        }
    }

    /// Returns the layout of lines with one cell per name in `names`.
    #[must_use]
    pub fn layout(&self, names: &[&str]) -> LineLayout {
        LineLayout::new(self.encoder(names))
    }

    /// Returns the layout of rows with one cell per name in `names`. A line fills the cells at `places` (ascending) and
    /// writes null for the others.
    #[must_use]
    pub fn joined_layout(&self, names: &[&str], places: &[usize]) -> LineLayout {
        LineLayout::new(Arc::new(JoinedLines::new(self.encoder(names), names.len(), places)))
    }
}

#[cfg(test)]
mod codec_fixtures;
#[cfg(test)]
mod explode_tests;
#[cfg(test)]
mod line_tests;
