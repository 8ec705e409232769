//! Lines that are Avro data, as topics take them: a cell is nothing, a value of its attribute's type, or a text.
//!
//! What is generalized is a text, and so is `"*"`; every column is therefore a union. Text columns are
//! `["null", "string"]`, the others `["null", TYPE, "string"]`.

use super::line::Encoder;
use crate::records::json::{push_quoted, push_shortest};

/// The type of a column's exact values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AvroKind {
    /// A long.
    Integer,
    /// A double.
    Float,
    /// A boolean.
    Boolean,
    /// A string.
    Text,
}

impl AvroKind {
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

/// The Avro data of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvroGroup {
    /// The names of its attributes, in their order.
    pub names: Vec<String>,
    /// The types of their exact values.
    pub kinds: Vec<AvroKind>,
    /// The number of its schema in a registry, where it has one: it is written before every line.
    pub id: Option<u32>,
}

/// Writes and reads the lines of one group.
#[derive(Debug)]
pub(super) struct AvroLines {
    kinds: Vec<AvroKind>,
    frame: Vec<u8>,
    /// The group is none of those whose schemas are known. What would be written is nothing that could be read.
    unknown: bool,
}

impl AvroLines {
    pub fn new(groups: &[AvroGroup], names: &[&str]) -> Self {
        let group = groups.iter().find(|group| group.names.iter().map(String::as_str).eq(names.iter().copied()));
        let frame = group.and_then(|group| group.id).map(|id| {
            let mut frame = vec![0];
            frame.extend_from_slice(&id.to_be_bytes());
            frame
        });
        Self {
            kinds: group.map(|group| group.kinds.clone()).unwrap_or_default(),
            frame: frame.unwrap_or_default(),
            unknown: group.is_none(),
        }
    }
}

impl Encoder for AvroLines {
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame);
        for (kind, text) in self.kinds.iter().zip(cells) {
            encode_cell(*kind, text, out);
        }
    }

    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        cells.resize(self.kinds.len(), String::new());
        let mut rest = line.strip_prefix(self.frame.as_slice())?;
        for (kind, cell) in self.kinds.iter().zip(cells.iter_mut()) {
            cell.clear();
            rest = read_cell(*kind, rest, cell)?;
        }
        // A number has one spelling; what is spelled in another way was not written here.
        let mut again = Vec::with_capacity(line.len());
        let texts: Vec<&str> = cells.iter().map(String::as_str).collect();
        self.encode(&texts, &mut again);
        (!self.unknown && rest.is_empty() && again == line).then_some(())
    }
}

/// The double whose shortest spelling is `text`.
fn double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    let mut again = String::new();
    push_shortest(&mut again, value);
    (again == text).then_some(value)
}

fn encode_cell(kind: AvroKind, json: &str, out: &mut Vec<u8>) {
    if json.is_empty() || json == "null" {
        out.push(0);
        return;
    }
    let branch = |branch: u8, out: &mut Vec<u8>| out.push(branch << 1);
    if !json.starts_with('"') {
        match kind {
            AvroKind::Integer => {
                if let Ok(value) = json.parse::<i64>() {
                    branch(1, out);
                    push_long(value, out);
                    return;
                }
            }
            AvroKind::Float => {
                if let Some(value) = double(json) {
                    branch(1, out);
                    out.extend_from_slice(&value.to_le_bytes());
                    return;
                }
            }
            AvroKind::Boolean => {
                branch(1, out);
                out.push(u8::from(json == "true"));
                return;
            }
            AvroKind::Text => {}
        }
    }
    // A text, or a number with more digits than a double has: those stay as they are spelled.
    let text =
        if json.starts_with('"') { serde_json::from_str::<String>(json).unwrap_or_default() } else { json.into() };
    branch(kind.text_branch(), out);
    push_long(i64::try_from(text.len()).unwrap_or(i64::MAX), out);
    out.extend_from_slice(text.as_bytes());
}

