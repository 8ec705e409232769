//! Which parts of a writer schema lead to attributes, and the walk that takes them.

use super::read::Bytes;
use super::shape::{BadSchema, Shape, Shapes, TypeId};
use super::spell::{cell, skip};
use crate::codec::path_tree::{Elements, PathNode, index};
use crate::codec::record::Fields;
use crate::codec::{Limits, Unknown};
use crate::records::raw::RawBatch;
use crate::telemetry::RejectionReason;

/// Places from which the attributes of a record may be taken. A union has one a branch, and those below each.
const MOST_PLACES: usize = 1 << 16;

/// What is taken of a value.
#[derive(Debug)]
pub(super) struct Take {
    id: TypeId,
    /// Attributes that are the value as a whole.
    whole: Vec<usize>,
    /// Whether the value is what the elements that are records are looked for in.
    is_exploded: bool,
    /// What is taken of each of them, where it is an array.
    elements: Option<Box<Take>>,
    inner: Inner,
}

/// What is taken of the parts of a value.
#[derive(Debug)]
enum Inner {
    /// Nothing: it is one cell, or nobody wants it.
    None,
    /// By field, in their order; none where no attribute leads there.
    Record(Vec<Result<Take, TypeId>>),
    /// By branch.
    Union(Vec<Take>),
    /// By index, rising.
    Array(Vec<(usize, Take)>, TypeId),
    /// By key.
    Map(Vec<(String, Take)>, TypeId),
}

impl Take {
    /// What the fields take.
    ///
    /// # Errors
    /// Where unions of unions lead to more places than anybody means.
    pub fn of_fields(shapes: &Shapes, fields: &Fields) -> Result<Self, BadSchema> {
        let numbered = || fields.iter().map(|(attribute, field)| (*attribute, field));
        let (root, elements) = (PathNode::of(numbered()), PathNode::of_elements(numbered()));
        let mut left = MOST_PLACES;
        Self::of(shapes, shapes.root(), &root, elements.as_ref(), &mut left)
    }

    fn of(
        shapes: &Shapes,
        id: TypeId,
        node: &PathNode,
        exploded: Option<&Elements>,
        left: &mut usize,
    ) -> Result<Self, BadSchema> {
        *left = left
            .checked_sub(1)
            .ok_or_else(|| BadSchema(format!("its unions lead to attributes from more than {MOST_PLACES} places")))?;
        if let Shape::Union(branches) = shapes.get(id) {
            // What is wanted of a union is wanted of what is in it.
            let branches = branches.iter().map(|branch| Self::of(shapes, *branch, node, exploded, left));
            let inner = Inner::Union(branches.collect::<Result<_, _>>()?);
            return Ok(Self { id, whole: Vec::new(), is_exploded: false, elements: None, inner });
        }
        let inner = match shapes.get(id) {
            _ if node.is_leaf() => Inner::None,
            Shape::Record(fields) => {
                let mut of = |(name, field): &(String, TypeId)| match node.child(name) {
                    Some(node) => Self::of(shapes, *field, node, exploded, left).map(Ok),
                    None => Ok(Err(*field)),
                };
                Inner::Record(fields.iter().map(&mut of).collect::<Result<_, _>>()?)
            }
            Shape::Array(items) => {
                let parsed = node.children().filter_map(|(segment, node)| Some((index(segment)?, node)));
                let taken = parsed.map(|(at, node)| Ok((at, Self::of(shapes, *items, node, exploded, left)?)));
                let mut taken: Vec<_> = taken.collect::<Result<_, BadSchema>>()?;
                taken.sort_by_key(|(at, _)| *at);
                Inner::Array(taken, *items)
            }
            Shape::Map(values) => {
                let taken = node
                    .children()
                    .map(|(key, node)| Ok((key.to_owned(), Self::of(shapes, *values, node, exploded, left)?)));
                let mut taken: Vec<_> = taken.collect::<Result<_, BadSchema>>()?;
                taken.sort_by(|(a, _), (b, _)| a.cmp(b));
                Inner::Map(taken, *values)
            }
            _ => Inner::None,
        };
        let elements = match (shapes.get(id), exploded) {
            (Shape::Array(items), Some(exploded)) if node.is_array => {
                Some(Box::new(Self::of(shapes, *items, &exploded.root, None, left)?))
            }
            _ => None,
        };
        Ok(Self { id, whole: node.attributes.clone(), is_exploded: node.is_array, elements, inner })
    }

