use super::nested_lines::{NestedLines, NestedPaths, scalar_end};
use super::typed_lines::TypedGroup;
use throng_core::line_encoder::LineEncoder;

#[derive(Debug)]
pub(super) struct JsonLines {
    keys: Vec<String>,
}

impl JsonLines {
    pub fn new(names: &[&str]) -> Self {
        Self { keys: names.iter().map(|name| format!("{}:", serde_json::Value::from(*name))).collect() }
    }
}

impl LineEncoder for JsonLines {
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
        cells.resize(self.keys.len(), String::new());
        let line = std::str::from_utf8(line).ok()?;
        let mut rest = line.strip_prefix('{')?;
        let mut first = true;
        for (key, cell) in self.keys.iter().zip(cells) {
            cell.clear();
            let body = if first { rest } else { rest.strip_prefix(',').unwrap_or("") };
            let Some(value) = body.strip_prefix(key.as_str()) else { continue };
            // An omitted cell has no key; a key without a value is refused.
            let end = scalar_end(value).filter(|end| *end > 0)?;
            cell.push_str(&value[..end]);
            rest = &value[end..];
            first = false;
        }
        (rest == "}").then_some(())
    }
}

#[derive(Debug)]
pub(super) struct FramedJsonLines {
    frame: Vec<u8>,
    lines: Box<dyn LineEncoder>,
    /// Lines without a known schema cannot be read back.
    unknown: bool,
}

impl FramedJsonLines {
    pub fn new(groups: &[TypedGroup], nesting: Option<&NestedPaths>, names: &[&str]) -> Self {
        let lines: Box<dyn LineEncoder> = match nesting {
            Some(nesting) => Box::new(NestedLines::new(nesting, names)),
            None => Box::new(JsonLines::new(names)),
        };
        let group = TypedGroup::find(groups, names);
        let frame = group.map(TypedGroup::frame).unwrap_or_default();
        Self { frame, lines, unknown: group.is_none() }
    }
}

impl LineEncoder for FramedJsonLines {
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame);
        self.lines.encode(cells, out);
    }

    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        let line = line.strip_prefix(self.frame.as_slice()).filter(|_| !self.unknown)?;
        self.lines.read(line, cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framed_json_line_starts_with_schema_id() {
        let group = TypedGroup { names: vec!["a".into()], kinds: Vec::new(), numbers: Vec::new(), id: Some(258) };
        let lines = FramedJsonLines::new(&[group], None, &["a"]);
        let mut line = Vec::new();
        lines.encode(&["7"], &mut line);
        assert_eq!(line, b"\0\0\0\x01\x02{\"a\":7}");
        let mut cells = Vec::new();
        assert_eq!((lines.read(&line, &mut cells), cells.as_slice()), (Some(()), ["7".to_owned()].as_slice()));
        assert_eq!(lines.read(b"\0\0\0\x01\x03{\"a\":7}", &mut cells), None, "another schema's");
        assert_eq!(lines.read(b"{\"a\":7}", &mut cells), None);
        let nobody = FramedJsonLines::new(&[], None, &["a"]);
        let mut line = Vec::new();
        nobody.encode(&["7"], &mut line);
        assert_eq!(nobody.read(&line, &mut cells), None, "without a schema it is nothing that could be read");
    }
}
