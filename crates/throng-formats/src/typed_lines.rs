//! Lines with typed columns, which also accept texts.

use prost_reflect::prost::encoding::decode_varint;
use std::borrow::Cow;
use throng_core::line_encoder::LineEncoder;
use throng_core::values::json::{push_quoted, push_shortest};

/// Type of a column's exact values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// 64-bit integer.
    Integer,
    /// Double.
    Float,
    /// Boolean.
    Boolean,
    /// Text.
    Text,
}

/// Line schema of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedGroup {
    /// Attribute names, in order.
    pub names: Vec<String>,
    /// Types of the exact values.
    pub kinds: Vec<CellKind>,
    /// Protobuf field numbers per attribute, for exact value and text; equal for text attributes.
    pub numbers: Vec<[u32; 2]>,
    /// Schema ID in the registry, written before every line.
    pub id: Option<u32>,
}

impl TypedGroup {
    pub(super) fn find<'g>(groups: &'g [Self], names: &[&str]) -> Option<&'g Self> {
        groups.iter().find(|group| group.names.iter().map(String::as_str).eq(names.iter().copied()))
    }

    /// Returns a zero byte and the big-endian schema ID, if any.
    pub(super) fn frame(&self) -> Vec<u8> {
        self.id.map(|id| [&[0][..], &id.to_be_bytes()].concat()).unwrap_or_default()
    }
}

pub(super) trait BinaryColumn: std::fmt::Debug + Send + Sync {
    fn kind(&self) -> CellKind;

    fn encode(&self, cell: &TypedCell<'_>, out: &mut Vec<u8>);

    /// Advances `bytes`.
    fn decode<'a>(&self, bytes: &mut &'a [u8]) -> Option<TypedCell<'a>>;
}

#[derive(Debug)]
pub(super) struct TypedLines<C> {
    columns: Vec<C>,
    frame: Vec<u8>,
    /// Lines without a known schema cannot be read back.
    is_unknown: bool,
}

impl<C: BinaryColumn> TypedLines<C> {
    /// `of` returns columns and frame.
    pub fn new(groups: &[TypedGroup], names: &[&str], of: impl FnOnce(&TypedGroup) -> (Vec<C>, Vec<u8>)) -> Self {
        let group = TypedGroup::find(groups, names);
        let (columns, frame) = group.map(of).unwrap_or_default();
        Self { columns, frame, is_unknown: group.is_none() }
    }
}

impl<C: BinaryColumn> LineEncoder for TypedLines<C> {
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame);
        for (column, text) in self.columns.iter().zip(cells) {
            column.encode(&TypedCell::of(column.kind(), text), out);
        }
    }

    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        cells.resize(self.columns.len(), String::new());
        let mut rest = line.strip_prefix(self.frame.as_slice())?;
        for (column, cell) in self.columns.iter().zip(cells.iter_mut()) {
            cell.clear();
            column.decode(&mut rest)?.append_json(column.kind(), cell);
        }
        // Each value has one encoding.
        let mut again = Vec::with_capacity(line.len());
        let texts: Vec<&str> = cells.iter().map(String::as_str).collect();
        self.encode(&texts, &mut again);
        (!self.is_unknown && rest.is_empty() && again == line).then_some(())
    }
}

#[inline]
pub(super) fn decode_zigzag(bytes: &mut &[u8]) -> Option<i64> {
    let value = decode_varint(bytes).ok()?;
    Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
}

pub(super) fn split_bytes<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

pub(super) fn split_text<'a>(bytes: &mut &'a [u8], length: impl TryInto<usize>) -> Option<TypedCell<'a>> {
    let text = split_bytes(bytes, length.try_into().ok()?)?;
    Some(TypedCell::Text(std::str::from_utf8(text).ok()?.into()))
}

pub(super) fn decode_double<'a>(bytes: &mut &'a [u8]) -> Option<TypedCell<'a>> {
    Some(TypedCell::Float(f64::from_le_bytes(split_bytes(bytes, 8)?.try_into().ok()?)))
}

#[derive(Debug, PartialEq)]
pub(super) enum TypedCell<'a> {
    Null,
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Text(Cow<'a, str>),
}

