//! Which fields of a message lead to attributes, and the walk that takes them.

use super::shape::{Form, MessageShape, Shapes, TypeId, Value};
use super::spell::{Bounds, Items, Occurrence, cell, default, entry, whole_field};
use super::wire::{Bytes, MALFORMED};
use crate::codec::path_tree::{PathNode, index};
use crate::codec::record::Fields;
use crate::codec::{Limits, Unknown};
use crate::records::raw::{RawBatch, Token};
use crate::telemetry::RejectionReason;
use std::collections::BTreeMap;

/// What is taken of a value.
#[derive(Debug, Default)]
pub(super) struct Take {
    /// Attributes that are the value as a whole.
    whole: Vec<usize>,
    /// Whether the elements that are records are looked for in the value, which is no list.
    is_exploded: bool,
    /// By field, where some lead further; none in a value that has no fields.
    fields: Vec<Option<FieldTake>>,
}

/// What is taken of a field.
#[derive(Debug)]
enum FieldTake {
    One(Take),
    List(ListTake),
    Map(MapTake),
}

/// What is taken of a repeated field.
#[derive(Debug)]
struct ListTake {
    /// The attributes that are all of it.
    whole: Vec<usize>,
    /// By index, rising.
    items: Vec<(usize, Take)>,
    /// What is taken of each item, where the items are the records.
    elements: Option<Take>,
}

/// What is taken of a map.
#[derive(Debug)]
struct MapTake {
    /// The attributes that are all of it.
    whole: Vec<usize>,
    /// By key, rising.
    values: Vec<(String, Take)>,
    /// Whether the elements that are records are looked for in it.
    is_exploded: bool,
}

impl Take {
    pub fn of_fields(shapes: &Shapes, fields: &Fields) -> Self {
        let numbered = || fields.iter().map(|(attribute, field)| (*attribute, field));
        let (root, elements) = (PathNode::of(numbered()), PathNode::of_elements(numbered()));
        Self::of(shapes, Value::Message(0), &[&root], elements.as_ref().map(|elements| &elements.root))
    }

    /// Several nodes lead to one field where it is named in two ways. `elements` are wanted of each element that is a record.
    fn of(shapes: &Shapes, of: Value, nodes: &[&PathNode], elements: Option<&PathNode>) -> Self {
        let (whole, is_exploded) = (attributes(nodes), is_array(nodes));
        let id = match of {
            Value::Message(id) if !nodes.iter().all(|node| node.is_leaf()) => id,
            _ => return Self { whole, is_exploded, fields: Vec::new() },
        };
        let shape = shapes.get(id);
        let mut wanted: BTreeMap<usize, Vec<&PathNode>> = BTreeMap::new();
        for (segment, node) in nodes.iter().flat_map(|node| node.children()) {
            if let Some(field) = shape.named(segment) {
                wanted.entry(field).or_default().push(node);
            }
        }
        let mut fields: Vec<Option<FieldTake>> = Vec::new();
        fields.resize_with(shape.fields.len(), || None);
        for (at, nodes) in wanted {
            fields[at] = Some(FieldTake::of(shapes, shape, at, &nodes, elements));
        }
        Self { whole, is_exploded, fields }
    }

    /// Bytes of memory that it takes, roughly.
    pub fn bytes(&self) -> usize {
        let of_field = |field: &FieldTake| match field {
            FieldTake::One(take) => take.bytes(),
            FieldTake::List(list) => {
                list.items.iter().map(|(_, take)| take).chain(&list.elements).map(Self::bytes).sum()
            }
            FieldTake::Map(map) => map.values.iter().map(|(key, take)| key.len() + take.bytes()).sum(),
        };
        let own = self.fields.capacity() * size_of::<Option<FieldTake>>();
        own + self.fields.iter().flatten().map(of_field).sum::<usize>()
    }

    /// Whether some field of the message is not taken at all.
    pub fn drops(&self) -> bool {
        self.whole.is_empty() && (self.fields.is_empty() || self.fields.iter().any(Option::is_none))
    }

