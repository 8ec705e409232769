//! Avro decoder: one datum per record (`docs/formats.md`). Pointers enter the present branch of a union.

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
    missing: Vec<usize>,
}

impl AvroCodec {
    /// Creates a codec for data written with the Avro `schema`.
    ///
    /// # Errors
    /// Fails if `schema` is not an Avro schema.
    pub fn new(
        schema: &str,
        fields: &NumberedFields,
        limits: DecodeLimits,
        unknown: UnknownCellPolicy,
    ) -> Result<Self, AvroSchemaError> {
        Self::with_schema_parts(schema, &[], fields, limits, unknown)
    }

    /// Creates a codec for a `schema` with types in `parts`.
    ///
    /// # Errors
    /// Fails if one is not an Avro schema, or if a type is undefined.
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

    /// Returns the approximate memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.shapes.size() * 256 + self.paths.bytes(self.shapes.most_fields())
    }

    /// Returns the attributes without a field.
    #[must_use]
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// Returns `true` if some top-level field is not selected.
    #[must_use]
    pub fn drops(&self) -> bool {
        let root = &self.paths.root;
        let drops = |fields: &[(String, usize)]| fields.iter().any(|(name, _)| root.child(name).is_none());
        root.attributes.is_empty()
            && matches!(self.shapes.get(self.shapes.root()), AvroType::Record(fields) if drops(fields))
    }
}

impl RecordDecoder for AvroCodec {
    /// Each unselected field of the writer schema adds one to `into.unknown_cells`.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        if payload.len() > self.paths.limits.max_record_bytes {
            return Err(RejectionReason::Oversized);
        }
        datum_reader::fill(&self.shapes, &self.paths, payload, into)
    }
}
