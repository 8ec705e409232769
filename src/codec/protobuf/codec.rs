//! Decodes messages of one type into cells.

use super::bad::BadProtobuf;
use super::read;
use super::shape::Shapes;
use crate::codec::record::{Field, Fields};
use crate::codec::tree::Paths;
use crate::codec::{Decoder, Limits, Unknown};
use crate::records::raw::RawBatch;
use crate::telemetry::RejectionReason;
use prost_reflect::MessageDescriptor;

/// Decodes messages of one type.
#[derive(Debug)]
pub struct ProtobufCodec {
    shapes: Shapes,
    paths: Paths,
    /// Fields that nothing in the message leads to.
    missing: Vec<usize>,
}

impl ProtobufCodec {
    pub(super) fn of(
        message: &MessageDescriptor,
        fields: &Fields,
        limits: Limits,
        unknown: Unknown,
    ) -> Result<Self, BadProtobuf> {
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
        self.shapes.bytes() + self.paths.bytes(self.shapes.most_fields())
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
        read::fill(&self.shapes, &self.paths, payload, into)
    }
}
