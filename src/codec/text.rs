//! A part of a message that is one text: a key that names a person, for example.

use super::record::Fields;
use super::{Decoder, Limits};
use crate::records::raw::{RawBatch, Token};
use crate::telemetry::RejectionReason;

/// Takes the payload as it is for the cells of its attributes.
#[derive(Debug)]
pub struct TextCodec {
    attributes: Vec<usize>,
    limits: Limits,
}

impl TextCodec {
    /// A codec for the attributes of `fields`, each of which is the whole text.
    #[must_use]
    pub fn new(fields: &Fields, limits: Limits) -> Self {
        Self { attributes: fields.iter().map(|(attribute, _)| *attribute).collect(), limits }
    }
}

impl Decoder for TextCodec {
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        if payload.len() > self.limits.max_record_bytes {
            return Err(RejectionReason::Oversized);
        }
        let text = std::str::from_utf8(payload).map_err(|_| RejectionReason::NotUtf8)?;
        for &attribute in &self.attributes {
            into.set(attribute, Token::Text(text));
        }
        Ok(())
    }
}
