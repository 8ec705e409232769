//! Protobuf lines. A text column is one field. Other columns have a typed and a text field, at most one present.

use super::typed_lines::{
    BinaryColumn, CellKind, TypedCell, TypedGroup, TypedLines, decode_double, split_bytes, split_text,
};
use prost_reflect::prost::encoding::{decode_varint, encode_varint};

impl CellKind {
    /// Returns the column's type in a Protobuf schema.
    #[must_use]
    pub fn protobuf_type(self) -> &'static str {
        match self {
            Self::Integer => "int64",
            Self::Float => "double",
            Self::Boolean => "bool",
            Self::Text => "string",
        }
    }
}

pub(super) type ProtobufLines = TypedLines<ProtobufFieldTags>;

#[derive(Debug)]
pub(super) struct ProtobufFieldTags {
    kind: CellKind,
    exact: Vec<u8>,
    text: Vec<u8>,
}

impl ProtobufFieldTags {
    fn new(kind: CellKind, [exact, text]: [u32; 2]) -> Self {
        let tag = |number: u32, wire: u32| {
            let mut tag = Vec::new();
            encode_varint(u64::from(number << 3 | wire), &mut tag);
            tag
        };
        let wire = match kind {
            CellKind::Integer | CellKind::Boolean => 0,
            CellKind::Float => 1,
            CellKind::Text => 2,
        };
        Self { kind, exact: tag(exact, wire), text: tag(text, 2) }
    }
}

impl ProtobufLines {
    pub fn of(groups: &[TypedGroup], names: &[&str]) -> Self {
        Self::new(groups, names, |group| {
            let columns = group.kinds.iter().zip(&group.numbers).map(|(kind, of)| ProtobufFieldTags::new(*kind, *of));
            let mut frame = group.frame();
            if !frame.is_empty() {
                // Message index.
                frame.push(0);
            }
            (columns.collect(), frame)
        })
    }
}

impl BinaryColumn for ProtobufFieldTags {
    fn kind(&self) -> CellKind {
        self.kind
    }

    fn encode(&self, cell: &TypedCell<'_>, out: &mut Vec<u8>) {
        match cell {
            TypedCell::Null => return,
            TypedCell::Text(_) => out.extend_from_slice(&self.text),
            _ => out.extend_from_slice(&self.exact),
        }
        match cell {
            TypedCell::Null => {}
            TypedCell::Integer(value) => encode_varint(value.cast_unsigned(), out),
            TypedCell::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
            TypedCell::Boolean(value) => out.push(u8::from(*value)),
            TypedCell::Text(text) => {
                encode_varint(text.len() as u64, out);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    fn decode<'a>(&self, bytes: &mut &'a [u8]) -> Option<TypedCell<'a>> {
        if let Some(rest) = bytes.strip_prefix(self.text.as_slice()) {
            *bytes = rest;
            let length = decode_varint(bytes).ok()?;
            return split_text(bytes, length);
        }
        let Some(rest) = bytes.strip_prefix(self.exact.as_slice()) else { return Some(TypedCell::Null) };
        *bytes = rest;
        match self.kind {
            CellKind::Integer => decode_varint(bytes).ok().map(|value| TypedCell::Integer(value.cast_signed())),
            CellKind::Float => decode_double(bytes),
            CellKind::Boolean => Some(TypedCell::Boolean(split_bytes(bytes, 1)?[0] == 1)),
            CellKind::Text => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::ProtobufSchema;
    use crate::typed_lines::cells::{self, TEST_ATTRIBUTE_NAMES, TEST_CELL_KINDS, line};
    use proptest::prelude::*;
    use prost_reflect::{DynamicMessage, Value};

    const TEST_FIELD_NUMBERS: [[u32; 2]; 4] = [[1, 2], [40, 5], [3, 4], [7, 7]];

    const SCHEMA: &str = "syntax = \"proto3\"; message L {
        oneof a0 { int64 i = 1; string i_text = 2; } oneof a1 { double f = 40; string f_text = 5; }
        oneof a2 { bool b = 3; string b_text = 4; } optional string t = 7; }";

    fn lines(id: Option<u32>) -> ProtobufLines {
        ProtobufLines::of(&[cells::group(&TEST_FIELD_NUMBERS, id)], &TEST_ATTRIBUTE_NAMES)
    }

    proptest! {
        #[test]
        fn protobuf_line_round_trip_keeps_cells(
            cells in TEST_CELL_KINDS.map(cells::of).to_vec(),
            id in prop::option::of(any::<u32>()),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            cells::check_round_trip(&lines(id), &cells, &noise)?;
            cells::check_round_trip(&lines(None), &cells, &noise)?;
        }

        #[test]
        fn protobuf_line_matches_dynamic_message(cells in TEST_CELL_KINDS.map(cells::of).to_vec()) {
            let schema = ProtobufSchema::compile_proto_texts(SCHEMA, &[]).expect("a schema");
            let message = schema.message_by_name(None).expect("a message");
            let read = DynamicMessage::decode(message.0, line(&lines(None), &cells).as_slice()).expect("a message");
            for (names, cell) in [("i", "i_text"), ("f", "f_text"), ("b", "b_text"), ("t", "t")].iter().zip(&cells) {
                let text = match (read.has_field_by_name(names.0), read.has_field_by_name(names.1)) {
                    (false, false) => "null".to_owned(),
                    (exact, _) => match &*read.get_field_by_name(if exact { names.0 } else { names.1 }).expect("a field") {
                        Value::I64(value) => value.to_string(),
                        Value::Bool(value) => value.to_string(),
                        Value::F64(value) => {
                            prop_assert_eq!(cell.parse::<f64>().ok(), Some(*value));
                            continue;
                        }
                        Value::String(text) => {
                            let spelled = serde_json::from_str(cell).unwrap_or_else(|_| cell.clone());
                            prop_assert_eq!(text, &spelled);
                            continue;
                        }
                        other => panic!("{other:?}"),
                    },
                };
                prop_assert_eq!(&text, cell);
            }
        }
    }

    #[test]
    fn frame_contains_index_of_first_message() {
        assert_eq!(line(&lines(Some(1)), &["7", "null", "null", "null"]), [0, 0, 0, 0, 1, 0, 8, 7]);
    }

    #[test]
    fn protobuf_lines_of_unknown_group_are_unreadable() {
        cells::check_unknown_group(&ProtobufLines::of(&[], &["age"]));
    }
}