fn read_cell<'a>(kind: AvroKind, bytes: &'a [u8], cell: &mut String) -> Option<&'a [u8]> {
    let (&branch, rest) = bytes.split_first()?;
    if branch == 0 {
        cell.push_str("null");
        return Some(rest);
    }
    if branch == kind.text_branch() << 1 {
        let (length, rest) = long(rest)?;
        let (text, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        let text = std::str::from_utf8(text).ok()?;
        if kind == AvroKind::Float && is_long_number(text) {
            cell.push_str(text);
        } else {
            push_quoted(cell, text);
        }
        return Some(rest);
    }
    if branch != 2 {
        return None;
    }
    match kind {
        AvroKind::Integer => {
            let (value, rest) = long(rest)?;
            cell.push_str(&value.to_string());
            Some(rest)
        }
        AvroKind::Float => {
            let (bytes, rest) = rest.split_first_chunk::<8>()?;
            push_shortest(cell, f64::from_le_bytes(*bytes));
            Some(rest)
        }
        AvroKind::Boolean => {
            let (&value, rest) = rest.split_first()?;
            cell.push_str(if value == 1 { "true" } else { "false" });
            Some(rest)
        }
        AvroKind::Text => None,
    }
}

/// Digits that every double has.
const SURE_DIGITS: usize = 15;

/// A number that is written as a text, since no double has its digits. Labels of a hierarchy have fewer.
fn is_long_number(text: &str) -> bool {
    text.bytes().filter(u8::is_ascii_digit).count() > SURE_DIGITS
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'))
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
        && double(text).is_none()
}

fn push_long(value: i64, out: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn long(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut value = 0_u64;
    for (at, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(at).ok()?)?;
        if byte & 0x80 == 0 {
            return Some(((value >> 1).cast_signed() ^ -((value & 1).cast_signed()), &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(kinds: &[AvroKind], id: Option<u32>) -> AvroLines {
        let names: Vec<String> = (0..kinds.len()).map(|i| format!("a{i}")).collect();
        let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
        AvroLines::new(&[AvroGroup { names: names.clone(), kinds: kinds.to_vec(), id }], &borrowed)
    }

    fn cells_of(kind: AvroKind) -> BoxedStrategy<String> {
        let text = "\\PC{0,12}".prop_map(|text| {
            let mut out = String::new();
            push_quoted(&mut out, &text);
            out
        });
        let exact = match kind {
            AvroKind::Integer => any::<i64>().prop_map(|value| value.to_string()).boxed(),
            AvroKind::Float => prop_oneof![
                any::<f64>().prop_filter("finite", |v| v.is_finite()).prop_map(|value| {
                    let mut out = String::new();
                    push_shortest(&mut out, value);
                    out
                }),
                // More digits than a double tells apart, as rounding to a step writes them.
                "[1-9][0-9]{17,20}\\.[0-9]{1,8}[1-9]",
            ]
            .boxed(),
            AvroKind::Boolean => prop_oneof![Just("true".to_owned()), Just("false".to_owned())].boxed(),
            AvroKind::Text => text.clone().boxed(),
        };
        // A label that reads like a number of too many digits is the one text that cannot stand in such a column.
        let numeric = prop_oneof![Just("\"37.0\""), Just("\"1e3\""), Just("\"22.5\""), Just("\"1\""), Just("\"-0\"")];
        let label = prop_oneof![text, numeric.prop_map(str::to_owned)];
        let label = label.prop_filter("no long number", |label| !is_long_number(&label[1..label.len() - 1]));
        prop_oneof![Just("null".to_owned()), Just("\"*\"".to_owned()), exact, label].boxed()
    }

    const KINDS: [AvroKind; 4] = [AvroKind::Integer, AvroKind::Float, AvroKind::Boolean, AvroKind::Text];

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            cells in KINDS.map(cells_of).to_vec(),
            id in prop::option::of(any::<u32>()),
        ) {
            let lines = lines(&KINDS, id);
            let mut line = Vec::new();
            lines.encode(&cells.iter().map(String::as_str).collect::<Vec<_>>(), &mut line);
            let mut read = Vec::new();
            prop_assert!(lines.read(&line, &mut read).is_some());
            prop_assert_eq!(read, cells);
        }

        #[test]
        fn what_was_not_written_is_not_read(line in prop::collection::vec(any::<u8>(), 0..40)) {
            let lines = lines(&KINDS, None);
            let mut read = Vec::new();
            if lines.read(&line, &mut read).is_some() {
                let mut again = Vec::new();
                lines.encode(&read.iter().map(String::as_str).collect::<Vec<_>>(), &mut again);
                prop_assert_eq!(again, line);
            }
        }
    }

    #[test]
    fn a_group_without_a_schema_gives_nothing_that_could_be_read() {
        let lines = AvroLines::new(&[], &["age"]);
        let mut line = Vec::new();
        lines.encode(&["42"], &mut line);
        assert_eq!(lines.read(&line, &mut Vec::new()), None);
    }
}
