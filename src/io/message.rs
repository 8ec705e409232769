//! A message as a topic holds it, and how the cells of a record are found in its parts.

use crate::telemetry::RejectionReason;
use throng_core::values::moment;
use throng_core::values::raw::{Coordinate, RawBatch, Token};
use throng_formats::{Decoder, added};

/// A message with a value.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The topic that it came from.
    pub topic: &'a str,
    /// Its key, where it has one.
    pub key: Option<&'a [u8]>,
    /// Its value.
    pub value: &'a [u8],
    /// Its headers in their order.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
    /// When it was written or appended, in milliseconds since 1970, where it says so.
    pub timestamp_ms: Option<i64>,
}

/// Why a message was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecoded {
    /// It cannot be read, for this attribute where it is one.
    Rejected {
        /// What is wrong with it.
        reason: RejectionReason,
        /// The attribute that it is wrong with.
        attribute: Option<usize>,
    },
    /// What it takes to read it cannot be had now. It is to be read again.
    Wait,
}

impl From<RejectionReason> for Undecoded {
    fn from(reason: RejectionReason) -> Self {
        Self::Rejected { reason, attribute: None }
    }
}

/// Decodes one part of a message, its key or its value.
pub trait Part: std::fmt::Debug + Send + Sync {
    /// Sets the cells of the row of `into` that was opened last.
    ///
    /// # Errors
    /// Why they could not be; the row and the count of unknown cells are then in between.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), Undecoded>;
}

impl<D: Decoder> Part for D {
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), Undecoded> {
        Ok(Decoder::fill(self, payload, into)?)
    }
}

/// Where the cells of a record are in a message.
#[derive(Debug)]
pub struct Messages {
    /// The decoder of values.
    pub value: Box<dyn Part>,
    /// The decoder of keys, where an attribute is in them.
    pub key: Option<Box<dyn Part>>,
    /// Attributes that are headers, each with the header's name.
    pub headers: Vec<(String, usize)>,
    /// The longest header that is read, in bytes.
    pub max_header_bytes: usize,
    /// Attributes that are the timestamp.
    pub timestamps: Vec<usize>,
    /// Attributes that are the topic's name.
    pub topics: Vec<usize>,
}

impl Messages {
    /// Whether the headers of a message are looked at.
    pub fn wants_headers(&self) -> bool {
        !self.headers.is_empty()
    }

    /// Adds `message` as one row of `into`, or as one for each of its elements.
    ///
    /// # Errors
    /// Why it could not be; `into` then has the rows and the count of unknown cells that it had before.
    pub fn decode(&self, message: &Message<'_>, coordinate: Coordinate, into: &mut RawBatch) -> Result<(), Undecoded> {
        added(coordinate, into, |into| {
            if let (Some(part), Some(key)) = (&self.key, message.key) {
                part.fill(key, into)?;
            }
            self.envelope(message, into)?;
            // Last: the value may be many records, which all have what is set by then.
            self.value.fill(message.value, into)
        })
    }

    /// What is around key and value.
    fn envelope(&self, message: &Message<'_>, into: &mut RawBatch) -> Result<(), Undecoded> {
        for (name, attribute) in &self.headers {
            for (_, value) in message.headers.iter().filter(|(header, _)| header == name) {
                if value.is_some_and(|value| value.len() > self.max_header_bytes) {
                    return Err(RejectionReason::Oversized.into());
                }
                let token = match value {
                    Some(bytes) => Token::Text(std::str::from_utf8(bytes).map_err(|_| RejectionReason::NotUtf8)?),
                    None => Token::Null,
                };
                if !into.set(*attribute, token) {
                    // Which of two headers counts would be a guess.
                    return Err(RejectionReason::DuplicateKey.into());
                }
            }
        }
        if let (false, Some(millis)) = (self.timestamps.is_empty(), message.timestamp_ms) {
            let text = moment::rfc3339(millis).ok_or(RejectionReason::WrongType)?;
            for &attribute in &self.timestamps {
                into.set(attribute, Token::Text(&text));
            }
        }
        for &attribute in &self.topics {
            into.set(attribute, Token::Text(message.topic));
        }
        Ok(())
    }
}
