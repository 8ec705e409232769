//! The decoder of messages of one type.

use super::bad::BadProtobuf;
use super::shape::Shapes;
use super::spell::Bounds;
use super::take::{Take, Walk};
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
        let mut walk = Walk {
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