    /// Adds the attributes that something leads to.
    pub fn reached(&self, out: &mut Vec<usize>) {
        out.extend(&self.whole);
        for field in self.fields.iter().flatten() {
            match field {
                FieldTake::One(take) => take.reached(out),
                FieldTake::List(list) => {
                    out.extend(&list.whole);
                    list.items.iter().map(|(_, take)| take).chain(&list.elements).for_each(|take| take.reached(out));
                }
                FieldTake::Map(map) => {
                    out.extend(&map.whole);
                    map.values.iter().for_each(|(_, take)| take.reached(out));
                }
            }
        }
    }
}

impl FieldTake {
    fn of(shapes: &Shapes, shape: &MessageShape, at: usize, nodes: &[&PathNode], elements: Option<&PathNode>) -> Self {
        let field = &shape.fields[at];
        let by_segment = || {
            let mut by_segment: BTreeMap<&str, Vec<&PathNode>> = BTreeMap::new();
            for (segment, node) in nodes.iter().flat_map(|node| node.children()) {
                by_segment.entry(segment).or_default().push(node);
            }
            by_segment
        };
        let below = |nodes: &[&PathNode]| Take::of(shapes, field.value, nodes, elements);
        match field.form {
            Form::One { .. } => Self::One(below(nodes)),
            Form::List => {
                let indexed = by_segment().into_iter().filter_map(|(segment, nodes)| Some((index(segment)?, nodes)));
                let mut items: Vec<_> = indexed.map(|(at, nodes)| (at, below(&nodes))).collect();
                items.sort_by_key(|(at, _)| *at);
                let elements = elements.filter(|_| is_array(nodes));
                let elements = elements.map(|root| Take::of(shapes, field.value, &[root], None));
                Self::List(ListTake { whole: attributes(nodes), items, elements })
            }
            Form::Map(_) => {
                let values = by_segment().into_iter().map(|(key, nodes)| (key.to_owned(), below(&nodes)));
                Self::Map(MapTake { whole: attributes(nodes), values: values.collect(), is_exploded: is_array(nodes) })
            }
        }
    }
}

fn attributes(nodes: &[&PathNode]) -> Vec<usize> {
    nodes.iter().flat_map(|node| node.attributes.iter().copied()).collect()
}

fn is_array(nodes: &[&PathNode]) -> bool {
    nodes.iter().any(|node| node.is_array)
}

/// A row being filled from a record.
pub(super) struct Walk<'w, 'a> {
    pub shapes: &'w Shapes,
    pub limits: Limits,
    pub bounds: Bounds,
    pub batch: &'w mut RawBatch,
    pub unknown: Unknown,
    /// The text of a cell.
    pub text: String,
    /// How often the fields of the messages being read were there, and then their oneofs; those of the innermost message last.
    pub met: Vec<usize>,
    /// What stands where the elements are looked for that are records, once that was met.
    pub exploded: Option<Exploded<'w, 'a>>,
}

/// What stands where the elements are looked for that are records.
pub(super) enum Exploded<'w, 'a> {
    NotAList,
    List(Elements<'w, 'a>),
}

/// The elements that are records.
pub(super) struct Elements<'w, 'a> {
    take: &'w Take,
    of: Value,
    /// Of each element; the record is 1.
    depth: usize,
    /// The bytes of each.
    places: Vec<Bytes<'a>>,
}

/// Makes a row of `batch` for each element of the list that `walk` has met, of the row opened last.
///
/// # Errors
/// When there is no list, or it has no element or more than may be.
pub(super) fn explode(walk: Walk<'_, '_>) -> Result<(), RejectionReason> {
    let Walk { shapes, limits, batch, unknown, exploded, .. } = walk;
    let Elements { take, of, depth, places } = match exploded {
        None => return Err(RejectionReason::NoElements),
        Some(Exploded::NotAList) => return Err(RejectionReason::NotAnArray),
        Some(Exploded::List(elements)) => elements,
    };
    if take.whole.is_empty() && matches!(of, Value::Scalar(_)) {
        // The schema's fault, as it would be that of each element.
        batch.explode(places, limits.max_repeated_bytes, |_, _| Err(RejectionReason::NotAnObject))
    } else {
        batch.explode(places, limits.max_repeated_bytes, |batch, bytes| {
            // The bounds of a record are each element's.
            let mut walk = Walk::new(shapes, limits, batch, unknown);
            walk.value(take, of, bytes, depth, false)
        })
    }
}

