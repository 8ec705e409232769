//! Fields, limits and formats of records.

use super::nested_output::{is_nested, nesting};
use crate::config::{Config, RecordFormat, UnknownAttributes};
use crate::io::file;
use crate::telemetry::WrittenAs;
use throng_core::values::schema::{AttributeOrigin, Schema};
use throng_formats::{DecodeLimits, FieldPath, LineFormat};

/// Returns the fields of all attributes in a file; message metadata under its name.
pub fn fields(schema: &Schema, flat: bool) -> Vec<FieldPath> {
    schema
        .attributes
        .iter()
        .map(|a| match a.from {
            AttributeOrigin::Value if flat => FieldPath::top_level(&a.column()),
            AttributeOrigin::Value => FieldPath::for_attribute_path(a),
            _ => FieldPath::top_level(&a.name),
        })
        .collect()
}

/// Returns the limits of a record and the treatment of unknown attributes.
pub fn codec_limits(config: &Config) -> (DecodeLimits, throng_formats::UnknownCellPolicy) {
    let limits = DecodeLimits {
        max_record_bytes: usize::try_from(config.source.max_record_bytes).unwrap_or(usize::MAX),
        max_repeated_bytes: config.batch.max_bytes,
        ..DecodeLimits::default()
    };
    let unknown = match config.schema.unknown {
        UnknownAttributes::Drop => throng_formats::UnknownCellPolicy::default(),
        UnknownAttributes::Refuse => throng_formats::UnknownCellPolicy::Refuse,
    };
    (limits, unknown)
}

/// Returns the line format of fragments; Parquet rows are built from JSON lines.
pub fn line_format(config: &Config, schema: &Schema) -> LineFormat {
    match config.sink.format() {
        RecordFormat::Csv => LineFormat::Csv { separator: u8::try_from(config.source.separator).unwrap_or(b',') },
        RecordFormat::Json | RecordFormat::JsonSchema if is_nested(config) => LineFormat::Nested(nesting(schema)),
        // Message and input formats are rejected for files elsewhere.
        RecordFormat::Json
        | RecordFormat::JsonSchema
        | RecordFormat::Parquet
        | RecordFormat::AppleHealth
        | RecordFormat::Avro
        | RecordFormat::Protobuf => LineFormat::Json,
    }
}

/// Returns the metric label.
pub fn format_label(format: RecordFormat) -> WrittenAs {
    match format {
        RecordFormat::Json | RecordFormat::JsonSchema => WrittenAs::Json,
        RecordFormat::Csv => WrittenAs::Csv,
        RecordFormat::Parquet => WrittenAs::Parquet,
        RecordFormat::AppleHealth => WrittenAs::AppleHealth,
        RecordFormat::Avro => WrittenAs::Avro,
        RecordFormat::Protobuf => WrittenAs::Protobuf,
    }
}

/// Converts a configured format.
pub fn file_format(format: RecordFormat, separator: char) -> file::FileFormat {
    match format {
        RecordFormat::Json | RecordFormat::JsonSchema | RecordFormat::Avro | RecordFormat::Protobuf => {
            file::FileFormat::Ndjson
        }
        RecordFormat::Csv => file::FileFormat::Csv { separator: u8::try_from(separator).unwrap_or(b',') },
        RecordFormat::Parquet => file::FileFormat::Parquet,
        RecordFormat::AppleHealth => file::FileFormat::AppleHealth,
    }
}
