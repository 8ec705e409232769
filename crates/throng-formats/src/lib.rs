//! Codecs: from the bytes of a record to raw cells, and from the cells of a fragment to the bytes of a line.
//!
//! A [`Decoder`] types nothing and judges no value; it finds the cells of the schema's attributes and refuses what is not
//! a record. A refused record leaves no row behind and is named by a [`RejectionReason`](throng_core::values::rejection::RejectionReason), which has no place for a value. An
//! [`Encoder`] writes the lines of a group and reads them back. A format of lines is added in [`LineFormat`].
//!
//! | file | what it holds |
//! |---|---|
//! | `json` | JSON objects with the fields of a schema; `path_tree` leads to them, `json_array` takes an array apart |
//! | `json_keys` | JSON objects that nobody has described: a column for each key |
//! | `json_schema` | what a JSON Schema says of fields |
//! | `avro` | Avro data of a writer schema |
//! | `protobuf` | Protobuf messages of a schema |
//! | `tree` | a decoded message as a tree of values, and the walk from it to the cells |
//! | `text` | a part of a message that is one text or number |
//! | `not_finite` | NaN and infinities, which JSON has not and its writers write |
//! | `csv` | rows under a header |
//! | `arrow_cells`, `arrow_text` | Arrow columns, as Parquet files are read, and the text of their cells |
//! | `record` | [`Decoder`], and what it is told: fields, limits, what becomes of unknown cells |
//! | `line` | [`Encoder`] |
//! | `json_lines`, `nested_lines`, `csv_lines`, `avro_lines`, `protobuf_lines` | the formats of lines |
//! | `typed` | groups whose lines have typed columns |
//! | `joined_lines` | lines of one group with room for all others |
//! | `catalog` | the lines of a catalog of counterfeits |

mod arrow_cells;
mod arrow_text;
mod avro;
mod avro_lines;
mod catalog;
mod csv;
mod csv_lines;
mod joined_lines;
mod json;
mod json_array;
mod json_keys;
mod json_lines;
mod json_schema;
mod line;
mod nested_lines;
mod not_finite;
mod path_tree;
mod protobuf;
mod protobuf_lines;
mod record;
mod text;
mod tree;
mod typed;

pub use arrow_cells::{ArrowCodec, ArrowRows, ColumnError};
pub use avro::{AvroCodec, BadSchema};
pub use catalog::CatalogGroup;
pub use csv::{CsvCodec, HeaderError, Row};
pub use json::JsonCodec;
pub use json_keys::{JsonKeys, Refusal};
pub use json_schema::{BadJsonSchema, JsonSchema, Said};
pub use line::Encoder;
pub use nested_lines::{Nesting, Step};
pub use protobuf::{BadProtobuf, MOST_INDEXES, MessageIndex, ProtobufCodec, ProtobufMessage, ProtobufSchema};
pub use record::{Decoder, Field, Fields, Limits, Unknown, added};
pub use text::{NumberCodec, TextCodec};
pub use typed::{CellKind, TypedGroup};

use avro_lines::AvroLines;
use csv_lines::CsvLines;
use joined_lines::JoinedLines;
use json_lines::{FramedJsonLines, JsonLines};
use nested_lines::NestedLines;
use protobuf_lines::ProtobufLines;
use std::sync::Arc;

/// The format of the lines that leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// One JSON object; an omitted cell has no key.
    Json,
    /// One JSON object, in which each cell stands where the way to its attribute leads; what has no cell is left out.
    Nested(Nesting),
    /// One row; a missing cell is empty, an empty string is `""`. A cell cannot be omitted.
    Csv {
        /// One ASCII byte, neither a quote nor a line break.
        separator: u8,
    },
    /// One JSON object behind the number of its schema, nested where there are ways to the attributes. These are the groups whose lines
    /// may be written, here and below.
    FramedJson(Arc<[TypedGroup]>, Option<Nesting>),
    /// One Avro datum; a cell cannot be omitted.
    Avro(Arc<[TypedGroup]>),
    /// One Protobuf message; an omitted cell is a missing one.
    Protobuf(Arc<[TypedGroup]>),
}

/// The lines of one group: its attributes in their order, in one format. Treatment writes by it, verification reads by it.
#[derive(Clone, Debug)]
pub struct LineLayout(Arc<dyn Encoder>);

impl LineLayout {
    /// The layout of lines in `format` with one cell for each of `names`.
    #[must_use]
    pub fn new(format: &LineFormat, names: &[&str]) -> Self {
        Self(match format {
            LineFormat::Json => Arc::new(JsonLines::new(names)),
            LineFormat::Nested(nesting) => Arc::new(NestedLines::new(nesting, names)),
            LineFormat::Csv { separator } => Arc::new(CsvLines::new(names.len(), *separator)),
            LineFormat::FramedJson(groups, nesting) => Arc::new(FramedJsonLines::new(groups, nesting.as_ref(), names)),
            LineFormat::Protobuf(groups) => Arc::new(ProtobufLines::of(groups, names)),
            LineFormat::Avro(groups) => Arc::new(AvroLines::of(groups, names)),
        })
    }

    /// The layout of rows in `format` with one cell for each of `names`, of which a line fills those at `places` (ascending) and
    /// leaves the others null.
    #[must_use]
    pub fn joined(format: &LineFormat, names: &[&str], places: &[usize]) -> Self {
        Self(Arc::new(JoinedLines::new(Self::new(format, names).0, names.len(), places)))
    }

    /// Whether its lines are rows that lines of every other group may stand beside.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.0.is_joined()
    }

    /// Appends one line; see [`Encoder::encode`].
    pub fn write(&self, cells: &[&str], out: &mut Vec<u8>) {
        self.0.encode(cells, out);
    }

    /// The cells of a line; see [`Encoder::read`].
    pub fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        self.0.read(line, cells)
    }
}

#[cfg(test)]
mod explode_tests;
#[cfg(test)]
mod line_tests;
#[cfg(test)]
mod testing;
