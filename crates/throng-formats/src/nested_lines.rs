//! Nested JSON lines. Objects without cells are omitted. Arrays end at their last cell; `null` fills earlier gaps.

use super::path_tree::index;
use std::sync::Arc;
use throng_core::line_encoder::LineEncoder;

/// Step on the path to an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NestingStep {
    /// Object member with this key.
    Key(String),
    /// Array element; can be the last step only in an array with one element.
    ArrayIndex(usize),
}

impl NestingStep {
    /// Converts a segment to an index as JSON pointers write it, otherwise to a key.
    #[must_use]
    pub fn from_segment(segment: String) -> Self {
        match index(&segment) {
            Some(index) => Self::ArrayIndex(index),
            None => Self::Key(segment),
        }
    }
}

/// Attribute names with their paths.
pub type NestedPaths = Arc<[(String, Vec<NestingStep>)]>;

#[derive(Debug)]
pub(super) struct NestedLines {
    root: NestedLineNode,
    width: usize,
}

#[derive(Debug)]
enum NestedLineNode {
    Leaf(usize),
    /// Children with keys as `"key":`.
    Object(Vec<(String, NestedLineNode)>),
    /// `None` without an attribute of the group.
    Array(Vec<Option<NestedLineNode>>),
}

impl NestedLines {
    /// # Panics
    /// Panics if a name has no path, or if one path is a prefix of another.
    pub fn new(nesting: &NestedPaths, names: &[&str]) -> Self {
        let mut root = NestedLineNode::Object(Vec::new());
        for (cell, name) in names.iter().enumerate() {
            let (_, way) =
                nesting.iter().find(|(known, _)| known == name).expect("every released attribute has a path");
            root.insert_cell(way, cell);
        }
        Self { root, width: names.len() }
    }
}

impl NestedLineNode {
    fn empty_for(step: Option<&NestingStep>, cell: usize) -> Self {
        match step {
            None => Self::Leaf(cell),
            Some(NestingStep::Key(_)) => Self::Object(Vec::new()),
            Some(NestingStep::ArrayIndex(_)) => Self::Array(Vec::new()),
        }
    }

    fn insert_cell(&mut self, way: &[NestingStep], cell: usize) {
        let Some((step, rest)) = way.split_first() else { return };
        let fresh = || Self::empty_for(rest.first(), cell);
        let next = match (self, step) {
            (Self::Object(children), NestingStep::Key(key)) => {
                let key = format!("{}:", serde_json::Value::from(key.as_str()));
                let at = children.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
                    children.push((key, fresh()));
                    children.len() - 1
                });
                &mut children[at].1
            }
            (Self::Array(places), NestingStep::ArrayIndex(index)) => {
                if places.len() <= *index {
                    places.resize_with(index + 1, || None);
                }
                places[*index].get_or_insert_with(fresh)
            }
            _ => panic!("two attribute paths contradict each other"),
        };
        next.insert_cell(rest, cell);
    }

    fn has_cells(&self, cells: &[&str]) -> bool {
        match self {
            Self::Leaf(cell) => !cells[*cell].is_empty(),
            Self::Object(children) => children.iter().any(|(_, child)| child.has_cells(cells)),
            Self::Array(places) => places.iter().flatten().any(|child| child.has_cells(cells)),
        }
    }

    fn write_node(&self, cells: &[&str], out: &mut Vec<u8>) {
        match self {
            Self::Leaf(cell) => out.extend_from_slice(cells[*cell].as_bytes()),
            Self::Object(children) => {
                out.push(b'{');
                let there = children.iter().filter(|(_, child)| child.has_cells(cells));
                for (number, (key, child)) in there.enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(key.as_bytes());
                    child.write_node(cells, out);
                }
                out.push(b'}');
            }
            Self::Array(places) => {
                out.push(b'[');
                let there: Vec<_> =
                    places.iter().map(|child| child.as_ref().filter(|child| child.has_cells(cells))).collect();
                let end = there.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
                for (number, child) in there[..end].iter().enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    match child {
                        Some(child) => child.write_node(cells, out),
                        None => out.extend_from_slice(b"null"),
                    }
                }
                out.push(b']');
            }
        }
    }

    /// Reads cells and returns the rest; `None` if the text differs from the output of
    /// [`write_node`](Self::write_node).
    fn read_node<'t>(&self, text: &'t str, cells: &mut [String], may_be_empty: bool) -> Option<&'t str> {
        match self {
            Self::Leaf(cell) => {
                let end = scalar_end(text).filter(|end| *end > 0)?;
                cells[*cell].push_str(&text[..end]);
                Some(&text[end..])
            }
            Self::Object(children) => {
                let mut rest = text.strip_prefix('{')?;
                let mut first = true;
                for (key, child) in children {
                    let body = if first { rest } else { rest.strip_prefix(',').unwrap_or("") };
                    let Some(value) = body.strip_prefix(key.as_str()) else { continue };
                    rest = child.read_node(value, cells, false)?;
                    first = false;
                }
                rest.strip_prefix('}').filter(|_| may_be_empty || !first)
            }
            Self::Array(places) => {
                let mut rest = text.strip_prefix('[')?;
                for (index, child) in places.iter().enumerate() {
                    let is_gap = !matches!(child, Some(Self::Leaf(_))) && rest.starts_with("null");
                    rest = match child {
                        _ if is_gap => &rest["null".len()..],
                        Some(child) => child.read_node(rest, cells, false)?,
                        None => return None,
                    };
                    if let Some(rest) = rest.strip_prefix(']') {
                        return (!is_gap).then_some(rest);
                    }
                    if index + 1 < places.len() {
                        rest = rest.strip_prefix(',')?;
                    }
                }
                None
            }
        }
    }
}

impl LineEncoder for NestedLines {
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>) {
        self.root.write_node(cells, out);
    }

    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        cells.resize(self.width, String::new());
        cells.iter_mut().for_each(String::clear);
        let rest = self.root.read_node(std::str::from_utf8(line).ok()?, cells, true)?;
        rest.is_empty().then_some(())
    }
}

pub(super) fn scalar_end(text: &str) -> Option<usize> {
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
    bytes.iter().position(|b| matches!(b, b',' | b'}' | b']'))
}

#[cfg(test)]
#[path = "nested_lines_tests.rs"]
mod tests;
