//! Avro decoder: one binary datum per record.
//!
//! `apache-avro` parses the writer schema, which is compiled once ([`shape`]); the bytes are decoded by it
//! ([`datum`]). Unions are transparent: a field of type `["null", "string"]` is a text or null, and a pointer
//! continues in the branch that is present.
//!
//! | Avro | cell |
//! |---|---|
//! | int, long, float, double, decimal | number |
//! | boolean, null, string, enum, uuid | Boolean, null, text |
//! | date, timestamp-*, local-timestamp-* | date, or UTC time with milliseconds, in ISO 8601 |
//! | time-millis, time-micros | `10:05:07.250` |
//! | bytes | text if valid UTF-8, otherwise Base64 |
//! | fixed of 16 bytes | UUID |
//! | other fixed, duration | Base64 text |
//! | array, map, record | JSON text |

mod avro_types;
mod datum_reader;
#[cfg(test)]
mod tests;

use super::message_tree::SelectedPaths;
use super::record_decoder::NumberedFields;
use super::{DecodeLimits, RecordDecoder, UnknownCellPolicy};
use avro_types::{AvroType, AvroTypeGraph};
use throng_core::values::raw_batch::RawBatch;
use throng_core::values::rejection::RejectionReason;

pub use avro_types::AvroSchemaError;

/// Decodes data of one writer schema.
#[derive(Debug)]
pub struct AvroCodec {
    shapes: AvroTypeGraph,
    paths: SelectedPaths,
    /// Attributes without a field in the writer schema.
    missing: Vec<usize>,
}

impl AvroCodec {
    /// Creates a codec for data written with `schema` (an Avro schema in JSON).
    ///
    /// # Errors
    /// Returns an error if `schema` is not an Avro schema.
    pub fn new(
        schema: &str,
        fields: &NumberedFields,
        limits: DecodeLimits,
        unknown: UnknownCellPolicy,
    ) -> Result<Self, AvroSchemaError> {
        Self::with_schema_parts(schema, &[], fields, limits, unknown)
    }

    /// Creates a codec for a `schema` that uses types defined in `parts`.
    ///
    /// # Errors
    /// Returns an error if one of them is not an Avro schema, or if a type is undefined.
    pub fn with_schema_parts(
        schema: &str,
        parts: &[String],
        fields: &NumberedFields,
        limits: DecodeLimits,
        unknown: UnknownCellPolicy,
    ) -> Result<Self, AvroSchemaError> {
        let shapes = AvroTypeGraph::parse(schema, parts)?;
        let mut missing = Vec::new();
        for (attribute, field) in fields {
            if !shapes.contains_field(field)? {
                missing.push(*attribute);
            }
        }
        Ok(Self { shapes, paths: SelectedPaths::new(fields, limits, unknown), missing })
    }

    /// Returns the approximate memory of the codec in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // Memory per type or field, including its name.
        self.shapes.size() * 256 + self.paths.bytes(self.shapes.most_fields())
    }

    /// Returns the attributes without a field in the writer schema.
    #[must_use]
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// Returns `true` if no attribute selects some top-level field.
    #[must_use]
    pub fn drops(&self) -> bool {
        let root = &self.paths.root;
        let drops = |fields: &[(String, usize)]| fields.iter().any(|(name, _)| root.child(name).is_none());
        root.attributes.is_empty()
            && matches!(self.shapes.get(self.shapes.root()), AvroType::Record(fields) if drops(fields))
    }
}

impl RecordDecoder for AvroCodec {
    /// See [`RecordDecoder::fill`]. Each field of the writer schema that no attribute selects adds one to
    /// `into.unknown_cells`.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        if payload.len() > self.paths.limits.max_record_bytes {
            return Err(RejectionReason::Oversized);
        }
        datum_reader::fill(&self.shapes, &self.paths, payload, into)
    }
}