impl<'a> TypedCell<'a> {
    /// A number with more digits than a double can hold becomes a text.
    pub fn of(kind: CellKind, json: &'a str) -> Self {
        if json.is_empty() || json == "null" {
            return Self::Null;
        }
        if json.starts_with('"') {
            return Self::Text(serde_json::from_str::<String>(json).unwrap_or_default().into());
        }
        let exact = match kind {
            CellKind::Integer => json.parse().ok().map(Self::Integer),
            CellKind::Float => exact_double(json).map(Self::Float),
            CellKind::Boolean => Some(Self::Boolean(json == "true")),
            CellKind::Text => None,
        };
        exact.unwrap_or(Self::Text(json.into()))
    }

    pub fn append_json(&self, kind: CellKind, cell: &mut String) {
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

/// Returns the double whose shortest decimal text is `text`.
fn exact_double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    let mut again = String::new();
    push_shortest(&mut again, value);
    (again == text).then_some(value)
}

const EXACT_DECIMAL_DIGITS: usize = 15;

/// Prefix of numbers whose shortest text has an exponent.
const TINY_NUMBER_PREFIX: &str = "0.00000";

/// Returns `true` for a number without an exact double, which is written as text.
pub(super) fn is_long_number(text: &str) -> bool {
    let is_tiny = text.strip_prefix('-').unwrap_or(text).starts_with(TINY_NUMBER_PREFIX);
    (is_tiny || text.bytes().filter(u8::is_ascii_digit).count() > EXACT_DECIMAL_DIGITS)
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'))
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
        && exact_double(text).is_none()
}

#[cfg(test)]
pub(super) mod cells {
    use super::{CellKind, LineEncoder, TypedGroup, is_long_number};
    use proptest::prelude::*;
    use throng_core::values::json::{push_quoted, push_shortest};

    pub const TEST_CELL_KINDS: [CellKind; 4] = [CellKind::Integer, CellKind::Float, CellKind::Boolean, CellKind::Text];

    pub fn group(numbers: &[[u32; 2]], id: Option<u32>) -> TypedGroup {
        let names = (0..TEST_CELL_KINDS.len()).map(|i| format!("a{i}")).collect();
        TypedGroup { names, kinds: TEST_CELL_KINDS.to_vec(), numbers: numbers.to_vec(), id }
    }

    pub const TEST_ATTRIBUTE_NAMES: [&str; 4] = ["a0", "a1", "a2", "a3"];

    pub fn line<C: AsRef<str>>(lines: &impl LineEncoder, cells: &[C]) -> Vec<u8> {
        let mut line = Vec::new();
        lines.encode(&cells.iter().map(AsRef::as_ref).collect::<Vec<_>>(), &mut line);
        line
    }

    /// Checks that cells round-trip, and that other bytes are refused.
    pub fn check_round_trip(lines: &impl LineEncoder, cells: &[String], noise: &[u8]) -> Result<(), TestCaseError> {
        let mut read = Vec::new();
        prop_assert!(lines.read(&line(lines, cells), &mut read).is_some());
        prop_assert_eq!(&read, cells);
        if lines.read(noise, &mut read).is_some() {
            prop_assert_eq!(line(lines, &read), noise);
        }
        Ok(())
    }

    pub fn check_unknown_group(lines: &impl LineEncoder) {
        assert_eq!(lines.read(&line(lines, &["42"]), &mut Vec::new()), None);
        assert_eq!(lines.read(&[], &mut Vec::new()), None);
    }

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
                "[1-9][0-9]{17,20}\\.[0-9]{1,8}[1-9]",
                // The shortest text has an exponent.
                "-?0\\.00000[0-9]{0,6}[1-9]",
            ]
            .boxed(),
            CellKind::Boolean => prop_oneof![Just("true".to_owned()), Just("false".to_owned())].boxed(),
            CellKind::Text => text.clone().boxed(),
        };
        // Texts that are numbers with too many digits are not supported.
        let numeric = prop_oneof![Just("\"37.0\""), Just("\"1e3\""), Just("\"22.5\""), Just("\"1\""), Just("\"-0\"")];
        let label = prop_oneof![text, numeric.prop_map(str::to_owned)];
        let label = label.prop_filter("no long number", |label| !is_long_number(&label[1..label.len() - 1]));
        prop_oneof![Just("null".to_owned()), Just("\"*\"".to_owned()), exact, label].boxed()
    }
}
