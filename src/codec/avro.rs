//! Avro: one binary datum a record, read straight into the cells of the fields.
//!
//! A writer schema is compiled once: [`shape`] is what the bytes look like, [`take`] which of them lead to attributes. What no
//! attribute wants is passed over without being built. Unions are looked through: a field of type `["null", "string"]` is a
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

mod read;
mod shape;
mod spell;
mod take;
#[cfg(test)]
mod tests;

use super::record::Fields;
use super::{Decoder, Limits, Unknown};
use crate::records::raw::RawBatch;
use crate::telemetry::RejectionReason;
use read::Bytes;
use shape::Shapes;
use take::Take;

pub use shape::BadSchema;

/// Decodes data of one writer schema.
#[derive(Debug)]
pub struct AvroCodec {
    shapes: Shapes,
    take: Take,
    /// The records are the elements of an array.
    explodes: bool,
    limits: Limits,
    unknown: Unknown,
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
        let take = Take::of_fields(&shapes, fields)?;
        let explodes = fields.iter().any(|(_, field)| field.elements.is_some());
        Ok(Self { shapes, take, explodes, limits, unknown })
    }

    /// Bytes of memory that the codec takes, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // A type or a field with its name, and a place.
        (self.shapes.size() + self.take.size()) * 96
    }

    /// Those of `fields` that nothing in the writer schema leads to.
    #[must_use]
    pub fn missing(&self, fields: &Fields) -> Vec<usize> {
        let mut reached = Vec::new();
        self.take.reached(&mut reached);
        fields.iter().map(|(attribute, _)| *attribute).filter(|attribute| !reached.contains(attribute)).collect()
    }

    /// Whether a field at the top leads to no attribute.
    #[must_use]
    pub fn drops(&self) -> bool {
        self.take.drops()
    }
}

impl Decoder for AvroCodec {
    /// See [`Decoder::fill`]. A field of the writer schema that no attribute leads to adds one to `into.unknown_cells`.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        if payload.len() > self.limits.max_record_bytes {
            return Err(RejectionReason::Oversized);
        }
        let mut walk = take::Walk {
            shapes: &self.shapes,
            bytes: Bytes::new(payload, self.limits.max_depth),
            batch: into,
            unknown: self.unknown,
            text: String::new(),
            exploded: None,
        };
        walk.take(&self.take, 1, false)?;
        walk.bytes.end()?;
        if self.explodes { take::explode(walk, self.limits) } else { Ok(()) }
    }
}
