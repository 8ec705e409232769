//! A decoded message as a tree of values, and the walk that sets the cells of the attributes from it (Avro, Protobuf).
//!
//! A reader builds the parts that attributes lead to, as its [`Want`] says, and counts the others.

use super::path_tree::{Elements, PathNode, index};
use super::record::{Fields, Limits, Unknown};
use std::borrow::Cow;
use throng_core::values::json::{push_quoted, push_shortest};
use throng_core::values::moment::{in_range, push_date, push_rfc3339};
use throng_core::values::raw::{RawBatch, Token};
use throng_core::values::rejection::RejectionReason;

/// The longest JSON text of a structure. Values that take no bytes have a text all the same.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// Values in one message, read or passed over. Values that take no bytes are not bounded by the size of the message.
const MAX_VALUES: usize = 1 << 20;

/// Those of them that are kept in memory. A structure that is one cell has fewer, for its text is bounded.
const MAX_KEPT_VALUES: usize = 1 << 17;

/// One value.
#[derive(Clone, Debug)]
pub(super) enum Tree<'a> {
    /// A value that is there and is null.
    Null,
    /// A value that is not there.
    Absent,
    /// A value that no attribute leads to.
    Skipped,
    /// An element that is a record: the number of its type, its depth and its bytes.
    Unread(u32, u32, &'a [u8]),
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    Single(f32),
    Double(f64),
    /// A number as it is spelled in JSON.
    Digits(String),
    Text(Cow<'a, str>),
    /// Milliseconds since 1970, of which the day counts.
    Date(i64),
    /// Milliseconds since midnight.
    Time(i64),
    /// Milliseconds since 1970.
    Moment(i64),
    /// A value that has no text, or an element that cannot be read: whoever needs it is refused for this reason.
    Refused(RejectionReason),
    /// Its items as far as attributes lead to them, and how many come behind those.
    List(Vec<Tree<'a>>, u32),
    Object(Box<Object<'a>>),
}

impl<'a> Tree<'a> {
    /// The day, or the moment, at so many milliseconds, by `of`; refused where there is no such one.
    pub fn of_millis(millis: Option<i64>, of: impl FnOnce(i64) -> Self) -> Self {
        millis.and_then(in_range).map_or(Self::Refused(RejectionReason::WrongType), of)
    }

    /// The text of a scalar that is the key of a map.
    pub fn into_key(self) -> Result<Cow<'a, str>, RejectionReason> {
        if let Self::Text(text) = self {
            return Ok(text);
        }
        let mut text = String::new();
        if let Kind::Bool(value) = spell(&self, &mut text)? {
            text.push_str(if value { "true" } else { "false" });
        }
        Ok(text.into())
    }
}

/// A record, a message or a map.
#[derive(Clone, Debug, Default)]
pub(super) struct Object<'a> {
    /// The number of its type; none for a map.
    pub record: Option<usize>,
    pub members: Vec<Member<'a>>,
    /// Members that were there, that no attribute leads to and that are not among `members`.
    pub dropped: u64,
    /// The value that a message stands for, such as a timestamp.
    pub stands_for: Option<Tree<'a>>,
}

/// A field, or an entry of a map.
#[derive(Clone, Debug)]
pub(super) struct Member<'a> {
    pub name: Cow<'a, str>,
    /// The number of the field in its record type.
    pub field: u32,
    /// Whether the message has it, and it is not there by default.
    pub is_written: bool,
    pub value: Tree<'a>,
}

/// The part of a value that attributes lead to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Want<'p> {
    Nothing,
    /// The parts that these pointers lead to.
    Inside(&'p PathNode),
    All,
}

impl<'p> Want<'p> {
    pub fn of(node: &'p PathNode) -> Self {
        if node.attributes.is_empty() { Self::Inside(node) } else { Self::All }
    }

