//! Groups whose lines have typed columns: a cell is nothing, a value of its attribute's type, or a text.
//!
//! What is generalized is a text, and so is `"*"`: every column of numbers or truth values has room for texts, too.

use super::line::Encoder;
use prost_reflect::prost::encoding::decode_varint;
use std::borrow::Cow;
use throng_core::values::json::{push_quoted, push_shortest};

/// The type of a column's exact values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// A whole number of 64 bits.
    Integer,
    /// A double.
    Float,
    /// A truth value.
    Boolean,
    /// A text.
    Text,
}

/// The lines of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedGroup {
    /// The names of its attributes, in their order.
    pub names: Vec<String>,
    /// The types of their exact values.
    pub kinds: Vec<CellKind>,
    /// Protobuf: the numbers of the fields of an attribute, for its exact value and for a text. They are one where its values are
    /// texts. Empty in other formats.
    pub numbers: Vec<[u32; 2]>,
    /// The number of its schema in a registry, where it has one: it is written before every line.
    pub id: Option<u32>,
}

impl TypedGroup {
    /// The group of attributes called `names` among `groups`.
    pub(super) fn find<'g>(groups: &'g [Self], names: &[&str]) -> Option<&'g Self> {
        groups.iter().find(|group| group.names.iter().map(String::as_str).eq(names.iter().copied()))
    }

    /// What comes before a line: a zero byte and the number of the schema, the highest byte first; nothing without a registry.
    pub(super) fn frame(&self) -> Vec<u8> {
        self.id.map(|id| [&[0][..], &id.to_be_bytes()].concat()).unwrap_or_default()
    }
}

/// How one column is written in a binary format.
pub(super) trait Column: std::fmt::Debug + Send + Sync {
    fn kind(&self) -> CellKind;

    /// Appends a cell.
    fn encode(&self, cell: &Typed<'_>, out: &mut Vec<u8>);

    /// The cell that `bytes` begin with, which are shortened by it.
    fn decode<'a>(&self, bytes: &mut &'a [u8]) -> Option<Typed<'a>>;
}

/// Writes and reads the lines of one group in a binary format, one cell behind the other.
#[derive(Debug)]
pub(super) struct TypedLines<C> {
    columns: Vec<C>,
    frame: Vec<u8>,
    /// The group is none of those whose schemas are known. What would be written is nothing that could be read.
    is_unknown: bool,
}

impl<C: Column> TypedLines<C> {
    /// The lines of the group of `names`, whose columns and frame `of` gives.
    pub fn new(groups: &[TypedGroup], names: &[&str], of: impl FnOnce(&TypedGroup) -> (Vec<C>, Vec<u8>)) -> Self {
        let group = TypedGroup::find(groups, names);
        let (columns, frame) = group.map(of).unwrap_or_default();
        Self { columns, frame, is_unknown: group.is_none() }
    }
}

impl<C: Column> Encoder for TypedLines<C> {
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame);
        for (column, text) in self.columns.iter().zip(cells) {
            column.encode(&Typed::of(column.kind(), text), out);
        }
    }

    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        cells.resize(self.columns.len(), String::new());
        let mut rest = line.strip_prefix(self.frame.as_slice())?;
        for (column, cell) in self.columns.iter().zip(cells.iter_mut()) {
            cell.clear();
            column.decode(&mut rest)?.push(column.kind(), cell);
        }
        // A number has one spelling; what is spelled in another way was not written here.
        let mut again = Vec::with_capacity(line.len());
        let texts: Vec<&str> = cells.iter().map(String::as_str).collect();
        self.encode(&texts, &mut again);
        (!self.is_unknown && rest.is_empty() && again == line).then_some(())
    }
}

/// Takes a zigzag varint, which is how Avro writes a long.
#[inline]
pub(super) fn take_long(bytes: &mut &[u8]) -> Option<i64> {
    let value = decode_varint(bytes).ok()?;
    Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
}

/// Takes the first `length` bytes.
pub(super) fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// Takes a text of `length` bytes.
pub(super) fn take_text<'a>(bytes: &mut &'a [u8], length: impl TryInto<usize>) -> Option<Typed<'a>> {
    let text = take(bytes, length.try_into().ok()?)?;
    Some(Typed::Text(std::str::from_utf8(text).ok()?.into()))
}

/// Takes a double, the lowest byte first.
pub(super) fn take_double<'a>(bytes: &mut &'a [u8]) -> Option<Typed<'a>> {
    Some(Typed::Float(f64::from_le_bytes(take(bytes, 8)?.try_into().ok()?)))
}

/// What a column holds.
#[derive(Debug, PartialEq)]
pub(super) enum Typed<'a> {
    Null,
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Text(Cow<'a, str>),
}

impl<'a> Typed<'a> {
    /// The cell with this JSON text in a column of `kind`. A number with more digits than a double has is a text as it is spelled.
    pub fn of(kind: CellKind, json: &'a str) -> Self {
        if json.is_empty() || json == "null" {
            return Self::Null;
        }
        if json.starts_with('"') {
            return Self::Text(serde_json::from_str::<String>(json).unwrap_or_default().into());
        }
        let exact = match kind {
            CellKind::Integer => json.parse().ok().map(Self::Integer),
            CellKind::Float => double(json).map(Self::Float),
            CellKind::Boolean => Some(Self::Boolean(json == "true")),
            CellKind::Text => None,
        };
        exact.unwrap_or(Self::Text(json.into()))
    }

