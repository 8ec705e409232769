//! The primitives of Protobuf's wire format, within bounds.

use crate::telemetry::RejectionReason;

/// The one refusal of bytes that are not what the schema says.
pub(super) const MALFORMED: RejectionReason = RejectionReason::MalformedProtobuf;

/// The highest number of a field.
const MOST_NUMBER: u64 = (1 << 29) - 1;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Varint,
    Fixed64,
    Delimited,
    Fixed32,
}

/// The rest of a message.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], RejectionReason> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(MALFORMED)?;
        self.0 = rest;
        Ok(taken)
    }

    /// At most 64 bits in at most ten bytes.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, RejectionReason> {
        let mut value = 0_u64;
        for (at, &byte) in self.0.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if at == 9 && bits > 1 {
                return Err(MALFORMED);
            }
            value |= bits << (7 * at);
            if byte & 0x80 == 0 {
                self.0 = &self.0[at + 1..];
                return Ok(value);
            }
        }
        Err(MALFORMED)
    }

    pub fn fixed32(&mut self) -> Result<[u8; 4], RejectionReason> {
        self.take(4)?.try_into().map_err(|_| MALFORMED)
    }

    pub fn fixed64(&mut self) -> Result<[u8; 8], RejectionReason> {
        self.take(8)?.try_into().map_err(|_| MALFORMED)
    }

    /// Bytes behind their length.
    pub fn delimited(&mut self) -> Result<&'a [u8], RejectionReason> {
        let length = usize::try_from(self.varint()?).map_err(|_| MALFORMED)?;
        self.take(length)
    }

    /// The number of the next field, and how its value is written. Groups, which have long been given up, are malformed.
    #[inline]
    pub fn tag(&mut self) -> Result<(u32, Wire), RejectionReason> {
        let tag = self.varint()?;
        let number = tag >> 3;
        if number == 0 || number > MOST_NUMBER {
            return Err(MALFORMED);
        }
        let wire = match tag & 7 {
            0 => Wire::Varint,
            1 => Wire::Fixed64,
            2 => Wire::Delimited,
            5 => Wire::Fixed32,
            _ => return Err(MALFORMED),
        };
        Ok((number as u32, wire))
    }

    /// The bytes of the next value, which is written like this; its length is not among them.
    pub fn value(&mut self, wire: Wire) -> Result<Bytes<'a>, RejectionReason> {
        let before = self.0;
        Ok(Bytes(match wire {
            Wire::Varint => {
                self.varint()?;
                &before[..before.len() - self.0.len()]
            }
            Wire::Fixed64 => self.take(8)?,
            Wire::Delimited => self.delimited()?,
            Wire::Fixed32 => self.take(4)?,
        }))
    }
}
