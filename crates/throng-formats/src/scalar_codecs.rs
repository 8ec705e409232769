//! Decoders for message parts that are one text or number.

use super::record_decoder::NumberedFields;
use super::{DecodeLimits, RecordDecoder};
use throng_core::values::raw_batch::{RawBatch, RawToken};
use throng_core::values::rejection::RejectionReason;

/// Decodes the whole payload as text.
#[derive(Debug)]
pub struct TextCodec {
    attributes: Vec<usize>,
    limits: DecodeLimits,
}

impl TextCodec {
    /// Creates a codec for attributes that are the whole text.
    #[must_use]
    pub fn new(fields: &NumberedFields, limits: DecodeLimits) -> Self {
        Self { attributes: fields.iter().map(|(attribute, _)| *attribute).collect(), limits }
    }
}

impl RecordDecoder for TextCodec {
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        if payload.len() > self.limits.max_record_bytes {
            return Err(RejectionReason::Oversized);
        }
        let text = std::str::from_utf8(payload).map_err(|_| RejectionReason::NotUtf8)?;
        if text.contains(|c: char| c.is_control() && !c.is_whitespace()) {
            // Binary numbers and schema frames can be valid UTF-8.
            return Err(RejectionReason::NotUtf8);
        }
        for &attribute in &self.attributes {
            into.set(attribute, RawToken::Text(text));
        }
        Ok(())
    }
}

/// Decodes the payload as one big-endian integer.
#[derive(Debug)]
pub struct NumberCodec {
    attributes: Vec<usize>,
    bytes: usize,
}

impl NumberCodec {
    /// Creates a codec of numbers of 2, 4 or 8 bytes.
    #[must_use]
    pub fn new(fields: &NumberedFields, bytes: usize) -> Self {
        Self { attributes: fields.iter().map(|(attribute, _)| *attribute).collect(), bytes }
    }
}

impl RecordDecoder for NumberCodec {
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        let number = match *payload {
            [a, b] if self.bytes == 2 => i16::from_be_bytes([a, b]).into(),
            [a, b, c, d] if self.bytes == 4 => i32::from_be_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] if self.bytes == 8 => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
            _ => return Err(RejectionReason::WrongType),
        };
        let number = number.to_string();
        for &attribute in &self.attributes {
            into.set(attribute, RawToken::Number(&number));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldPath;
    use crate::codec_fixtures::MESSAGE_POSITION;

    fn read(codec: &impl RecordDecoder, payload: &[u8]) -> Result<String, RejectionReason> {
        let mut batch = RawBatch::new(1);
        codec.decode(payload, MESSAGE_POSITION, &mut batch).map(|()| format!("{:?}", batch.token(0, 0)))
    }

    #[test]
    fn number_codec_decodes_big_endian_integers() {
        let fields = [(0, FieldPath::from_segments(Vec::new()))];
        for (bytes, payload, expected) in [
            (8, 42_i64.to_be_bytes().to_vec(), Ok("Number(\"42\")")),
            (8, i64::MIN.to_be_bytes().to_vec(), Ok("Number(\"-9223372036854775808\")")),
            (4, (-7_i32).to_be_bytes().to_vec(), Ok("Number(\"-7\")")),
            (2, 258_i16.to_be_bytes().to_vec(), Ok("Number(\"258\")")),
            (8, b"42".to_vec(), Err(RejectionReason::WrongType)),
            (4, 42_i64.to_be_bytes().to_vec(), Err(RejectionReason::WrongType)),
            (2, Vec::new(), Err(RejectionReason::WrongType)),
        ] {
            let found = read(&NumberCodec::new(&fields, bytes), &payload);
            assert_eq!(found, expected.map(str::to_owned), "{bytes} {payload:?}");
        }
    }

    #[test]
    fn text_codec_refuses_binary_numbers_and_frames() {
        let codec = TextCodec::new(&[(0, FieldPath::from_segments(Vec::new()))], DecodeLimits::default());
        for payload in [&42_i64.to_be_bytes()[..], &7_i32.to_be_bytes(), b"\0\0\0\0\x01abc", b"\xff"] {
            assert_eq!(read(&codec, payload), Err(RejectionReason::NotUtf8), "{payload:?}");
        }
        for payload in ["u-42", "3a1e0d2c-7b1f-4d8e-9a53-0c9b7a6d5e4f", " é\t", ""] {
            assert_eq!(read(&codec, payload.as_bytes()), Ok(format!("Text({payload:?})")));
        }
    }
}
