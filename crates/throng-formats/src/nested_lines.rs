//! Lines that are nested JSON objects: each cell where the way of its attribute leads, no white space.
//!
//! What has no cell is left out: a key with its object, the end of an array. Before the end of an array `null` keeps the place.

use super::line::Encoder;
use super::path_tree::index;
use std::sync::Arc;

/// One step on the way to an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into an object, by key.
    Key(String),
    /// Into an array, by index. Only as the one place of its array it may be the last step.
    Place(usize),
}

impl Step {
    /// The step of a pointer's segment: an index, where it is one as JSON pointers write them, or else a key.
    #[must_use]
    pub fn of(segment: String) -> Self {
        match index(&segment) {
            Some(index) => Self::Place(index),
            None => Self::Key(segment),
        }
    }
}

/// Where attributes stand in nested lines: the name of each, and the way to it.
pub type Nesting = Arc<[(String, Vec<Step>)]>;

/// Writes and reads the nested lines of one group.
#[derive(Debug)]
pub(super) struct NestedLines {
    root: Node,
    width: usize,
}

/// What stands at a place of a line.
#[derive(Debug)]
enum Node {
    /// A cell, by its number in the group.
    Leaf(usize),
    /// By key, spelled `"key":`, in the order in which the attributes come.
    Object(Vec<(String, Node)>),
    /// By index; none where no attribute of the group leads there.
    Array(Vec<Option<Node>>),
}

impl NestedLines {
    /// # Panics
    /// When `nesting` has no way to one of `names`, or one way ends where another goes on.
    pub fn new(nesting: &Nesting, names: &[&str]) -> Self {
        let mut root = Node::Object(Vec::new());
        for (cell, name) in names.iter().enumerate() {
            let (_, way) =
                nesting.iter().find(|(known, _)| known == name).expect("every attribute that leaves has a way");
            root.reach(way, cell);
        }
        Self { root, width: names.len() }
    }
}

impl Node {
    /// An empty structure that `step` leads into, or the cell where there is none.
    fn before(step: Option<&Step>, cell: usize) -> Self {
        match step {
            None => Self::Leaf(cell),
            Some(Step::Key(_)) => Self::Object(Vec::new()),
            Some(Step::Place(_)) => Self::Array(Vec::new()),
        }
    }

    fn reach(&mut self, way: &[Step], cell: usize) {
        let Some((step, rest)) = way.split_first() else { return };
        let fresh = || Self::before(rest.first(), cell);
        let next = match (self, step) {
            (Self::Object(children), Step::Key(key)) => {
                let key = format!("{}:", serde_json::Value::from(key.as_str()));
                let at = children.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
                    children.push((key, fresh()));
                    children.len() - 1
                });
                &mut children[at].1
            }
            (Self::Array(places), Step::Place(index)) => {
                if places.len() <= *index {
                    places.resize_with(index + 1, || None);
                }
                places[*index].get_or_insert_with(fresh)
            }
            _ => panic!("two ways of attributes contradict each other"),
        };
        next.reach(rest, cell);
    }

    /// Whether any cell below is there.
    fn is_there(&self, cells: &[&str]) -> bool {
        match self {
            Self::Leaf(cell) => !cells[*cell].is_empty(),
            Self::Object(children) => children.iter().any(|(_, child)| child.is_there(cells)),
            Self::Array(places) => places.iter().flatten().any(|child| child.is_there(cells)),
        }
    }

    fn write(&self, cells: &[&str], out: &mut Vec<u8>) {
        match self {
            Self::Leaf(cell) => out.extend_from_slice(cells[*cell].as_bytes()),
            Self::Object(children) => {
                out.push(b'{');
                let there = children.iter().filter(|(_, child)| child.is_there(cells));
                for (number, (key, child)) in there.enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(key.as_bytes());
                    child.write(cells, out);
                }
                out.push(b'}');
            }
            Self::Array(places) => {
                out.push(b'[');
                let there: Vec<_> =
                    places.iter().map(|child| child.as_ref().filter(|child| child.is_there(cells))).collect();
                let end = there.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
                for (number, child) in there[..end].iter().enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    match child {
                        Some(child) => child.write(cells, out),
                        None => out.extend_from_slice(b"null"),
                    }
                }
                out.push(b']');
            }
        }
    }

    /// Reads what `text` begins with into the cells below, which are empty; gives the rest. None where that is not spelled as
    /// [`write`](Self::write) spells something that is there; an object without anything only where it `may_be_empty`.
    fn read<'t>(&self, text: &'t str, cells: &mut [String], may_be_empty: bool) -> Option<&'t str> {
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
                    rest = child.read(value, cells, false)?;
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
                        Some(child) => child.read(rest, cells, false)?,
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

impl Encoder for NestedLines {
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>) {
        self.root.write(cells, out);
    }

    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        // The strings of the line before are written over.
        cells.resize(self.width, String::new());
        cells.iter_mut().for_each(String::clear);
        let rest = self.root.read(std::str::from_utf8(line).ok()?, cells, true)?;
        rest.is_empty().then_some(())
    }
}

/// Length of the JSON scalar that `text` starts with.
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
