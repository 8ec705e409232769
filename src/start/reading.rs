//! How the records of a configuration are read and written: their attributes, their limits, the formats.

use super::nested::{is_nested, nesting};
use crate::config::{Config, Format, Unknown};
use crate::io::file;
use crate::telemetry::WrittenAs;
use throng_core::values::schema::{Origin, Schema};
use throng_formats::{Field, Limits, LineFormat};

/// The attributes as the codecs see them in a file. What a topic's messages have around their values stands there under the
/// attribute's name.
pub fn fields(schema: &Schema, flat: bool) -> Vec<Field> {
    schema
        .attributes
        .iter()
        .map(|a| match a.from {
            Origin::Value if flat => Field::flat(&a.column()),
            Origin::Value => Field::of(a),
            _ => Field::flat(&a.name),
        })
        .collect()
}

/// Limits of a record, and what becomes of unknown attributes.
pub fn codec_limits(config: &Config) -> (Limits, throng_formats::Unknown) {
    let limits = Limits {
        max_record_bytes: usize::try_from(config.source.max_record_bytes).unwrap_or(usize::MAX),
        max_repeated_bytes: config.batch.max_bytes,
        ..Limits::default()
    };
    let unknown = match config.schema.unknown {
        Unknown::Drop => throng_formats::Unknown::default(),
        Unknown::Refuse => throng_formats::Unknown::Refuse,
    };
    (limits, unknown)
}

/// The lines in which fragments leave. Rows of Parquet are made of JSON lines.
pub fn line_format(config: &Config, schema: &Schema) -> LineFormat {
    match config.sink.format() {
        Format::Csv => LineFormat::Csv { separator: u8::try_from(config.source.separator).unwrap_or(b',') },
        Format::Json | Format::JsonSchema if is_nested(config) => LineFormat::Nested(nesting(schema)),
        // Formats of messages are refused where a file is configured.
        Format::Json | Format::JsonSchema | Format::Parquet | Format::Avro | Format::Protobuf => LineFormat::Json,
    }
}

/// The label of records that are written down like this.
pub fn written_as(format: Format) -> WrittenAs {
    match format {
        Format::Json | Format::JsonSchema => WrittenAs::Json,
        Format::Csv => WrittenAs::Csv,
        Format::Parquet => WrittenAs::Parquet,
        Format::Avro => WrittenAs::Avro,
        Format::Protobuf => WrittenAs::Protobuf,
    }
}

/// How a file is written down, in the words of the file room.
pub fn file_format(format: Format, separator: char) -> file::Format {
    match format {
        // Formats of messages are refused where a file is configured.
        Format::Json | Format::JsonSchema | Format::Avro | Format::Protobuf => file::Format::Ndjson,
        Format::Csv => file::Format::Csv { separator: u8::try_from(separator).unwrap_or(b',') },
        Format::Parquet => file::Format::Parquet,
    }
}
