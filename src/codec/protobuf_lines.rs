//! Lines that are Protobuf messages, as topics take them: a cell is not there, a value of its attribute's type, or a text.
//!
//! A column of texts is one field, the others have two: one of the attribute's type and one for texts, of which one is there at
//! most. Fields come in the order of the attributes.

use super::line::Encoder;
use super::typed::{CellKind, Typed, TypedGroup};
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

/// Writes and reads the lines of one group.
#[derive(Debug)]
pub(super) struct ProtobufLines {
    columns: Vec<Column>,
    /// With the number of the message in its schema: it is the first.
    frame: Vec<u8>,
    /// The group is none of those whose schemas are known. What would be written is nothing that could be read.
    unknown: bool,
}

/// One attribute: what its fields begin with.
#[derive(Debug)]
struct Column {
    kind: CellKind,
    exact: Vec<u8>,
    text: Vec<u8>,
}

impl Column {
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
    pub fn new(groups: &[TypedGroup], names: &[&str]) -> Self {
        let group = TypedGroup::find(groups, names);
        let mut frame = group.map(TypedGroup::frame).unwrap_or_default();
        if !frame.is_empty() {
            frame.push(0);
        }
        let columns =
            group.map(|group| group.kinds.iter().zip(&group.numbers).map(|(kind, of)| Column::new(*kind, *of)));
        Self { columns: columns.into_iter().flatten().collect(), frame, unknown: group.is_none() }
    }
}

impl Encoder for ProtobufLines {
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame);
        for (column, text) in self.columns.iter().zip(cells) {
            match Typed::of(column.kind, text) {
                Typed::Null => {}
                Typed::Integer(value) => {
                    out.extend_from_slice(&column.exact);
                    encode_varint(value.cast_unsigned(), out);
                }
                Typed::Float(value) => {
                    out.extend_from_slice(&column.exact);
                    out.extend_from_slice(&value.to_le_bytes());
                }
                Typed::Boolean(value) => {
                    out.extend_from_slice(&column.exact);
                    out.push(u8::from(value));
                }
                Typed::Text(text) => {
                    out.extend_from_slice(&column.text);
                    encode_varint(text.len() as u64, out);
                    out.extend_from_slice(text.as_bytes());
                }
            }
        }
    }

    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        cells.resize(self.columns.len(), String::new());
        let mut rest = line.strip_prefix(self.frame.as_slice())?;
        for (column, cell) in self.columns.iter().zip(cells.iter_mut()) {
            cell.clear();
            rest = read_cell(column, rest, cell)?;
        }
        // A number has one spelling; what is spelled in another way was not written here.
        let mut again = Vec::with_capacity(line.len());
        let texts: Vec<&str> = cells.iter().map(String::as_str).collect();
        self.encode(&texts, &mut again);
        (!self.unknown && rest.is_empty() && again == line).then_some(())
    }
}

fn read_cell<'a>(column: &Column, bytes: &'a [u8], cell: &mut String) -> Option<&'a [u8]> {
    let (typed, rest) = if let Some(rest) = bytes.strip_prefix(column.text.as_slice()) {
        let (length, rest) = varint(rest)?;
        let (text, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        (Typed::Text(std::str::from_utf8(text).ok()?.into()), rest)
    } else if let Some(rest) = bytes.strip_prefix(column.exact.as_slice()) {
        match column.kind {
            CellKind::Integer => {
                let (value, rest) = varint(rest)?;
                (Typed::Integer(value.cast_signed()), rest)
            }
            CellKind::Float => {
                let (value, rest) = rest.split_first_chunk::<8>()?;
                (Typed::Float(f64::from_le_bytes(*value)), rest)
            }
            CellKind::Boolean => {
                let (&value, rest) = rest.split_first()?;
                (Typed::Boolean(value == 1), rest)
            }
            CellKind::Text => return None,
        }
    } else {
        (Typed::Null, bytes)
    };
    typed.push(column.kind, cell);
    Some(rest)
}

fn varint(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
    let value = decode_varint(&mut bytes).ok()?;
    Some((value, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::protobuf::ProtobufSchema;
    use crate::codec::typed::cells::{self, KINDS};
    use proptest::prelude::*;
    use prost_reflect::{DynamicMessage, Value};

    /// As the schema below has them; the numbers are in no order.
    const NUMBERS: [[u32; 2]; 4] = [[1, 2], [40, 5], [3, 4], [7, 7]];

    const SCHEMA: &str = "syntax = \"proto3\"; message L {
        oneof a0 { int64 i = 1; string i_text = 2; } oneof a1 { double f = 40; string f_text = 5; }
        oneof a2 { bool b = 3; string b_text = 4; } optional string t = 7; }";

    fn lines(id: Option<u32>) -> ProtobufLines {
        let names: Vec<String> = (0..KINDS.len()).map(|i| format!("a{i}")).collect();
        let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
        let group = TypedGroup { names: names.clone(), kinds: KINDS.to_vec(), numbers: NUMBERS.to_vec(), id };
        ProtobufLines::new(&[group], &borrowed)
    }

    fn line(lines: &ProtobufLines, cells: &[String]) -> Vec<u8> {
        let mut line = Vec::new();
        lines.encode(&cells.iter().map(String::as_str).collect::<Vec<_>>(), &mut line);
        line
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(cells in KINDS.map(cells::of).to_vec(), id in prop::option::of(any::<u32>())) {
            let lines = lines(id);
            let line = line(&lines, &cells);
            let mut read = Vec::new();
            prop_assert!(lines.read(&line, &mut read).is_some());
            prop_assert_eq!(read, cells);
        }

        #[test]
        fn what_was_not_written_is_not_read(noise in prop::collection::vec(any::<u8>(), 0..40)) {
            let lines = lines(None);
            let mut read = Vec::new();
            if lines.read(&noise, &mut read).is_some() {
                prop_assert_eq!(line(&lines, &read), noise);
            }
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
        assert_eq!(
            line(&lines(Some(1)), &["7".into(), "null".into(), "null".into(), "null".into()]),
            [0, 0, 0, 0, 1, 0, 8, 7]
        );
    }

    #[test]
    fn a_group_without_a_schema_gives_nothing_that_could_be_read() {
        let lines = ProtobufLines::new(&[], &["age"]);
        assert_eq!(lines.read(&line(&lines, &["42".into()]), &mut Vec::new()), None);
        assert_eq!(lines.read(&[], &mut Vec::new()), None);
    }
}
