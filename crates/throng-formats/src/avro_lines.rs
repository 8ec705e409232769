//! Lines that are Avro data, as topics take them: a cell is nothing, a value of its attribute's type, or a text.
//!
//! Text columns are unions of `["null", "string"]`, the others of `["null", TYPE, "string"]`.

use super::typed::{CellKind, Column, Typed, TypedGroup, TypedLines, take, take_double, take_long, take_text};
use prost_reflect::prost::encoding::encode_varint;

impl CellKind {
    /// What an Avro schema calls the branches of its column.
    #[must_use]
    pub fn branches(self) -> &'static [&'static str] {
        match self {
            Self::Integer => &["null", "long", "string"],
            Self::Float => &["null", "double", "string"],
            Self::Boolean => &["null", "boolean", "string"],
            Self::Text => &["null", "string"],
        }
    }

    fn text_branch(self) -> u8 {
        if self == Self::Text { 1 } else { 2 }
    }
}

/// The lines of one group.
pub(super) type AvroLines = TypedLines<CellKind>;

impl AvroLines {
    pub fn of(groups: &[TypedGroup], names: &[&str]) -> Self {
        Self::new(groups, names, |group| (group.kinds.clone(), group.frame()))
    }
}

impl Column for CellKind {
    fn kind(&self) -> CellKind {
        *self
    }

    fn encode(&self, cell: &Typed<'_>, out: &mut Vec<u8>) {
        let branch = match cell {
            Typed::Null => 0,
            Typed::Text(_) => self.text_branch(),
            _ => 1,
        };
        out.push(branch << 1);
        match cell {
            Typed::Null => {}
            Typed::Integer(value) => push_long(*value, out),
            Typed::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
            Typed::Boolean(value) => out.push(u8::from(*value)),
            Typed::Text(text) => {
                push_long(i64::try_from(text.len()).unwrap_or(i64::MAX), out);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    fn decode<'a>(&self, bytes: &mut &'a [u8]) -> Option<Typed<'a>> {
        match (take(bytes, 1)?[0], self) {
            (0, _) => Some(Typed::Null),
            (branch, kind) if branch == kind.text_branch() << 1 => {
                let length = take_long(bytes)?;
                take_text(bytes, length)
            }
            (2, Self::Integer) => take_long(bytes).map(Typed::Integer),
            (2, Self::Float) => take_double(bytes),
            (2, Self::Boolean) => Some(Typed::Boolean(take(bytes, 1)?[0] == 1)),
            _ => None,
        }
    }
}

fn push_long(value: i64, out: &mut Vec<u8>) {
    encode_varint(((value << 1) ^ (value >> 63)).cast_unsigned(), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typed::cells::{self, KINDS, NAMES};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            cells in KINDS.map(cells::of).to_vec(),
            id in prop::option::of(any::<u32>()),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            cells::check(&AvroLines::of(&[cells::group(&[], id)], &NAMES), &cells, &noise)?;
            cells::check(&AvroLines::of(&[cells::group(&[], None)], &NAMES), &cells, &noise)?;
        }
    }

    #[test]
    fn a_group_without_a_schema_gives_nothing_that_could_be_read() {
        cells::check_unknown(&AvroLines::of(&[], &["age"]));
    }
}