impl<'w, 'a> Walk<'w, 'a> {
    pub fn new(shapes: &'w Shapes, limits: Limits, batch: &'w mut RawBatch, unknown: Unknown) -> Self {
        let (bounds, text, met) = (Bounds::new(limits.max_depth), String::new(), Vec::new());
        Self { shapes, limits, bounds, batch, unknown, text, met, exploded: None }
    }

    /// Takes what is wanted of a message. `covered` where an attribute has a value around it as a whole, so that nothing in it is
    /// dropped.
    pub fn record(&mut self, take: &'w Take, bytes: Bytes<'a>) -> Result<(), RejectionReason> {
        self.value(take, Value::Message(0), bytes, 1, false)
    }

    fn value(
        &mut self,
        take: &'w Take,
        of: Value,
        bytes: Bytes<'a>,
        depth: usize,
        covered: bool,
    ) -> Result<(), RejectionReason> {
        if take.is_exploded {
            self.exploded = Some(Exploded::NotAList);
        }
        if !take.whole.is_empty() {
            let kind = cell(self.shapes, of, bytes, depth, &mut self.bounds, &mut self.text)?;
            put(self.batch, &take.whole, kind.token(&self.text))?;
        }
        match of {
            Value::Message(id) if !take.fields.is_empty() => {
                self.message(take, id, bytes, depth, covered || !take.whole.is_empty())
            }
            // A value where the fields lead further down, or into a message that has none of them.
            _ if take.whole.is_empty() => self.stranger(covered),
            _ => Ok(()),
        }
    }

    fn message(
        &mut self,
        take: &'w Take,
        id: TypeId,
        mut bytes: Bytes<'a>,
        depth: usize,
        covered: bool,
    ) -> Result<(), RejectionReason> {
        self.bounds.descend(depth)?;
        let shapes = self.shapes;
        let shape = shapes.get(id);
        let whole = bytes;
        let base = self.met.len();
        let oneofs = base + shape.fields.len();
        self.met.resize(oneofs + shape.oneofs, 0);
        // Fields that are maps, and which of the wanted keys of each were there.
        let mut keys: Vec<(usize, usize)> = Vec::new();
        while !bytes.is_empty() {
            self.bounds.step()?;
            let (number, wire) = bytes.tag()?;
            let value = bytes.value(wire)?;
            let Some(at) = shape.place(number) else {
                self.stranger(covered)?;
                continue;
            };
            let field = &shape.fields[at];
            if let Some(oneof) = field.oneof {
                self.met[oneofs + oneof] += 1;
                if self.met[oneofs + oneof] > 1 {
                    return Err(RejectionReason::DuplicateKey);
                }
            }
            let met = self.met[base + at];
            let Some(wanted) = &take.fields[at] else {
                self.met[base + at] = 1;
                if met == 0 {
                    self.stranger(covered)?;
                }
                continue;
            };
            match wanted {
                FieldTake::One(take) => {
                    if wire != field.value.wire() {
                        return Err(MALFORMED);
                    }
                    // The last would count, and the first be hidden: no serializer writes two.
                    if met > 0 {
                        return Err(RejectionReason::DuplicateKey);
                    }
                    self.met[base + at] = 1;
                    self.value(take, field.value, value, depth + 1, covered)?;
                }
                FieldTake::List(wanted) => {
                    let covered = covered || !wanted.whole.is_empty() || wanted.elements.is_some();
                    for item in Items::of(field.value, wire, value)? {
                        self.bounds.step()?;
                        let (item, index) = (item?, self.met[base + at]);
                        self.met[base + at] += 1;
                        if let Some(take) = &wanted.elements {
                            self.element(take, field.value, item, depth + 1)?;
                        }
                        match wanted.items.binary_search_by_key(&index, |(index, _)| *index) {
                            Ok(found) => self.value(&wanted.items[found].1, field.value, item, depth + 1, covered)?,
                            Err(_) => self.stranger(covered)?,
                        }
                    }
                }
                FieldTake::Map(wanted) => {
                    if wanted.is_exploded {
                        self.exploded = Some(Exploded::NotAList);
                    }
                    let Form::Map(key) = field.form else { return Err(MALFORMED) };
                    let covered = covered || !wanted.whole.is_empty();
                    let part = entry(shapes, key, field.value, wire, value, &mut self.text)?;
                    let found = wanted.values.binary_search_by(|(known, _)| known.as_str().cmp(&self.text));
                    let Ok(found) = found else {
                        self.stranger(covered)?;
                        continue;
                    };
                    // As with a field: the last would count.
                    if keys.contains(&(at, found)) {
                        return Err(RejectionReason::DuplicateKey);
                    }
                    keys.push((at, found));
                    self.entry(&wanted.values[found].1, field.value, part, depth + 1, covered)?;
                }
            }
        }
        self.rest(take, shape, whole, base, depth)?;
        self.met.truncate(base);
        Ok(())
    }