    /// The part that is wanted of the entry of a map with the key `key`.
    pub fn entry(self, key: &str) -> Self {
        match self {
            Self::Inside(node) => node.child(key).map_or(Self::Nothing, Self::of),
            other => other,
        }
    }

    /// The part that is wanted of field number `field` of the record type `record`, called `name`.
    #[inline]
    pub fn field(self, record: usize, field: usize, name: &str) -> Self {
        match self {
            Self::Inside(node) => node.field(record, field, name).map_or(Self::Nothing, Self::of),
            other => other,
        }
    }

    /// The most members that are wanted of a record of so many fields.
    pub fn most_members(self, fields: usize) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Inside(node) => node.children().count().min(fields),
            Self::All => fields,
        }
    }

    /// To be called before [`field`](Self::field), for speed.
    pub fn bind<'n>(self, record: usize, names: impl Iterator<Item = &'n str>) {
        if let Self::Inside(node) = self {
            node.bind(record, names);
        }
    }

    /// The last item of a list that attributes lead to.
    pub fn last_item(self) -> Option<usize> {
        match self {
            Self::Nothing => None,
            Self::Inside(node) if !node.is_array => node.children().filter_map(|(segment, _)| index(segment)).max(),
            _ => Some(usize::MAX),
        }
    }

    /// Whether the elements that are records are looked for here.
    pub fn is_exploded(self) -> bool {
        matches!(self, Self::Inside(node) if node.is_array)
    }

    /// The part that is wanted of item `index` of a list.
    pub fn item(self, index: usize, elements: Option<&'p Elements>) -> Self {
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

/// The pointers of a record's attributes, and its limits.
#[derive(Debug)]
pub(super) struct Paths {
    pub root: PathNode,
    pub elements: Option<Elements>,
    pub limits: Limits,
    pub unknown: Unknown,
}

impl Paths {
    pub fn new(fields: &Fields, limits: Limits, unknown: Unknown) -> Self {
        let numbered = || fields.iter().map(|(attribute, field)| (*attribute, field));
        Self { root: PathNode::of(numbered()), elements: PathNode::of_elements(numbered()), limits, unknown }
    }

    /// Bytes of memory that they take beside the pointers, where a record type has at most so many fields.
    pub fn bytes(&self, fields: usize) -> usize {
        let elements = self.elements.as_ref().map_or(0, |elements| elements.root.binding_bytes(fields));
        self.root.binding_bytes(fields) + elements
    }

    /// Refuses a structure that lies too deep; the record itself is depth 1.
    pub fn check_depth(&self, depth: usize) -> Result<(), RejectionReason> {
        if depth > self.limits.max_depth { Err(RejectionReason::TooDeep) } else { Ok(()) }
    }

    /// The row of `batch` opened last, to be filled.
    pub fn row<'b, 't>(&self, batch: &'b mut RawBatch) -> Row<'b, 't> {
        Row { batch, unknown: self.unknown, text: String::new(), exploded: None }
    }

    /// Makes a row of each element, where there are elements, once the whole of a message has been taken. An element that is unread fills
    /// its row by `fill`: its type, its bytes, its node and its depth.
    pub fn explode<'p, 't>(
        &'p self,
        row: Row<'_, 't>,
        fill: impl Fn(Row<'_, 't>, usize, &'t [u8], &'p PathNode, usize) -> Result<(), RejectionReason>,
    ) -> Result<(), RejectionReason> {
        let Some(elements) = &self.elements else { return Ok(()) };
        let list = match row.exploded {
            None => return Err(RejectionReason::NoElements),
            Some(Tree::List(list, _)) if list.is_empty() => return Err(RejectionReason::NoElements),
            Some(Tree::List(list, _)) if list.len() > self.limits.max_elements => {
                return Err(RejectionReason::TooManyElements);
            }
            Some(Tree::List(list, _)) => list,
            Some(_) => return Err(RejectionReason::NotAnArray),
        };
        row.batch.explode(list, self.limits.max_repeated_bytes, |batch, mut element| {
            if let Tree::Unread(id, depth, bytes) = element {
                return fill(self.row(batch), id as usize, bytes, &elements.root, depth as usize);
            }
            let is_record = matches!(element, Tree::List(..) | Tree::Object(_) | Tree::Refused(_));
            if !is_record && elements.root.attributes.is_empty() {
                return Err(RejectionReason::NotAnObject);
            }
            self.row(batch).take(&elements.root, &mut element, false)
        })
    }
}

/// Counts the values of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueCount {
    met: usize,
    kept: usize,
}

