//! Groups whose lines have typed columns: a cell is nothing, a value of its attribute's type, or a text.
//!
//! What is generalized is a text, and so is `"*"`: every column of numbers or truth values has room for texts, too.

use crate::records::json::{push_quoted, push_shortest};
use std::borrow::Cow;

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
        match self.id {
            Some(id) => [&[0][..], &id.to_be_bytes()].concat(),
            None => Vec::new(),
        }
    }
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
    use super::{CellKind, is_long_number};
    use crate::records::json::{push_quoted, push_shortest};
    use proptest::prelude::*;

    /// Every kind once.
    pub const KINDS: [CellKind; 4] = [CellKind::Integer, CellKind::Float, CellKind::Boolean, CellKind::Text];

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