    /// Places of values, itself one of them.
    pub fn size(&self) -> usize {
        let inner = match &self.inner {
            Inner::None => 0,
            Inner::Record(fields) => fields.iter().map(|field| field.as_ref().map_or(1, Self::size)).sum(),
            Inner::Union(branches) => branches.iter().map(Self::size).sum(),
            Inner::Array(items, _) => items.iter().map(|(_, take)| take.size()).sum(),
            Inner::Map(values, _) => values.iter().map(|(_, take)| take.size()).sum(),
        };
        1 + inner + self.elements.as_ref().map_or(0, |elements| elements.size())
    }

    /// Whether some field of the record is not taken at all.
    pub fn drops(&self) -> bool {
        let none = matches!(&self.inner, Inner::Record(fields) if fields.iter().any(Result::is_err));
        self.whole.is_empty() && none
    }

    /// Adds the attributes that something leads to.
    pub fn reached(&self, out: &mut Vec<usize>) {
        out.extend(&self.whole);
        if let Some(elements) = &self.elements {
            elements.reached(out);
        }
        match &self.inner {
            Inner::None => {}
            Inner::Record(fields) => fields.iter().flatten().for_each(|take| take.reached(out)),
            Inner::Union(branches) => branches.iter().for_each(|take| take.reached(out)),
            Inner::Array(items, _) => items.iter().for_each(|(_, take)| take.reached(out)),
            Inner::Map(values, _) => values.iter().for_each(|(_, take)| take.reached(out)),
        }
    }
}

/// A row being filled from a record.
pub(super) struct Walk<'w, 'a> {
    pub shapes: &'w Shapes,
    pub bytes: Bytes<'a>,
    pub batch: &'w mut RawBatch,
    pub unknown: Unknown,
    /// The text of a cell.
    pub text: String,
    /// Where the elements are that are records, once that was met.
    pub exploded: Option<Exploded<'w, 'a>>,
}

/// What stands where the elements are looked for that are records.
pub(super) enum Exploded<'w, 'a> {
    Nothing,
    NoArray,
    Array { elements: &'w Take, place: &'a [u8], depth: usize },
}

/// Makes a row of `batch` for each element of the array that `walk` has met, of the row opened last.
///
/// # Errors
/// When there is no array, or it has no element or more than `limits` allow.
pub(super) fn explode(walk: Walk<'_, '_>, limits: Limits) -> Result<(), RejectionReason> {
    let Walk { shapes, bytes, batch, unknown, exploded, .. } = walk;
    let (elements, place, depth) = match exploded {
        None | Some(Exploded::Nothing) => return Err(RejectionReason::NoElements),
        Some(Exploded::NoArray) => return Err(RejectionReason::NotAnArray),
        Some(Exploded::Array { elements, place, depth }) => (elements, place, depth),
    };
    // What encloses the elements has been read to its end, so that they are well formed. The bounds of a record are each element's.
    let mut rest = bytes.afresh(place);
    let mut places = Vec::new();
    loop {
        let count = rest.block()?;
        if count == 0 {
            break;
        }
        if places.len() + count > limits.max_elements {
            return Err(RejectionReason::TooManyElements);
        }
        for _ in 0..count {
            places.push(rest.place());
            skip(shapes, elements.id, &mut rest, depth + 1)?;
        }
    }
    if places.is_empty() {
        return Err(RejectionReason::NoElements);
    }
    batch.explode(places, limits.max_repeated_bytes, |batch, place| {
        let bytes = rest.afresh(place);
        let mut walk = Walk { shapes, bytes, batch, unknown, text: String::new(), exploded: None };
        walk.element(elements, depth + 1)
    })
}

