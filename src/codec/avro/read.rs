//! The primitives of Avro's binary encoding, within bounds.

use crate::telemetry::RejectionReason;

/// Items of arrays and maps in one record. Items may take no bytes at all, so the size of a record does not bound them.
const MOST_ITEMS: usize = 1 << 20;

/// Values in one record, read or passed over. Records of no fields take no bytes either.
const MOST_STEPS: usize = 1 << 20;

/// The rest of a record.
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    max_depth: usize,
    items: usize,
    steps: usize,
}

/// The one refusal of bytes that are not what the schema says.
const MALFORMED: RejectionReason = RejectionReason::MalformedAvro;

impl<'a> Bytes<'a> {
    pub fn new(payload: &'a [u8], max_depth: usize) -> Self {
        Self { rest: payload, max_depth, items: 0, steps: 0 }
    }

    /// What begins at `place`, with all of its bounds.
    pub fn afresh(&self, place: &'a [u8]) -> Self {
        Self::new(place, self.max_depth)
    }

    /// Nothing may be left behind the record.
    pub fn end(&self) -> Result<(), RejectionReason> {
        if self.rest.is_empty() { Ok(()) } else { Err(MALFORMED) }
    }

    /// To be called for every value: there are only so many in a record.
    #[inline]
    pub fn step(&mut self) -> Result<(), RejectionReason> {
        self.steps += 1;
        if self.steps > MOST_STEPS { Err(RejectionReason::Oversized) } else { Ok(()) }
    }

    /// Refuses structures that lie deeper than allowed; the record itself is depth 1.
    pub fn descend(&self, depth: usize) -> Result<(), RejectionReason> {
        if depth > self.max_depth { Err(RejectionReason::TooDeep) } else { Ok(()) }
    }

    /// What is left, to come back to it with [`return_to`](Self::return_to).
    pub fn place(&self) -> &'a [u8] {
        self.rest
    }

    pub fn return_to(&mut self, place: &'a [u8]) {
        self.rest = place;
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], RejectionReason> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(MALFORMED)?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn boolean(&mut self) -> Result<bool, RejectionReason> {
        match self.take(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(MALFORMED),
        }
    }

    /// A zigzag varint of at most 64 bits.
    #[inline]
    pub fn long(&mut self) -> Result<i64, RejectionReason> {
        let mut value = 0_u64;
        for (at, &byte) in self.rest.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if at == 9 && bits > 1 {
                return Err(MALFORMED);
            }
            value |= bits << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[at + 1..];
                return Ok((value >> 1).cast_signed() ^ -((value & 1).cast_signed()));
            }
        }
        Err(MALFORMED)
    }

    pub fn int(&mut self) -> Result<i32, RejectionReason> {
        i32::try_from(self.long()?).map_err(|_| MALFORMED)
    }

    pub fn float(&mut self) -> Result<f32, RejectionReason> {
        let bytes = self.take(4)?;
        Ok(f32::from_le_bytes(bytes.try_into().map_err(|_| MALFORMED)?))
    }

    pub fn double(&mut self) -> Result<f64, RejectionReason> {
        let bytes = self.take(8)?;
        Ok(f64::from_le_bytes(bytes.try_into().map_err(|_| MALFORMED)?))
    }

    /// Bytes behind their length.
    pub fn bytes(&mut self) -> Result<&'a [u8], RejectionReason> {
        let length = usize::try_from(self.long()?).map_err(|_| MALFORMED)?;
        self.take(length)
    }

    pub fn string(&mut self) -> Result<&'a str, RejectionReason> {
        std::str::from_utf8(self.bytes()?).map_err(|_| RejectionReason::NotUtf8)
    }

    /// A choice among so many: the branch of a union, the symbol of an enum.
    pub fn choice(&mut self, among: usize) -> Result<usize, RejectionReason> {
        usize::try_from(self.long()?).ok().filter(|index| *index < among).ok_or(MALFORMED)
    }

    /// The number of items in the next block of an array or a map; 0 ends it.
    pub fn block(&mut self) -> Result<usize, RejectionReason> {
        let count = self.long()?;
        if count < 0 {
            // A negative count is followed by the size of the block, for those who pass over it.
            self.long()?;
        }
        let count = usize::try_from(count.unsigned_abs()).map_err(|_| MALFORMED)?;
        self.items = self.items.saturating_add(count);
        if self.items > MOST_ITEMS { Err(RejectionReason::Oversized) } else { Ok(count) }
    }

    /// Reads all blocks of an array or a map with `item`, which reads one item of them.
    pub fn each_item(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), RejectionReason>,
    ) -> Result<(), RejectionReason> {
        loop {
            let count = self.block()?;
            if count == 0 {
                return Ok(());
            }
            (0..count).try_for_each(|_| item(self))?;
        }
    }
}
