//! Avro: one binary datum a record.
//!
//! `apache-avro` reads the writer schema, which is compiled once ([`shape`]); the bytes are read under it ([`datum`]). Unions are looked through: a field of type `["null", "string"]` is a
//! text or nothing, and a pointer goes into whichever branch is there.
//!
//! | Avro | cell |
//! |---|---|
//! | int, long, float, double, decimal | a number |
//! | boolean, null, string, enum, uuid | a truth value, nothing, text |
//! | date, timestamp-*, local-timestamp-* | the day, or the moment in UTC to the millisecond, in ISO 8601 |
//! | time-millis, time-micros | `10:05:07.250` |
//! | bytes | the text that they are in UTF-8; else in Base64 |
//! | fixed of 16 bytes | as a uuid |
//! | other fixed, duration | text in Base64 |
//! | array, map, record | their JSON text |

mod datum;
mod shape;
#[cfg(test)]
mod tests;

use super::record::Fields;
use super::tree::Paths;
use super::{Decoder, Limits, Unknown};
use shape::{Shape, Shapes};
use throng_core::values::raw::RawBatch;
use throng_core::values::rejection::RejectionReason;

pub use shape::BadSchema;

/// Decodes data of one writer schema.
#[derive(Debug)]
pub struct AvroCodec {
    shapes: Shapes,
    paths: Paths,
    /// Fields that nothing in the writer schema leads to.
    missing: Vec<usize>,
}

impl AvroCodec {
    /// A codec for data that were written under `schema` (an Avro schema in JSON).
    ///
    /// # Errors
    /// When that is no Avro schema.
    pub fn new(schema: &str, fields: &Fields, limits: Limits, unknown: Unknown) -> Result<Self, BadSchema> {
        Self::of_parts(schema, &[], fields, limits, unknown)
    }

    /// The same, where `schema` names types that `parts` define.
    ///
    /// # Errors
    /// When one of them is no Avro schema, or a type is not defined.
    pub fn of_parts(
        schema: &str,
        parts: &[String],
        fields: &Fields,
        limits: Limits,
        unknown: Unknown,
    ) -> Result<Self, BadSchema> {
        let shapes = Shapes::parse(schema, parts)?;
        let mut missing = Vec::new();
        for (attribute, field) in fields {
            if !shapes.leads_to(field)? {
                missing.push(*attribute);
            }
        }
        Ok(Self { shapes, paths: Paths::new(fields, limits, unknown), missing })
    }

    /// Bytes of memory that the codec takes, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // A type or a field with its name.
        self.shapes.size() * 256 + self.paths.bytes(self.shapes.most_fields())
    }

    /// Those of its fields that nothing in the writer schema leads to.
    #[must_use]
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// Whether a field at the top leads to no attribute.
    #[must_use]
    pub fn drops(&self) -> bool {
        let root = &self.paths.root;
        let drops = |fields: &[(String, usize)]| fields.iter().any(|(name, _)| root.child(name).is_none());
        root.attributes.is_empty()
            && matches!(self.shapes.get(self.shapes.root()), Shape::Record(fields) if drops(fields))
    }
}

impl Decoder for AvroCodec {
    /// See [`Decoder::fill`]. A field of the writer schema that no attribute leads to adds one to `into.unknown_cells`.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        if payload.len() > self.paths.limits.max_record_bytes {
            return Err(RejectionReason::Oversized);
        }
        datum::fill(&self.shapes, &self.paths, payload, into)
    }
}