impl<'w> Walk<'w, '_> {
    /// Takes one element. A scalar is no record unless an attribute is all of the element.
    fn element(&mut self, take: &'w Take, depth: usize) -> Result<(), RejectionReason> {
        let mut of = take;
        if let Inner::Union(branches) = &take.inner {
            let place = self.bytes.place();
            of = &branches[self.bytes.choice(branches.len())?];
            self.bytes.return_to(place);
        }
        if of.whole.is_empty() && !self.shapes.get(of.id).is_structure() {
            return Err(RejectionReason::NotAnObject);
        }
        self.take(take, depth, false)
    }

    /// Takes what is wanted of the next value. `covered` where an attribute has a value around it as a whole, so that nothing
    /// in it is dropped.
    pub fn take(&mut self, take: &'w Take, depth: usize, covered: bool) -> Result<(), RejectionReason> {
        self.bytes.step()?;
        if take.is_exploded {
            self.exploded = Some(match (&take.elements, self.shapes.get(take.id)) {
                (Some(elements), _) => Exploded::Array { elements, place: self.bytes.place(), depth },
                (None, Shape::Null) => Exploded::Nothing,
                (None, _) => Exploded::NoArray,
            });
        }
        if self.shapes.get(take.id).is_structure() {
            self.bytes.descend(depth)?;
        }
        if !take.whole.is_empty() {
            let place = self.bytes.place();
            self.put(take, depth)?;
            if matches!(take.inner, Inner::None) {
                return Ok(());
            }
            // An attribute that is a whole structure and attributes inside it: read it a second time.
            self.bytes.return_to(place);
        }
        let covered = covered || !take.whole.is_empty() || take.is_exploded;
        match &take.inner {
            Inner::None => {
                if self.is_value(take.id) {
                    self.stranger(covered)?;
                }
                skip(self.shapes, take.id, &mut self.bytes, depth)
            }
            Inner::Union(branches) => {
                let branch = self.bytes.choice(branches.len())?;
                self.take(&branches[branch], depth, covered)
            }
            Inner::Record(fields) => {
                for field in fields {
                    match field {
                        Ok(take) => self.take(take, depth + 1, covered)?,
                        Err(id) => {
                            self.stranger(covered)?;
                            skip(self.shapes, *id, &mut self.bytes, depth + 1)?;
                        }
                    }
                }
                Ok(())
            }
            Inner::Array(items, id) => self.items(items, *id, depth + 1, covered),
            Inner::Map(values, id) => self.values(values, *id, depth + 1, covered),
        }
    }

    /// A scalar where the fields lead further down: nothing (`null`) leaves them absent, anything else is dropped.
    fn is_value(&self, id: TypeId) -> bool {
        !matches!(self.shapes.get(id), Shape::Null)
    }

    fn items(
        &mut self,
        wanted: &'w [(usize, Take)],
        id: TypeId,
        depth: usize,
        covered: bool,
    ) -> Result<(), RejectionReason> {
        let mut at = 0_usize;
        loop {
            let count = self.bytes.block()?;
            if count == 0 {
                return Ok(());
            }
            for _ in 0..count {
                match wanted.binary_search_by_key(&at, |(index, _)| *index) {
                    Ok(found) => self.take(&wanted[found].1, depth, covered)?,
                    Err(_) => {
                        self.stranger(covered)?;
                        skip(self.shapes, id, &mut self.bytes, depth)?;
                    }
                }
                at += 1;
            }
        }
    }

    fn values(
        &mut self,
        wanted: &'w [(String, Take)],
        id: TypeId,
        depth: usize,
        covered: bool,
    ) -> Result<(), RejectionReason> {
        let mut met = vec![false; wanted.len()];
        loop {
            let count = self.bytes.block()?;
            if count == 0 {
                return Ok(());
            }
            for _ in 0..count {
                let key = self.bytes.string()?;
                match wanted.binary_search_by(|(known, _)| known.as_str().cmp(key)) {
                    Ok(found) => {
                        if std::mem::replace(&mut met[found], true) {
                            return Err(RejectionReason::DuplicateKey);
                        }
                        self.take(&wanted[found].1, depth, covered)?;
                    }
                    Err(_) => {
                        self.stranger(covered)?;
                        skip(self.shapes, id, &mut self.bytes, depth)?;
                    }
                }
            }
        }
    }

    /// Sets the cells of the attributes that are the next value.
    fn put(&mut self, take: &Take, depth: usize) -> Result<(), RejectionReason> {
        let kind = cell(self.shapes, take.id, &mut self.bytes, depth, &mut self.text)?;
        let token = kind.token(&self.text);
        for &attribute in &take.whole {
            // A map may have a key twice.
            if !self.batch.set(attribute, token) {
                return Err(RejectionReason::DuplicateKey);
            }
        }
        Ok(())
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
