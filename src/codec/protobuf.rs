//! Protobuf: one binary message a record, read straight into the cells of the fields.
//!
//! A schema is compiled once, and a message of it: `shape` is what the bytes look like, `take` which of them lead to attributes.
//! What no attribute wants is passed over without being built. Pointers take the names of fields (`heart_rate`, and `heartRate`
//! where that names one field alone).
//!
//! | Protobuf | cell |
//! |---|---|
//! | all kinds of int and float | a number |
//! | bool, string, enum | a truth value, text, the name of the number |
//! | bytes | text in Base64 |
//! | `google.protobuf.Timestamp` | the moment in UTC to the millisecond, in ISO 8601 |
//! | `google.protobuf.Duration` | seconds |
//! | `google.protobuf.StringValue` and its like | the value |
//! | repeated, map, message | their JSON text |
//!
//! What has presence (`optional`, a member of a `oneof`, a message) and is not there is absent. What has none and is not there has
//! the type's default, which is the value: nothing else is written for it.

mod schema;
mod shape;
mod spell;
mod take;
#[cfg(test)]
mod tests;
mod wire;

use super::record::Fields;
use super::{Decoder, Limits, Unknown};
use crate::records::raw::RawBatch;
use crate::telemetry::{RejectionReason, foreign};
use prost_reflect::MessageDescriptor;
use shape::Shapes;
use spell::Bounds;
use take::Take;
use wire::Bytes;

pub use schema::{MOST_INDEXES, MessageIndex, ProtobufMessage, ProtobufSchema};

/// What is no Protobuf schema, or none that can be used. It says what is wrong; a schema has no values of records.
#[derive(Clone, Debug, thiserror::Error)]
#[error("not a Protobuf schema that can be used: {0}")]
pub struct BadProtobuf(String);

impl BadProtobuf {
    /// Says what is wrong.
    #[must_use]
    pub fn new(what: &str) -> Self {
        Self(foreign(what))
    }
}

/// Decodes messages of one type.
#[derive(Debug)]
pub struct ProtobufCodec {
    shapes: Shapes,
    take: Take,
    limits: Limits,
    unknown: Unknown,
}

impl ProtobufCodec {
    fn of(message: &MessageDescriptor, fields: &Fields, limits: Limits, unknown: Unknown) -> Result<Self, BadProtobuf> {
        let shapes = Shapes::of(message)?;
        let take = Take::of_fields(&shapes, fields);
        Ok(Self { shapes, take, limits, unknown })
    }

    /// Those of `fields` that nothing in the message leads to.
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

impl Decoder for ProtobufCodec {
    /// See [`Decoder::fill`]. A field that no attribute leads to adds one to `into.unknown_cells`, however often it is there.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        if payload.len() > self.limits.max_record_bytes {
            return Err(RejectionReason::Oversized);
        }
        let mut walk = take::Walk {
            shapes: &self.shapes,
            bounds: Bounds::new(self.limits.max_depth),
            batch: into,
            unknown: self.unknown,
            text: String::new(),
            met: Vec::new(),
        };
        walk.record(&self.take, Bytes(payload))
    }
}
