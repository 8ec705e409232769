//! Protobuf: one binary message a record.
//!
//! A schema is compiled once, and a message of it (`shape`); `read` passes over the values that no attribute leads to. Pointers take the names of fields (`heart_rate`, and `heartRate`
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

#[cfg(test)]
mod explode_tests;
mod read;
mod schema;
mod shape;
#[cfg(test)]
mod tests;

pub use schema::{BadProtobuf, MOST_INDEXES, MessageIndex, ProtobufMessage, ProtobufSchema};

use super::record::{Field, Fields};
use super::tree::Paths;
use super::{Decoder, Limits, Unknown};
use crate::records::raw::RawBatch;
use crate::telemetry::RejectionReason;
use prost_reflect::MessageDescriptor;
use shape::Shapes;

/// Decodes messages of one type.
#[derive(Debug)]
pub struct ProtobufCodec {
    shapes: Shapes,
    paths: Paths,
    /// Fields that nothing in the message leads to.
    missing: Vec<usize>,
}

impl ProtobufCodec {
    fn of(message: &MessageDescriptor, fields: &Fields, limits: Limits, unknown: Unknown) -> Result<Self, BadProtobuf> {
        let shapes = Shapes::of(message)?;
        let (mut resolved, mut missing): (Vec<(usize, Field)>, _) = (Vec::new(), Vec::new());
        for (attribute, field) in fields {
            let (field, found) = shapes.resolve(field);
            resolved.push((*attribute, field));
            if !found {
                missing.push(*attribute);
            }
        }
        Ok(Self { shapes, paths: Paths::new(&resolved, limits, unknown), missing })
    }

    /// Bytes of memory that the codec takes, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.shapes.bytes()
    }

    /// Those of its fields that nothing in the message leads to.
    #[must_use]
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// Whether a field at the top leads to no attribute.
    #[must_use]
    pub fn drops(&self) -> bool {
        let root = &self.paths.root;
        let dropped = self.shapes.get(0).fields.iter().any(|field| root.child(&field.name).is_none());
        root.attributes.is_empty() && (dropped || root.is_leaf())
    }
}

impl Decoder for ProtobufCodec {
    /// See [`Decoder::fill`]. A field that no attribute leads to adds one to `into.unknown_cells`, however often it is there.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        if payload.len() > self.paths.limits.max_record_bytes {
            return Err(RejectionReason::Oversized);
        }
        self.paths.fill(&read::read(&self.shapes, &self.paths, payload)?, into)
    }
}
