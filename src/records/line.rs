//! How a fragment is written as one line, and how the cells of such a line are found again.
//!
//! Both directions live here because verification counts the *bytes* that leave: it must be able to go from a
//! line back to its cells without asking the code that chose them.

use super::json::quoted;

/// The format of the lines that leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// One JSON object; an omitted cell has no key.
    Json,
    /// One row; a missing cell is empty, an empty string is `""`. A cell cannot be omitted.
    Csv { separator: u8 },
}

/// The attributes of one group, ready to be written: names in the order in which they leave.
#[derive(Clone, Debug)]
pub struct LineLayout {
    format: LineFormat,
    /// `"name":` for JSON; unused for CSV.
    keys: Vec<String>,
}

impl LineLayout {
    #[must_use]
    pub fn new(format: LineFormat, names: &[&str]) -> Self {
        let keys = names.iter().map(|name| format!("{}:", serde_json::Value::from(*name))).collect();
        Self { format, keys }
    }

    /// Number of cells of a line.
    #[must_use]
    pub fn width(&self) -> usize {
        self.keys.len()
    }

    /// Appends one line (without its line break) made of the JSON texts of its cells; an empty text is an omitted cell.
    pub fn write<'a>(&self, cells: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
        match self.format {
            LineFormat::Json => {
                out.push(b'{');
                let mut first = true;
                for (key, text) in self.keys.iter().zip(cells) {
                    if text.is_empty() {
                        continue;
                    }
                    if !first {
                        out.push(b',');
                    }
                    first = false;
                    out.extend_from_slice(key.as_bytes());
                    out.extend_from_slice(text.as_bytes());
                }
                out.push(b'}');
            }
            LineFormat::Csv { separator } => {
                for (i, text) in cells.enumerate() {
                    if i > 0 {
                        out.push(separator);
                    }
                    write_csv_cell(text, separator, out);
                }
            }
        }
    }

    /// The JSON texts of the cells of `line`, one an attribute (empty = omitted).
    /// `None` when the line is not exactly what [`write`](Self::write) produces for this layout.
    pub fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        // The strings of the line before are written over, so that reading many lines allocates next to nothing.
        cells.resize(self.keys.len(), String::new());
        let line = std::str::from_utf8(line).ok()?;
        match self.format {
            LineFormat::Json => self.read_json(line, cells),
            LineFormat::Csv { separator } => Self::read_csv(line, char::from(separator), cells),
        }
    }

    fn read_json(&self, line: &str, cells: &mut [String]) -> Option<()> {
        let mut rest = line.strip_prefix('{')?;
        let mut first = true;
        for (key, cell) in self.keys.iter().zip(cells) {
            cell.clear();
            let body = if first { rest } else { rest.strip_prefix(',').unwrap_or("") };
            let Some(value) = body.strip_prefix(key.as_str()) else { continue };
            // A key without a value is not how an omitted cell is written.
            let end = scalar_end(value).filter(|end| *end > 0)?;
            cell.push_str(&value[..end]);
            rest = &value[end..];
            first = false;
        }
        (rest == "}").then_some(())
    }

    fn read_csv(line: &str, separator: char, cells: &mut [String]) -> Option<()> {
        let mut rest = line;
        for (i, cell) in cells.iter_mut().enumerate() {
            cell.clear();
            if i > 0 {
                rest = rest.strip_prefix(separator)?;
            }
            if let Some(open) = rest.strip_prefix('"') {
                let mut text = String::new();
                let mut chars = open.char_indices();
                let end = loop {
                    match chars.next()? {
                        (at, '"') if open[at + 1..].starts_with('"') => {
                            text.push('"');
                            chars.next();
                        }
                        (at, '"') => break at + 1,
                        (_, c) => text.push(c),
                    }
                };
                rest = &open[end..];
                cell.push_str(&quoted(&text));
            } else {
                let end = rest.find(separator).unwrap_or(rest.len());
                let bare = &rest[..end];
                rest = &rest[end..];
                // Written are these as nothing and as quoted text.
                if bare == "null" || bare.contains('"') {
                    return None;
                }
                cell.push_str(if bare.is_empty() { "null" } else { bare });
            }
        }
        rest.is_empty().then_some(())
    }
}