    /// Appends the JSON text of the cell.
    pub fn push(&self, kind: CellKind, cell: &mut String) {
        match self {
            Self::Null => cell.push_str("null"),
            Self::Integer(value) => cell.push_str(&value.to_string()),
            Self::Float(value) => push_shortest(cell, *value),
            Self::Boolean(value) => cell.push_str(if *value { "true" } else { "false" }),
            Self::Text(text) if kind == CellKind::Float && is_long_number(text) => cell.push_str(text),
            Self::Text(text) => push_quoted(cell, text),
        }
    }
}

/// The double whose shortest spelling is `text`.
fn double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    let mut again = String::new();
    push_shortest(&mut again, value);
    (again == text).then_some(value)
}

/// Digits that every double has.
const SURE_DIGITS: usize = 15;

/// What a number so small begins with that a double is spelled with an exponent.
const TINY: &str = "0.00000";

/// A number that is written as a text, since no double has its digits, or none its spelling. Labels of a hierarchy have fewer digits, and
/// are not so small.
pub(super) fn is_long_number(text: &str) -> bool {
    let is_tiny = text.strip_prefix('-').unwrap_or(text).starts_with(TINY);
    (is_tiny || text.bytes().filter(u8::is_ascii_digit).count() > SURE_DIGITS)
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'))
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
        && double(text).is_none()
}

/// Cells as lines have them, for the tests of the formats.
#[cfg(test)]
pub(super) mod cells {
    use super::{CellKind, Encoder, TypedGroup, is_long_number};
    use proptest::prelude::*;
    use throng_core::values::json::{push_quoted, push_shortest};

    /// Every kind once.
    pub const KINDS: [CellKind; 4] = [CellKind::Integer, CellKind::Float, CellKind::Boolean, CellKind::Text];

    /// A group with a column of every kind.
    pub fn group(numbers: &[[u32; 2]], id: Option<u32>) -> TypedGroup {
        let names = (0..KINDS.len()).map(|i| format!("a{i}")).collect();
        TypedGroup { names, kinds: KINDS.to_vec(), numbers: numbers.to_vec(), id }
    }

    /// The names of its attributes.
    pub const NAMES: [&str; 4] = ["a0", "a1", "a2", "a3"];

    pub fn line<C: AsRef<str>>(lines: &impl Encoder, cells: &[C]) -> Vec<u8> {
        let mut line = Vec::new();
        lines.encode(&cells.iter().map(AsRef::as_ref).collect::<Vec<_>>(), &mut line);
        line
    }

    /// What is written is read back, and what was not written is not read.
    pub fn check(lines: &impl Encoder, cells: &[String], noise: &[u8]) -> Result<(), TestCaseError> {
        let mut read = Vec::new();
        prop_assert!(lines.read(&line(lines, cells), &mut read).is_some());
        prop_assert_eq!(&read, cells);
        if lines.read(noise, &mut read).is_some() {
            prop_assert_eq!(line(lines, &read), noise);
        }
        Ok(())
    }

    /// Lines of a group without a schema give nothing that could be read.
    pub fn check_unknown(lines: &impl Encoder) {
        assert_eq!(lines.read(&line(lines, &["42"]), &mut Vec::new()), None);
        assert_eq!(lines.read(&[], &mut Vec::new()), None);
    }

    /// JSON texts of cells of a column.
    pub fn of(kind: CellKind) -> BoxedStrategy<String> {
        let text = "\\PC{0,12}".prop_map(|text| {
            let mut out = String::new();
            push_quoted(&mut out, &text);
            out
        });
        let exact = match kind {
            CellKind::Integer => any::<i64>().prop_map(|value| value.to_string()).boxed(),
            CellKind::Float => prop_oneof![
                any::<f64>().prop_filter("finite", |v| v.is_finite()).prop_map(|value| {
                    let mut out = String::new();
                    push_shortest(&mut out, value);
                    out
                }),
                // More digits than a double tells apart, as rounding to a step writes them.
                "[1-9][0-9]{17,20}\\.[0-9]{1,8}[1-9]",
                // So small that the shortest spelling has an exponent, as rounding to a small step writes them.
                "-?0\\.00000[0-9]{0,6}[1-9]",
            ]
            .boxed(),
            CellKind::Boolean => prop_oneof![Just("true".to_owned()), Just("false".to_owned())].boxed(),
            CellKind::Text => text.clone().boxed(),
        };
        // A label that reads like a number of too many digits is the one text that cannot stand in such a column.
        let numeric = prop_oneof![Just("\"37.0\""), Just("\"1e3\""), Just("\"22.5\""), Just("\"1\""), Just("\"-0\"")];
        let label = prop_oneof![text, numeric.prop_map(str::to_owned)];
        let label = label.prop_filter("no long number", |label| !is_long_number(&label[1..label.len() - 1]));
        prop_oneof![Just("null".to_owned()), Just("\"*\"".to_owned()), exact, label].boxed()
    }
}
