//! Lines that are Avro data, as topics take them: a cell is nothing, a value of its attribute's type, or a text.
//!
//! Text columns are unions of `["null", "string"]`, the others of `["null", TYPE, "string"]`.

use super::line::Encoder;
use super::typed::{CellKind, Typed, TypedGroup};

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

/// Writes and reads the lines of one group.
#[derive(Debug)]
pub(super) struct AvroLines {
    kinds: Vec<CellKind>,
    frame: Vec<u8>,
    /// The group is none of those whose schemas are known. What would be written is nothing that could be read.
    unknown: bool,
}

impl AvroLines {
    pub fn new(groups: &[TypedGroup], names: &[&str]) -> Self {
        let group = TypedGroup::find(groups, names);
        Self {
            kinds: group.map(|group| group.kinds.clone()).unwrap_or_default(),
            frame: group.map(TypedGroup::frame).unwrap_or_default(),
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

fn encode_cell(kind: CellKind, json: &str, out: &mut Vec<u8>) {
    let branch = |branch: u8, out: &mut Vec<u8>| out.push(branch << 1);
    match Typed::of(kind, json) {
        Typed::Null => out.push(0),
        Typed::Integer(value) => {
            branch(1, out);
            push_long(value, out);
        }
        Typed::Float(value) => {
            branch(1, out);
            out.extend_from_slice(&value.to_le_bytes());
        }
        Typed::Boolean(value) => {
            branch(1, out);
            out.push(u8::from(value));
        }
        Typed::Text(text) => {
            branch(kind.text_branch(), out);
            push_long(i64::try_from(text.len()).unwrap_or(i64::MAX), out);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

fn read_cell<'a>(kind: CellKind, bytes: &'a [u8], cell: &mut String) -> Option<&'a [u8]> {
    let (&branch, rest) = bytes.split_first()?;
    let (typed, rest) = if branch == 0 {
        (Typed::Null, rest)
    } else if branch == kind.text_branch() << 1 {
        let (length, rest) = long(rest)?;
        let (text, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        (Typed::Text(std::str::from_utf8(text).ok()?.into()), rest)
    } else if branch != 2 {
        return None;
    } else {
        match kind {
            CellKind::Integer => {
                let (value, rest) = long(rest)?;
                (Typed::Integer(value), rest)
            }
            CellKind::Float => {
                let (bytes, rest) = rest.split_first_chunk::<8>()?;
                (Typed::Float(f64::from_le_bytes(*bytes)), rest)
            }
            CellKind::Boolean => {
                let (&value, rest) = rest.split_first()?;
                (Typed::Boolean(value == 1), rest)
            }
            CellKind::Text => return None,
        }
    };
    typed.push(kind, cell);
    Some(rest)
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
    use crate::codec::typed::cells::{self, KINDS};
    use proptest::prelude::*;

    fn lines(kinds: &[CellKind], id: Option<u32>) -> AvroLines {
        let names: Vec<String> = (0..kinds.len()).map(|i| format!("a{i}")).collect();
        let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
        AvroLines::new(
            &[TypedGroup { names: names.clone(), kinds: kinds.to_vec(), numbers: Vec::new(), id }],
            &borrowed,
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            cells in KINDS.map(cells::of).to_vec(),
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
