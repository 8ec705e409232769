//! Avro lines: a cell is a union `["null", TYPE, "string"]`.

use super::typed_lines::{
    BinaryColumn, CellKind, TypedCell, TypedGroup, TypedLines, decode_double, decode_zigzag, split_bytes, split_text,
};
use prost_reflect::prost::encoding::encode_varint;

impl CellKind {
    /// Returns the branches of the column's union.
    #[must_use]
    pub fn avro_union_branches(self) -> &'static [&'static str] {
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

pub(super) type AvroLines = TypedLines<CellKind>;

impl AvroLines {
    pub fn of(groups: &[TypedGroup], names: &[&str]) -> Self {
        Self::new(groups, names, |group| (group.kinds.clone(), group.frame()))
    }
}

impl BinaryColumn for CellKind {
    fn kind(&self) -> CellKind {
        *self
    }

    fn encode(&self, cell: &TypedCell<'_>, out: &mut Vec<u8>) {
        let branch = match cell {
            TypedCell::Null => 0,
            TypedCell::Text(_) => self.text_branch(),
            _ => 1,
        };
        out.push(branch << 1);
        match cell {
            TypedCell::Null => {}
            TypedCell::Integer(value) => push_long(*value, out),
            TypedCell::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
            TypedCell::Boolean(value) => out.push(u8::from(*value)),
            TypedCell::Text(text) => {
                push_long(i64::try_from(text.len()).unwrap_or(i64::MAX), out);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    fn decode<'a>(&self, bytes: &mut &'a [u8]) -> Option<TypedCell<'a>> {
        match (split_bytes(bytes, 1)?[0], self) {
            (0, _) => Some(TypedCell::Null),
            (branch, kind) if branch == kind.text_branch() << 1 => {
                let length = decode_zigzag(bytes)?;
                split_text(bytes, length)
            }
            (2, Self::Integer) => decode_zigzag(bytes).map(TypedCell::Integer),
            (2, Self::Float) => decode_double(bytes),
            (2, Self::Boolean) => Some(TypedCell::Boolean(split_bytes(bytes, 1)?[0] == 1)),
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
    use crate::typed_lines::cells::{self, TEST_ATTRIBUTE_NAMES, TEST_CELL_KINDS};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn avro_line_round_trip_keeps_cells(
            cells in TEST_CELL_KINDS.map(cells::of).to_vec(),
            id in prop::option::of(any::<u32>()),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            cells::check_round_trip(&AvroLines::of(&[cells::group(&[], id)], &TEST_ATTRIBUTE_NAMES), &cells, &noise)?;
            cells::check_round_trip(&AvroLines::of(&[cells::group(&[], None)], &TEST_ATTRIBUTE_NAMES), &cells, &noise)?;
        }
    }

    #[test]
    fn avro_lines_of_unknown_group_are_unreadable() {
        cells::check_unknown_group(&AvroLines::of(&[], &["age"]));
    }
}
