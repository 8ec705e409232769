//! Which fields of a message lead to attributes, and the walk that takes them.

use super::shape::{Form, MessageShape, Shapes, TypeId, Value};
use super::spell::{Bounds, Items, Occurrence, cell, default, entry, whole_field};
use super::wire::{Bytes, MALFORMED};
use crate::codec::Unknown;
use crate::codec::path_tree::PathNode;
use crate::codec::record::Fields;
use crate::records::raw::{RawBatch, Token};
use crate::telemetry::RejectionReason;
use std::collections::BTreeMap;

/// What is taken of a value.
#[derive(Debug, Default)]
pub(super) struct Take {
    /// Attributes that are the value as a whole.
    whole: Vec<usize>,
    /// By field, where some lead further; none in a value that has no fields.
    fields: Vec<Option<FieldTake>>,
}

/// What is taken of a field.
#[derive(Debug)]
enum FieldTake {
    One(Take),
    /// The attributes that are all of it, and those of its items by index, rising.
    List(Vec<usize>, Vec<(usize, Take)>),
    /// The attributes that are all of it, and those of its values by key, rising.
    Map(Vec<usize>, Vec<(String, Take)>),
}

impl Take {
    pub fn of_fields(shapes: &Shapes, fields: &Fields) -> Self {
        let root = PathNode::of(fields.iter().map(|(attribute, field)| (*attribute, field)));
        Self::of(shapes, Value::Message(0), &[&root])
    }

    /// Several nodes lead to one field where it is named in two ways.
    fn of(shapes: &Shapes, of: Value, nodes: &[&PathNode]) -> Self {
        let whole = attributes(nodes);
        let Value::Message(id) = of else { return Self { whole, fields: Vec::new() } };
        if nodes.iter().all(|node| node.is_leaf()) {
            return Self { whole, fields: Vec::new() };
        }
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
            fields[at] = Some(FieldTake::of(shapes, shape, at, &nodes));
        }
        Self { whole, fields }
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
                FieldTake::List(whole, items) => {
                    out.extend(whole);
                    items.iter().for_each(|(_, take)| take.reached(out));
                }
                FieldTake::Map(whole, values) => {
                    out.extend(whole);
                    values.iter().for_each(|(_, take)| take.reached(out));
                }
            }
        }
    }
}

impl FieldTake {
    fn of(shapes: &Shapes, shape: &MessageShape, at: usize, nodes: &[&PathNode]) -> Self {
        let field = &shape.fields[at];
        let by_segment = || {
            let mut by_segment: BTreeMap<&str, Vec<&PathNode>> = BTreeMap::new();
            for (segment, node) in nodes.iter().flat_map(|node| node.children()) {
                by_segment.entry(segment).or_default().push(node);
            }
            by_segment
        };
        match field.form {
            Form::One { .. } => Self::One(Take::of(shapes, field.value, nodes)),
            Form::List => {
                let indexed = by_segment().into_iter().filter_map(|(segment, nodes)| Some((index(segment)?, nodes)));
                let mut items: Vec<_> =
                    indexed.map(|(at, nodes)| (at, Take::of(shapes, field.value, &nodes))).collect();
                items.sort_by_key(|(at, _)| *at);
                Self::List(attributes(nodes), items)
            }
            Form::Map(_) => {
                let of_key =
                    |(key, nodes): (&str, Vec<&PathNode>)| (key.to_owned(), Take::of(shapes, field.value, &nodes));
                Self::Map(attributes(nodes), by_segment().into_iter().map(of_key).collect())
            }
        }
    }
}

fn attributes(nodes: &[&PathNode]) -> Vec<usize> {
    nodes.iter().flat_map(|node| node.attributes.iter().copied()).collect()
}

/// An index as JSON pointers write them: no sign, no leading zeros.
fn index(segment: &str) -> Option<usize> {
    segment.parse().ok().filter(|index: &usize| index.to_string() == segment)
}

/// A row being filled from a record.
pub(super) struct Walk<'w> {
    pub shapes: &'w Shapes,
    pub bounds: Bounds,
    pub batch: &'w mut RawBatch,
    pub unknown: Unknown,
    /// The text of a cell.
    pub text: String,
    /// How often the fields of the messages being read were there, and then their oneofs; those of the innermost message last.
    pub met: Vec<usize>,
}

impl Walk<'_> {
    /// Takes what is wanted of a message. `covered` where an attribute has a value around it as a whole, so that nothing in it is
    /// dropped.
    pub fn record(&mut self, take: &Take, bytes: Bytes<'_>) -> Result<(), RejectionReason> {
        self.value(take, Value::Message(0), bytes, 1, false)
    }

    fn value(
        &mut self,
        take: &Take,
        of: Value,
        bytes: Bytes<'_>,
        depth: usize,
        covered: bool,
    ) -> Result<(), RejectionReason> {
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
        take: &Take,
        id: TypeId,
        mut bytes: Bytes<'_>,
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
                FieldTake::List(whole, wanted) => {
                    let covered = covered || !whole.is_empty();
                    for item in Items::of(field.value, wire, value)? {
                        self.bounds.step()?;
                        let (item, index) = (item?, self.met[base + at]);
                        self.met[base + at] += 1;
                        match wanted.binary_search_by_key(&index, |(index, _)| *index) {
                            Ok(found) => self.value(&wanted[found].1, field.value, item, depth + 1, covered)?,
                            Err(_) => self.stranger(covered)?,
                        }
                    }
                }
                FieldTake::Map(whole, wanted) => {
                    let Form::Map(key) = field.form else { return Err(MALFORMED) };
                    let covered = covered || !whole.is_empty();
                    let part = entry(shapes, key, field.value, wire, value, &mut self.text)?;
                    let found = wanted.binary_search_by(|(known, _)| known.as_str().cmp(&self.text));
                    match (found, part, field.value) {
                        (Err(_), ..) => self.stranger(covered)?,
                        (Ok(found), None, Value::Scalar(of)) => {
                            self.text.clear();
                            let kind = default(shapes, of, &mut self.text)?;
                            put(self.batch, &wanted[found].1.whole, kind.token(&self.text))?;
                        }
                        (Ok(found), part, _) => {
                            let part = part.unwrap_or(Bytes(&[]));
                            self.value(&wanted[found].1, field.value, part, depth + 1, covered)?;
                        }
                    }
                }
            }
        }
        self.rest(take, shape, whole, base, depth)?;
        self.met.truncate(base);
        Ok(())
    }

    /// What can only be said at the end of a message: defaults of what was not there, and all of what may be there often.
    fn rest(
        &mut self,
        take: &Take,
        shape: &MessageShape,
        bytes: Bytes<'_>,
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
                (FieldTake::List(whole, _) | FieldTake::Map(whole, _), ..) if !whole.is_empty() => {
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
    fn occurrences<'a>(
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
