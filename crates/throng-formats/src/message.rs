//! Message of a topic, and the mapping of its parts to the cells of a record.

use crate::{RecordDecoder, push_decoded_row};
use throng_core::values::moment;
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_core::values::rejection::RejectionReason;

/// Message with a value.
#[derive(Clone, Copy, Debug)]
pub struct TopicMessage<'a> {
    /// Name of the source topic.
    pub topic: &'a str,
    /// Key, if any.
    pub key: Option<&'a [u8]>,
    /// Value.
    pub value: &'a [u8],
    /// Headers in their order.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
    /// Time at which the message was written or appended, in milliseconds since 1970, if known.
    pub timestamp_ms: Option<i64>,
}

/// Reason for which a message was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeFailure {
    /// The message cannot be decoded.
    Rejected {
        /// Reason of the rejection.
        reason: RejectionReason,
        /// Attribute at fault, if there is one.
        attribute: Option<usize>,
    },
    /// A required schema is not available now. The message must be read again.
    SchemaPending,
}

impl From<RejectionReason> for DecodeFailure {
    fn from(reason: RejectionReason) -> Self {
        Self::Rejected { reason, attribute: None }
    }
}

/// Decoder of one part of a message: its key or its value.
pub trait MessagePartDecoder: std::fmt::Debug + Send + Sync {
    /// Sets the cells of the row of `into` that was opened last.
    ///
    /// # Errors
    /// When the part cannot be decoded. The row and the count of unknown cells are then incomplete.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), DecodeFailure>;
}

impl<D: RecordDecoder> MessagePartDecoder for D {
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), DecodeFailure> {
        Ok(RecordDecoder::fill(self, payload, into)?)
    }
}

/// Mapping of the parts of a message to the cells of a record.
#[derive(Debug)]
pub struct MessageDecoder {
    /// Decoder of values.
    pub value: Box<dyn MessagePartDecoder>,
    /// Decoder of keys, if they contain an attribute.
    pub key: Option<Box<dyn MessagePartDecoder>>,
    /// Attributes that are headers, each with the name of the header.
    pub headers: Vec<(String, usize)>,
    /// Longest accepted header, in bytes.
    pub max_header_bytes: usize,
    /// Attributes that are the timestamp.
    pub timestamps: Vec<usize>,
    /// Attributes that are the name of the topic.
    pub topics: Vec<usize>,
}

impl MessageDecoder {
    /// Returns true if the headers of a message are needed.
    pub fn wants_headers(&self) -> bool {
        !self.headers.is_empty()
    }

    /// Adds `message` as one row of `into`, or as one row per element.
    ///
    /// # Errors
    /// When the message cannot be decoded. `into` then has the rows and the count of unknown cells that it had
    /// before.
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
            // Last, because the value may contain many records, and all of them receive the cells set before.
            self.value.fill(message.value, into)
        })
    }

    /// Sets the cells from headers, timestamp and topic.
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
                    // Two headers of the same name are ambiguous.
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
