//! Value tree of an Avro or Protobuf message, and its cells.

use super::path_tree::{ElementPaths, PathNode, index};
use super::record_decoder::{DecodeLimits, NumberedFields, UnknownCellPolicy};
use std::borrow::Cow;
use throng_core::values::json::{push_quoted, push_shortest};
use throng_core::values::moment::{in_range, push_date, push_rfc3339};
use throng_core::values::raw_batch::{RawBatch, RawToken};
use throng_core::values::rejection::RejectionReason;

/// Bounds the JSON text of a structure. Values without bytes still have a text.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// Values of a message, which its size does not bound.
const MAX_VALUES: usize = 1 << 20;

const MAX_KEPT_VALUES: usize = 1 << 17;

#[derive(Clone, Debug)]
pub(super) enum MessageTree<'a> {
    Null,
    Absent,
    Skipped,
    /// Undecoded element: type, depth and bytes.
    Unread(u32, u32, &'a [u8]),
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    Single(f32),
    Double(f64),
    Digits(String),
    Text(Cow<'a, str>),
    /// Milliseconds since 1970.
    Date(i64),
    /// Milliseconds since midnight.
    Time(i64),
    /// Milliseconds since 1970.
    Moment(i64),
    /// Refuses the record that needs it.
    Refused(RejectionReason),
    /// Items up to the last selected one, and the number of others.
    List(Vec<MessageTree<'a>>, u32),
    Object(Box<ObjectTree<'a>>),
}

impl<'a> MessageTree<'a> {
    /// Refused if out of range.
    pub fn of_millis(millis: Option<i64>, of: impl FnOnce(i64) -> Self) -> Self {
        millis.and_then(in_range).map_or(Self::Refused(RejectionReason::WrongType), of)
    }

    pub fn into_key(self) -> Result<Cow<'a, str>, RejectionReason> {
        if let Self::Text(text) = self {
            return Ok(text);
        }
        let mut text = String::new();
        if let TokenKind::Bool(value) = append_cell_text(&self, &mut text)? {
            text.push_str(if value { "true" } else { "false" });
        }
        Ok(text.into())
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct ObjectTree<'a> {
    /// `None` for a map.
    pub record: Option<usize>,
    pub members: Vec<ObjectMember<'a>>,
    /// Unselected members outside `members`.
    pub dropped: u64,
    /// Represented value, such as a timestamp.
    pub represented_value: Option<MessageTree<'a>>,
}

#[derive(Clone, Debug)]
pub(super) struct ObjectMember<'a> {
    pub name: Cow<'a, str>,
    pub field: u32,
    /// Present in the message, and no default.
    pub is_written: bool,
    pub value: MessageTree<'a>,
}

/// Selected part of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum PathSelection<'p> {
    Nothing,
    Inside(&'p PathNode),
    All,
}

impl<'p> PathSelection<'p> {
    pub fn of(node: &'p PathNode) -> Self {
        if node.attributes.is_empty() { Self::Inside(node) } else { Self::All }
    }

    pub fn entry(self, key: &str) -> Self {
        match self {
            Self::Inside(node) => node.child(key).map_or(Self::Nothing, Self::of),
            other => other,
        }
    }

    #[inline]
    pub fn field(self, record: usize, field: usize, name: &str) -> Self {
        match self {
            Self::Inside(node) => node.field(record, field, name).map_or(Self::Nothing, Self::of),
            other => other,
        }
    }

    pub fn max_member_count(self, fields: usize) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Inside(node) => node.children().count().min(fields),
            Self::All => fields,
        }
    }

    pub fn bind<'n>(self, record: usize, names: impl Iterator<Item = &'n str>) {
        if let Self::Inside(node) = self {
            node.bind(record, names);
        }
    }

    /// Returns the index of the last selected item.
    pub fn last_item(self) -> Option<usize> {
        match self {
            Self::Nothing => None,
            Self::Inside(node) if !node.is_array => node.children().filter_map(|(segment, _)| index(segment)).max(),
            _ => Some(usize::MAX),
        }
    }

    pub fn is_record_array(self) -> bool {
        matches!(self, Self::Inside(node) if node.is_array)
    }

    pub fn item(self, index: usize, elements: Option<&'p ElementPaths>) -> Self {
        let Self::Inside(node) = self else { return self };
        let indexed = if node.is_leaf() { None } else { node.child(&index.to_string()) };
        match (indexed, elements.filter(|_| node.is_array)) {
            (Some(_), Some(_)) => Self::All,
            (Some(node), None) => Self::of(node),
            (None, Some(elements)) => Self::of(&elements.root),
            (None, None) => Self::Nothing,
        }
    }
}

#[derive(Debug)]
pub(super) struct SelectedPaths {
    pub root: PathNode,
    pub elements: Option<ElementPaths>,
    pub limits: DecodeLimits,
    pub unknown: UnknownCellPolicy,
}

impl SelectedPaths {
    pub fn new(fields: &NumberedFields, limits: DecodeLimits, unknown: UnknownCellPolicy) -> Self {
        let numbered = || fields.iter().map(|(attribute, field)| (*attribute, field));
        Self { root: PathNode::from_fields(numbered()), elements: PathNode::element_paths(numbered()), limits, unknown }
    }