/// Length of the JSON scalar that `text` starts with.
fn scalar_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.first() == Some(&b'"') {
        let mut i = 1;
        loop {
            match bytes.get(i)? {
                b'\\' => i += 2,
                b'"' => return Some(i + 1),
                _ => i += 1,
            }
        }
    }
    bytes.iter().position(|b| matches!(b, b',' | b'}'))
}

/// Strings are always quoted and nothing else is, so that a text can be told from a number, and `""` from nothing.
fn write_csv_cell(json: &str, separator: u8, out: &mut Vec<u8>) {
    if json.is_empty() || json == "null" {
        return;
    }
    match serde_json::from_str::<String>(json) {
        Ok(text) => {
            out.push(b'"');
            for byte in text.bytes() {
                if byte == b'"' {
                    out.push(b'"');
                }
                out.push(byte);
            }
            out.push(b'"');
        }
        Err(_) => {
            debug_assert!(!json.as_bytes().contains(&separator), "a number or boolean has no separator in it");
            out.extend_from_slice(json.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("null".to_owned()),
            any::<i32>().prop_map(|n| n.to_string()),
            ".*".prop_map(|s| quoted(&s)),
            // Control characters have more than one spelling in JSON.
            "[\\x00-\\x1f\"\\\\a]{1,4}".prop_map(|s| quoted(&s)),
        ]
    }

    /// Found by fuzzing: what is no text by its first character, and would be written as one, or as nothing.
    #[test]
    fn a_line_is_read_only_as_it_is_written() {
        let layout = LineLayout::new(LineFormat::Csv { separator: b',' }, &["a", "b"]);
        let mut cells = Vec::new();
        for row in ["7, \"\"", "7,x\"", "null,7", "7,null"] {
            assert_eq!(layout.read(row.as_bytes(), &mut cells), None, "{row}");
        }
        assert_eq!(layout.read(b"7,\"null\"", &mut cells), Some(()));
        assert_eq!(cells, ["7", "\"null\""]);
        let layout = LineLayout::new(LineFormat::Json, &["a", "b"]);
        assert_eq!(layout.read(br#"{"a":,"b":7}"#, &mut cells), None);
        assert_eq!(layout.read(br#"{"b":7}"#, &mut cells), Some(()));
    }

    proptest! {
        #[test]
        fn a_line_gives_its_cells_back(
            cells in prop::collection::vec(prop_oneof![3 => cell(), 1 => Just(String::new())], 1..6),
            names in prop::collection::vec(".{0,6}", 6),
        ) {
            let mut names: Vec<String> = names;
            for (i, name) in names.iter_mut().enumerate() { name.push_str(&i.to_string()); }
            let names: Vec<&str> = names.iter().take(cells.len()).map(String::as_str).collect();
            let layout = LineLayout::new(LineFormat::Json, &names);
            let mut out = Vec::new();
            layout.write(cells.iter().map(String::as_str), &mut out);
            let parsed: serde_json::Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(parsed.as_object().unwrap().len(), cells.iter().filter(|c| !c.is_empty()).count());
            let mut back = Vec::new();
            layout.read(&out, &mut back).unwrap();
            prop_assert_eq!(back, cells);
        }

        #[test]
        fn a_row_gives_its_cells_back(cells in prop::collection::vec(cell(), 1..6)) {
            let names: Vec<String> = (0..cells.len()).map(|i| i.to_string()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let layout = LineLayout::new(LineFormat::Csv { separator: b';' }, &names);
            let mut out = Vec::new();
            layout.write(cells.iter().map(String::as_str), &mut out);
            let mut back = Vec::new();
            layout.read(&out, &mut back).unwrap();
            prop_assert_eq!(back, cells);
        }

        #[test]
        fn nothing_else_is_read_as_a_line(noise in ".{0,40}") {
            let layout = LineLayout::new(LineFormat::Json, &["a", "b"]);
            let mut back = Vec::new();
            if layout.read(noise.as_bytes(), &mut back).is_some() {
                let mut again = Vec::new();
                layout.write(back.iter().map(String::as_str), &mut again);
                prop_assert_eq!(again, noise.as_bytes());
            }
        }
    }
}
