//! Codecs between bytes and cells. A [`RecordDecoder`] finds the cells of a record; a [`LineLayout`] writes and reads
//! lines.

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
    /// One JSON object with each cell at its path.
    Nested(NestedPaths),
    /// One CSV row. A missing cell is empty, an empty string is `""`, and a cell cannot be omitted.
    Csv {
        /// One ASCII byte other than a quote or a line break.
        separator: u8,
    },
    /// One JSON object after the schema ID, with optional paths. Only listed groups can be written, as below.
    FramedJson(Arc<[TypedGroup]>, Option<NestedPaths>),
    /// One Avro datum; a cell cannot be omitted.
    Avro(Arc<[TypedGroup]>),
    /// One Protobuf message; an omitted cell becomes a missing one.
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

    /// Returns the layout of lines with cells `names`.
    #[must_use]
    pub fn layout(&self, names: &[&str]) -> LineLayout {
        LineLayout::new(self.encoder(names))
    }

    /// Returns the layout of rows `names` with null outside `places` (ascending).
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
