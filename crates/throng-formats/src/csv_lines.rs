use throng_core::line_encoder::LineEncoder;
use throng_core::values::formula::{needs_guard, unguarded};
use throng_core::values::json::quoted;

#[derive(Debug)]
pub(super) struct CsvLines {
    width: usize,
    separator: u8,
}

impl CsvLines {
    pub fn new(width: usize, separator: u8) -> Self {
        Self { width, separator }
    }

    /// Not empty in a row of one cell, because CSV readers skip blank lines.
    fn missing_value_text(&self) -> &'static str {
        if self.width == 1 { "null" } else { "" }
    }
}

impl LineEncoder for CsvLines {
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>) {
        for (i, text) in cells.iter().enumerate() {
            if i > 0 {
                out.push(self.separator);
            }
            if text.is_empty() || *text == "null" {
                out.extend_from_slice(self.missing_value_text().as_bytes());
            } else {
                write_cell(text, self.separator, out);
            }
        }
    }

    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        cells.resize(self.width, String::new());
        let separator = char::from(self.separator);
        let mut rest = std::str::from_utf8(line).ok()?;
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
                let is_bare_formula = needs_guard(&text) && !text.starts_with('\'');
                if is_bare_formula {
                    return None;
                }
                cell.push_str(&quoted(unguarded(&text)));
            } else {
                let end = rest.find(separator).unwrap_or(rest.len());
                let bare = &rest[..end];
                rest = &rest[end..];
                cell.push_str(match bare {
                    _ if bare == self.missing_value_text() => "null",
                    "" | "null" => return None,
                    _ if bare.contains('"') => return None,
                    _ => bare,
                });
            }
        }
        rest.is_empty().then_some(())
    }
}

/// Quotes only texts, and prefixes those that a spreadsheet would read as a formula with `'`.
fn write_cell(json: &str, separator: u8, out: &mut Vec<u8>) {
    match serde_json::from_str::<String>(json) {
        Ok(text) => {
            out.push(b'"');
            if needs_guard(&text) {
                out.push(b'\'');
            }
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
