//! Lines that are JSON objects: keys in the order of the group, values as they are spelled, no white space.

use super::line::Encoder;
use super::line_text::scalar_end;

/// Writes and reads the JSON lines of one group.
#[derive(Debug)]
pub(super) struct JsonLines {
    /// `"name":`, by attribute.
    keys: Vec<String>,
}

impl JsonLines {
    pub fn new(names: &[&str]) -> Self {
        Self { keys: names.iter().map(|name| format!("{}:", serde_json::Value::from(*name))).collect() }
    }
}

impl Encoder for JsonLines {
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>) {
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

    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        // The strings of the line before are written over, so that reading many lines allocates next to nothing.
        cells.resize(self.keys.len(), String::new());
        let line = std::str::from_utf8(line).ok()?;
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
}
