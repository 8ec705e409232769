//! Topic messages and their cells.

use crate::{RecordDecoder, push_decoded_row};
use throng_core::values::moment;
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_core::values::rejection::RejectionReason;

/// Message with a value.
#[derive(Clone, Copy, Debug)]
pub struct TopicMessage<'a> {
    /// Source topic.
    pub topic: &'a str,
    /// Key, if any.
    pub key: Option<&'a [u8]>,
    /// Value.
    pub value: &'a [u8],
    /// Headers in order.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
    /// Timestamp in milliseconds since 1970, if known.
    pub timestamp_ms: Option<i64>,
}

/// Reason for a decoding failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeFailure {
    /// The message is malformed.
    Rejected {
        /// Reason of the rejection.
        reason: RejectionReason,
        /// Attribute at fault, if any.
        attribute: Option<usize>,
    },
    /// A schema is temporarily unavailable; retry.
    SchemaPending,
}

impl From<RejectionReason> for DecodeFailure {
    fn from(reason: RejectionReason) -> Self {
        Self::Rejected { reason, attribute: None }
    }
}

/// Decoder of a key or value.
pub trait MessagePartDecoder: std::fmt::Debug + Send + Sync {
    /// Sets the cells of the last row of `into`.
    ///
    /// # Errors
    /// Fails if the part cannot be decoded; the row is then incomplete.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), DecodeFailure>;
}

impl<D: RecordDecoder> MessagePartDecoder for D {
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), DecodeFailure> {
        Ok(RecordDecoder::fill(self, payload, into)?)
    }
}

/// Mapping of message parts to cells.
#[derive(Debug)]
pub struct MessageDecoder {
    /// Decoder of values.
    pub value: Box<dyn MessagePartDecoder>,
    /// Decoder of keys, if needed.
    pub key: Option<Box<dyn MessagePartDecoder>>,
    /// Header names with their attributes.
    pub headers: Vec<(String, usize)>,
    /// Longest accepted header, in bytes.
    pub max_header_bytes: usize,
    /// Attributes with the timestamp.
    pub timestamps: Vec<usize>,
    /// Attributes with the topic name.
    pub topics: Vec<usize>,
}

impl MessageDecoder {
    /// Returns true if headers are needed.
    pub fn wants_headers(&self) -> bool {
        !self.headers.is_empty()
    }

    /// Adds `message` as one row, or one per element.
    ///
    /// # Errors
    /// Fails if the message cannot be decoded; `into` is then unchanged.
    pub fn decode(
        &self,
        message: &TopicMessage<'_>,
        coordinate: RecordPosition,
        into: &mut RawBatch,
    ) -> Result<(), DecodeFailure> {
        push_decoded_row(coordinate, into, |into| {
            if let (Some(part), Some(key)) = (&self.key, message.key) {
                part.fill(key, into)?;
            }
            self.set_envelope_cells(message, into)?;
            // Last, because all records of the value receive the cells set before.
            self.value.fill(message.value, into)
        })
    }

    fn set_envelope_cells(&self, message: &TopicMessage<'_>, into: &mut RawBatch) -> Result<(), DecodeFailure> {
        for (name, attribute) in &self.headers {
            for (_, value) in message.headers.iter().filter(|(header, _)| header == name) {
                if value.is_some_and(|value| value.len() > self.max_header_bytes) {
                    return Err(RejectionReason::Oversized.into());
                }
                let token = match value {
                    Some(bytes) => RawToken::Text(std::str::from_utf8(bytes).map_err(|_| RejectionReason::NotUtf8)?),
                    None => RawToken::Null,
                };
                if !into.set(*attribute, token) {
                    // Two headers of one name are ambiguous.
                    return Err(RejectionReason::DuplicateKey.into());
                }
            }
        }
        if let (false, Some(millis)) = (self.timestamps.is_empty(), message.timestamp_ms) {
            let text = moment::rfc3339(millis).ok_or(RejectionReason::WrongType)?;
            for &attribute in &self.timestamps {
                into.set(attribute, RawToken::Text(&text));
            }
        }
        for &attribute in &self.topics {
            into.set(attribute, RawToken::Text(message.topic));
        }
        Ok(())
    }
}