    /// Returns the bytes of bindings, for at most `fields` fields per type.
    pub fn bytes(&self, fields: usize) -> usize {
        let elements = self.elements.as_ref().map_or(0, |elements| elements.root.binding_bytes(fields));
        self.root.binding_bytes(fields) + elements
    }

    /// The record has depth 1.
    pub fn check_depth(&self, depth: usize) -> Result<(), RejectionReason> {
        if depth > self.limits.max_depth { Err(RejectionReason::TooDeep) } else { Ok(()) }
    }

    pub fn row<'b, 't>(&self, batch: &'b mut RawBatch) -> TreeRowWriter<'b, 't> {
        TreeRowWriter { batch, unknown: self.unknown, text: String::new(), exploded: None }
    }

    /// Splits the row into one per element. `fill` decodes an element from type, bytes, node and depth.
    pub fn explode<'p, 't>(
        &'p self,
        row: TreeRowWriter<'_, 't>,
        fill: impl Fn(TreeRowWriter<'_, 't>, usize, &'t [u8], &'p PathNode, usize) -> Result<(), RejectionReason>,
    ) -> Result<(), RejectionReason> {
        let Some(elements) = &self.elements else { return Ok(()) };
        let list = match row.exploded {
            None => return Err(RejectionReason::NoElements),
            Some(MessageTree::List(list, _)) if list.is_empty() => return Err(RejectionReason::NoElements),
            Some(MessageTree::List(list, _)) if list.len() > self.limits.max_elements => {
                return Err(RejectionReason::TooManyElements);
            }
            Some(MessageTree::List(list, _)) => list,
            Some(_) => return Err(RejectionReason::NotAnArray),
        };
        row.batch.explode(list, self.limits.max_repeated_bytes, |batch, mut element| {
            if let MessageTree::Unread(id, depth, bytes) = element {
                return fill(self.row(batch), id as usize, bytes, &elements.root, depth as usize);
            }
            let is_record = matches!(element, MessageTree::List(..) | MessageTree::Object(_) | MessageTree::Refused(_));
            if !is_record && elements.root.attributes.is_empty() {
                return Err(RejectionReason::NotAnObject);
            }
            self.row(batch).write_message_tree(&elements.root, &mut element, false)
        })
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueCount {
    value_total: usize,
    kept: usize,
}

impl ValueCount {
    /// Must be called for every value.
    #[inline]
    pub fn register_value(&mut self, is_kept: bool) -> Result<(), RejectionReason> {
        self.value_total += 1;
        self.kept += usize::from(is_kept);
        let fits = self.value_total <= MAX_VALUES && self.kept <= MAX_KEPT_VALUES;
        if fits { Ok(()) } else { Err(RejectionReason::Oversized) }
    }
}

pub(super) struct TreeRowWriter<'b, 't> {
    batch: &'b mut RawBatch,
    unknown: UnknownCellPolicy,
    text: String,
    exploded: Option<MessageTree<'t>>,
}

impl<'t> TreeRowWriter<'_, 't> {
    /// If `covered`, an attribute contains the whole value, so nothing is dropped.
    pub fn write_message_tree(
        &mut self,
        node: &PathNode,
        tree: &mut MessageTree<'t>,
        covered: bool,
    ) -> Result<(), RejectionReason> {
        self.write_cells(node, tree, covered)?;
        if node.is_array && !matches!(tree, MessageTree::Null | MessageTree::Absent) {
            // A map may repeat a key, and no element may be lost.
            if self.exploded.replace(std::mem::replace(tree, MessageTree::Skipped)).is_some() {
                return Err(RejectionReason::DuplicateKey);
            }
        }
        Ok(())
    }

    #[inline]
    fn write_cells(
        &mut self,
        node: &PathNode,
        tree: &mut MessageTree<'t>,
        covered: bool,
    ) -> Result<(), RejectionReason> {
        if matches!(tree, MessageTree::Absent) {
            return Ok(());
        }
        if !node.attributes.is_empty() {
            self.text.clear();
            let token = match tree {
                MessageTree::Text(text) => RawToken::Text(text),
                _ => append_cell_text(tree, &mut self.text)?.token(&self.text),
            };
            for &attribute in &node.attributes {
                if !self.batch.set(attribute, token) {
                    return Err(RejectionReason::DuplicateKey);
                }
            }
            if node.is_leaf() {
                return Ok(());
            }
        }
        let covered = covered || !node.attributes.is_empty() || node.is_array;
        match tree {
            MessageTree::Object(object) => {
                for member in &mut object.members {
                    let child = match object.record {
                        Some(record) => node.field(record, member.field as usize, &member.name),
                        None => node.child(&member.name),
                    };
                    match child {
                        Some(child) => self.write_message_tree(child, &mut member.value, covered)?,
                        None if member.is_written => self.drop_values(1, covered)?,
                        None => {}
                    }
                }
                self.drop_values(object.dropped, covered)
            }
            MessageTree::List(items, behind) => {
                for (index, item) in items.iter_mut().enumerate() {
                    match if node.is_leaf() { None } else { node.child(&index.to_string()) } {
                        Some(child) => self.write_message_tree(child, item, covered)?,
                        None => self.drop_values(1, covered)?,
                    }
                }
                self.drop_values((*behind).into(), covered)
            }
            MessageTree::Refused(reason) => Err(*reason),
            MessageTree::Null => Ok(()),
            // Scalar in place of a structure.
            _ if node.attributes.is_empty() => self.drop_values(1, covered),
            _ => Ok(()),
        }
    }

    pub fn drop_values(&mut self, count: u64, covered: bool) -> Result<(), RejectionReason> {
        if covered || count == 0 {
            return Ok(());
        }
        self.batch.unknown_cells += count;
        match self.unknown {
            UnknownCellPolicy::Drop => Ok(()),
            UnknownCellPolicy::Refuse => Err(RejectionReason::UnknownAttribute),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Null,
    Bool(bool),
    Number,
    Text,
    Structure,
}

impl TokenKind {
    fn token(self, text: &str) -> RawToken<'_> {
        match self {
            Self::Null => RawToken::Null,
            Self::Bool(value) => RawToken::Bool(value),
            Self::Number => RawToken::Number(text),
            Self::Text => RawToken::Text(text),
            Self::Structure => RawToken::Structure(text),
        }
    }
}

/// Appends a number; a word for a non-finite value.
fn push_float(out: &mut String, value: f64, push: impl Fn(&mut String, f64)) -> TokenKind {
    if value.is_finite() {
        push(out, if value == 0.0 { 0.0 } else { value });
        TokenKind::Number
    } else {
        out.push_str(if value.is_nan() { "NaN" } else { "infinite" });
        TokenKind::Text
    }
}

/// Uses the shortest exact digits of single precision.
fn push_single(out: &mut String, value: f64) {
    use std::fmt::Write as _;
    #[allow(clippy::cast_possible_truncation, reason = "it was a float")]
    let written = write!(out, "{}", value as f32);
    debug_assert!(written.is_ok());
}

fn append_cell_text(tree: &MessageTree<'_>, out: &mut String) -> Result<TokenKind, RejectionReason> {
    Ok(match tree {
        MessageTree::Null | MessageTree::Absent | MessageTree::Skipped | MessageTree::Unread(..) => TokenKind::Null,
        MessageTree::Bool(value) => TokenKind::Bool(*value),
        MessageTree::Integer(value) => push_number(out, value),
        MessageTree::Unsigned(value) => push_number(out, value),
        MessageTree::Single(value) => push_float(out, f64::from(*value), push_single),
        MessageTree::Double(value) => push_float(out, *value, push_shortest),
        MessageTree::Digits(text) => {
            out.push_str(text);
            TokenKind::Number
        }
        MessageTree::Text(text) => {
            out.push_str(text);
            TokenKind::Text
        }
        MessageTree::Date(millis) => push_text(out, |out| push_date(out, *millis)),
        MessageTree::Time(millis) => push_text(out, |out| push_time(out, *millis)),
        MessageTree::Moment(millis) => push_text(out, |out| push_rfc3339(out, *millis)),
        MessageTree::Refused(reason) => return Err(*reason),
        MessageTree::Object(object) if object.represented_value.is_some() => {
            return object.represented_value.as_ref().map_or(Ok(TokenKind::Null), |value| append_cell_text(value, out));
        }
        MessageTree::Object(_) | MessageTree::List(..) => {
            push_json(tree, out)?;
            TokenKind::Structure
        }
    })
}

fn push_number(out: &mut String, value: &impl std::fmt::Display) -> TokenKind {
    use std::fmt::Write as _;
    let written = write!(out, "{value}");
    debug_assert!(written.is_ok());
    TokenKind::Number
}

fn push_text(out: &mut String, push: impl FnOnce(&mut String)) -> TokenKind {
    push(out);
    TokenKind::Text
}

fn push_time(out: &mut String, millis: i64) {
    let (seconds, fraction) = (millis / 1_000, millis % 1_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    out.push_str(&format!("{hours:02}:{minutes:02}:{:02}.{fraction:03}", seconds % 60));
}

fn push_json(tree: &MessageTree<'_>, out: &mut String) -> Result<(), RejectionReason> {
    if out.len() > MAX_TEXT_BYTES {
        return Err(RejectionReason::Oversized);
    }
    match tree {
        MessageTree::Object(object) if object.represented_value.is_none() => {
            out.push('{');
            for (at, member) in object.members.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_quoted(out, &member.name);
                out.push(':');
                push_json(&member.value, out)?;
            }
            out.push('}');
        }
        MessageTree::List(items, _) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_json(item, out)?;
            }
            out.push(']');
        }
        _ => {
            let mut text = String::new();
            match append_cell_text(tree, &mut text)? {
                TokenKind::Null => out.push_str("null"),
                TokenKind::Bool(value) => out.push_str(if value { "true" } else { "false" }),
                TokenKind::Number | TokenKind::Structure => out.push_str(&text),
                TokenKind::Text => push_quoted(out, &text),
            }
        }
    }
    Ok(())
}