impl ValueCount {
    /// To be called for every value.
    #[inline]
    pub fn step(&mut self, is_kept: bool) -> Result<(), RejectionReason> {
        self.met += 1;
        self.kept += usize::from(is_kept);
        let fits = self.met <= MAX_VALUES && self.kept <= MAX_KEPT_VALUES;
        if fits { Ok(()) } else { Err(RejectionReason::Oversized) }
    }
}

/// A row being filled.
pub(super) struct Row<'b, 't> {
    batch: &'b mut RawBatch,
    unknown: Unknown,
    /// The text of a cell.
    text: String,
    /// The value in which the elements are looked for that are records.
    exploded: Option<Tree<'t>>,
}

impl<'t> Row<'_, 't> {
    /// Takes the cells of a value. `covered` if an attribute has a value around it as a whole, so that no part of it is dropped.
    pub fn take(&mut self, node: &PathNode, tree: &mut Tree<'t>, covered: bool) -> Result<(), RejectionReason> {
        self.take_cells(node, tree, covered)?;
        if node.is_array && !matches!(tree, Tree::Null | Tree::Absent) {
            // A map may have a key twice: the elements of neither may vanish.
            if self.exploded.replace(std::mem::replace(tree, Tree::Skipped)).is_some() {
                return Err(RejectionReason::DuplicateKey);
            }
        }
        Ok(())
    }

    #[inline]
    fn take_cells(&mut self, node: &PathNode, tree: &mut Tree<'t>, covered: bool) -> Result<(), RejectionReason> {
        if matches!(tree, Tree::Absent) {
            return Ok(());
        }
        if !node.attributes.is_empty() {
            self.text.clear();
            let token = match tree {
                Tree::Text(text) => Token::Text(text),
                _ => spell(tree, &mut self.text)?.token(&self.text),
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
            Tree::Object(object) => {
                for member in &mut object.members {
                    let child = match object.record {
                        Some(record) => node.field(record, member.field as usize, &member.name),
                        None => node.child(&member.name),
                    };
                    match child {
                        Some(child) => self.take(child, &mut member.value, covered)?,
                        None if member.is_written => self.drop_values(1, covered)?,
                        None => {}
                    }
                }
                self.drop_values(object.dropped, covered)
            }
            Tree::List(items, behind) => {
                for (index, item) in items.iter_mut().enumerate() {
                    match if node.is_leaf() { None } else { node.child(&index.to_string()) } {
                        Some(child) => self.take(child, item, covered)?,
                        None => self.drop_values(1, covered)?,
                    }
                }
                self.drop_values((*behind).into(), covered)
            }
            Tree::Refused(reason) => Err(*reason),
            Tree::Null => Ok(()),
            // A scalar where the pointers lead further down.
            _ if node.attributes.is_empty() => self.drop_values(1, covered),
            _ => Ok(()),
        }
    }

    /// Counts values that no attribute leads to.
    pub fn drop_values(&mut self, count: u64, covered: bool) -> Result<(), RejectionReason> {
        if covered || count == 0 {
            return Ok(());
        }
        self.batch.unknown_cells += count;
        match self.unknown {
            Unknown::Drop => Ok(()),
            Unknown::Refuse => Err(RejectionReason::UnknownAttribute),
        }
    }
}

/// What kind of cell a text in a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    Bool(bool),
    Number,
    Text,
    Structure,
}

