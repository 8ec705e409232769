//! The decoder of messages of one type.

use super::bad::BadProtobuf;
use super::shape::Shapes;
use super::take::{Take, Walk, explode};
use super::wire::Bytes;
use crate::codec::record::Fields;
use crate::codec::{Decoder, Limits, Unknown};
use crate::records::raw::RawBatch;
use crate::telemetry::RejectionReason;
use prost_reflect::MessageDescriptor;

/// Decodes messages of one type.
#[derive(Debug)]
pub struct ProtobufCodec {
    shapes: Shapes,
    take: Take,
    /// The records are the elements of a list.
    explodes: bool,
    limits: Limits,
    unknown: Unknown,
}

impl ProtobufCodec {
    pub(super) fn of(
        message: &MessageDescriptor,
        fields: &Fields,
        limits: Limits,
        unknown: Unknown,
    ) -> Result<Self, BadProtobuf> {
        let shapes = Shapes::of(message)?;
        let take = Take::of_fields(&shapes, fields);
        let explodes = fields.iter().any(|(_, field)| field.elements.is_some());
        Ok(Self { shapes, take, explodes, limits, unknown })
    }

    /// Bytes of memory that the codec takes, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.shapes.bytes() + self.take.bytes()
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
        let mut walk = Walk::new(&self.shapes, self.limits, into, self.unknown);
        walk.record(&self.take, Bytes(payload))?;
        if self.explodes { explode(walk) } else { Ok(()) }
    }
}
