//! Lines that are Protobuf messages, as topics take them: a cell is not there, a value of its attribute's type, or a text.
//!
//! A column of texts is one field, the others have two: one of the attribute's type and one for texts, of which one is there at
//! most. Fields come in the order of the attributes.

use super::typed::{CellKind, Column, Typed, TypedGroup, TypedLines, take, take_double, take_text};
use prost_reflect::prost::encoding::{decode_varint, encode_varint};

impl CellKind {
    /// What a Protobuf schema calls the type of its column.
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

/// The lines of one group.
pub(super) type ProtobufLines = TypedLines<Fields>;

/// The fields of one attribute: what each begins with.
#[derive(Debug)]
pub(super) struct Fields {
    kind: CellKind,
    exact: Vec<u8>,
    text: Vec<u8>,
}

impl Fields {
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
            let columns = group.kinds.iter().zip(&group.numbers).map(|(kind, of)| Fields::new(*kind, *of));
            let mut frame = group.frame();
            if !frame.is_empty() {
                // The number of the message in its schema: it is the first.
                frame.push(0);
            }
            (columns.collect(), frame)
        })
    }
}

impl Column for Fields {
    fn kind(&self) -> CellKind {
        self.kind
    }

    fn encode(&self, cell: &Typed<'_>, out: &mut Vec<u8>) {
        match cell {
            Typed::Null => return,
            Typed::Text(_) => out.extend_from_slice(&self.text),
            _ => out.extend_from_slice(&self.exact),
        }
        match cell {
            Typed::Null => {}
            Typed::Integer(value) => encode_varint(value.cast_unsigned(), out),
            Typed::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
            Typed::Boolean(value) => out.push(u8::from(*value)),
            Typed::Text(text) => {
                encode_varint(text.len() as u64, out);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    fn decode<'a>(&self, bytes: &mut &'a [u8]) -> Option<Typed<'a>> {
        if let Some(rest) = bytes.strip_prefix(self.text.as_slice()) {
            *bytes = rest;
            let length = decode_varint(bytes).ok()?;
            return take_text(bytes, length);
        }
        let Some(rest) = bytes.strip_prefix(self.exact.as_slice()) else { return Some(Typed::Null) };
        *bytes = rest;
        match self.kind {
            CellKind::Integer => decode_varint(bytes).ok().map(|value| Typed::Integer(value.cast_signed())),
            CellKind::Float => take_double(bytes),
            CellKind::Boolean => Some(Typed::Boolean(take(bytes, 1)?[0] == 1)),
            CellKind::Text => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::ProtobufSchema;
    use crate::typed::cells::{self, KINDS, NAMES, line};
    use proptest::prelude::*;
    use prost_reflect::{DynamicMessage, Value};

    /// As the schema below has them; the numbers are in no order.
    const NUMBERS: [[u32; 2]; 4] = [[1, 2], [40, 5], [3, 4], [7, 7]];

    const SCHEMA: &str = "syntax = \"proto3\"; message L {
        oneof a0 { int64 i = 1; string i_text = 2; } oneof a1 { double f = 40; string f_text = 5; }
        oneof a2 { bool b = 3; string b_text = 4; } optional string t = 7; }";

    fn lines(id: Option<u32>) -> ProtobufLines {
        ProtobufLines::of(&[cells::group(&NUMBERS, id)], &NAMES)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            cells in KINDS.map(cells::of).to_vec(),
            id in prop::option::of(any::<u32>()),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            cells::check(&lines(id), &cells, &noise)?;
            cells::check(&lines(None), &cells, &noise)?;
        }

        /// Another reader finds the same values.
        #[test]
        fn it_is_protobuf(cells in KINDS.map(cells::of).to_vec()) {
            let schema = ProtobufSchema::of_texts(SCHEMA, &[]).expect("a schema");
            let message = schema.named(None).expect("a message");
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
    fn frames_name_the_first_message() {
        assert_eq!(line(&lines(Some(1)), &["7", "null", "null", "null"]), [0, 0, 0, 0, 1, 0, 8, 7]);
    }

    #[test]
    fn a_group_without_a_schema_gives_nothing_that_could_be_read() {
        cells::check_unknown(&ProtobufLines::of(&[], &["age"]));
    }
}