impl Kind {
    /// The cell whose text is `text`.
    fn token(self, text: &str) -> Token<'_> {
        match self {
            Self::Null => Token::Null,
            Self::Bool(value) => Token::Bool(value),
            Self::Number => Token::Number(text),
            Self::Text => Token::Text(text),
            Self::Structure => Token::Structure(text),
        }
    }
}

/// Appends a number by `push`. What is no number stays a word, which no numeric attribute takes.
fn push_float(out: &mut String, value: f64, push: impl Fn(&mut String, f64)) -> Kind {
    if value.is_finite() {
        push(out, if value == 0.0 { 0.0 } else { value });
        Kind::Number
    } else {
        out.push_str(if value.is_nan() { "NaN" } else { "infinite" });
        Kind::Text
    }
}

/// Appends a number that was a float: as many digits as tell it from its neighbours, which are fewer than a double's.
fn push_single(out: &mut String, value: f64) {
    use std::fmt::Write as _;
    #[allow(clippy::cast_possible_truncation, reason = "it was a float")]
    let written = write!(out, "{}", value as f32);
    // Writing to a String cannot fail.
    debug_assert!(written.is_ok());
}

/// Appends the text of a cell.
fn spell(tree: &Tree<'_>, out: &mut String) -> Result<Kind, RejectionReason> {
    Ok(match tree {
        Tree::Null | Tree::Absent | Tree::Skipped | Tree::Unread(..) => Kind::Null,
        Tree::Bool(value) => Kind::Bool(*value),
        Tree::Integer(value) => push_number(out, value),
        Tree::Unsigned(value) => push_number(out, value),
        Tree::Single(value) => push_float(out, f64::from(*value), push_single),
        Tree::Double(value) => push_float(out, *value, push_shortest),
        Tree::Digits(text) => {
            out.push_str(text);
            Kind::Number
        }
        Tree::Text(text) => {
            out.push_str(text);
            Kind::Text
        }
        Tree::Date(millis) => push_text(out, |out| push_date(out, *millis)),
        Tree::Time(millis) => push_text(out, |out| push_time(out, *millis)),
        Tree::Moment(millis) => push_text(out, |out| push_rfc3339(out, *millis)),
        Tree::Refused(reason) => return Err(*reason),
        Tree::Object(object) if object.stands_for.is_some() => {
            return object.stands_for.as_ref().map_or(Ok(Kind::Null), |value| spell(value, out));
        }
        Tree::Object(_) | Tree::List(..) => {
            push_json(tree, out)?;
            Kind::Structure
        }
    })
}

fn push_number(out: &mut String, value: &impl std::fmt::Display) -> Kind {
    use std::fmt::Write as _;
    // Writing to a String cannot fail.
    let written = write!(out, "{value}");
    debug_assert!(written.is_ok());
    Kind::Number
}

fn push_text(out: &mut String, push: impl FnOnce(&mut String)) -> Kind {
    push(out);
    Kind::Text
}

/// `10:05:07.250`.
fn push_time(out: &mut String, millis: i64) {
    let (seconds, fraction) = (millis / 1_000, millis % 1_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    out.push_str(&format!("{hours:02}:{minutes:02}:{:02}.{fraction:03}", seconds % 60));
}

/// Appends a value as JSON.
fn push_json(tree: &Tree<'_>, out: &mut String) -> Result<(), RejectionReason> {
    if out.len() > MAX_TEXT_BYTES {
        return Err(RejectionReason::Oversized);
    }
    match tree {
        Tree::Object(object) if object.stands_for.is_none() => {
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
        Tree::List(items, _) => {
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
            match spell(tree, &mut text)? {
                Kind::Null => out.push_str("null"),
                Kind::Bool(value) => out.push_str(if value { "true" } else { "false" }),
                Kind::Number | Kind::Structure => out.push_str(&text),
                Kind::Text => push_quoted(out, &text),
            }
        }
    }
    Ok(())
}