    /// Takes the value of a map's entry. One that is not written has the default.
    fn entry(
        &mut self,
        take: &'w Take,
        of: Value,
        part: Option<Bytes<'a>>,
        depth: usize,
        covered: bool,
    ) -> Result<(), RejectionReason> {
        match (part, of) {
            (None, Value::Scalar(of)) => {
                self.text.clear();
                let kind = default(self.shapes, of, &mut self.text)?;
                put(self.batch, &take.whole, kind.token(&self.text))
            }
            (part, _) => self.value(take, of, part.unwrap_or(Bytes(&[])), depth, covered),
        }
    }

    /// Keeps an element that is a record for later: it has all cells of what encloses it.
    fn element(&mut self, take: &'w Take, of: Value, bytes: Bytes<'a>, depth: usize) -> Result<(), RejectionReason> {
        let places = match &mut self.exploded {
            Some(Exploded::List(elements)) => &mut elements.places,
            Some(Exploded::NotAList) => return Ok(()),
            none => {
                *none = Some(Exploded::List(Elements { take, of, depth, places: vec![bytes] }));
                return Ok(());
            }
        };
        if places.len() >= self.limits.max_elements {
            return Err(RejectionReason::TooManyElements);
        }
        places.push(bytes);
        Ok(())
    }

    /// What can only be said at the end of a message: defaults of what was not there, and all of what may be there often.
    fn rest(
        &mut self,
        take: &Take,
        shape: &MessageShape,
        bytes: Bytes<'a>,
        base: usize,
        depth: usize,
    ) -> Result<(), RejectionReason> {
        for (at, wanted) in take.fields.iter().enumerate() {
            let (Some(wanted), field) = (wanted, &shape.fields[at]) else { continue };
            match (wanted, field.value, field.form) {
                (FieldTake::One(take), Value::Scalar(of), Form::One { presence: false })
                    if self.met[base + at] == 0 && !take.whole.is_empty() =>
                {
                    self.text.clear();
                    let kind = default(self.shapes, of, &mut self.text)?;
                    put(self.batch, &take.whole, kind.token(&self.text))?;
                }
                (FieldTake::List(ListTake { whole, .. }) | FieldTake::Map(MapTake { whole, .. }), ..)
                    if !whole.is_empty() =>
                {
                    let found = self.occurrences(shape, at, bytes)?;
                    self.text.clear();
                    whole_field(self.shapes, field, &found, depth, &mut self.bounds, &mut self.text)?;
                    put(self.batch, whole, Token::Structure(&self.text))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Where a field is in a message that has been read once.
    fn occurrences(
        &mut self,
        shape: &MessageShape,
        at: usize,
        mut bytes: Bytes<'a>,
    ) -> Result<Vec<Occurrence<'a>>, RejectionReason> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            self.bounds.step()?;
            let (number, wire) = bytes.tag()?;
            let value = bytes.value(wire)?;
            if shape.place(number) == Some(at) {
                found.push(Occurrence { field: at, wire, value });
            }
        }
        Ok(found)
    }

    /// A value that no field wants.
    fn stranger(&mut self, covered: bool) -> Result<(), RejectionReason> {
        if covered {
            return Ok(());
        }
        self.batch.unknown_cells += 1;
        match self.unknown {
            Unknown::Drop => Ok(()),
            Unknown::Refuse => Err(RejectionReason::UnknownAttribute),
        }
    }
}

/// Sets the cells of some attributes.
fn put(batch: &mut RawBatch, attributes: &[usize], token: Token<'_>) -> Result<(), RejectionReason> {
    for &attribute in attributes {
        // A map may have a key twice.
        if !batch.set(attribute, token) {
            return Err(RejectionReason::DuplicateKey);
        }
    }
    Ok(())
}
