//! JSON: one object a record, flat and nested keys in one pass.
//!
//! `serde_json` drives, and every leaf is taken as raw text: numbers keep their spelling (rounding them is the
//! canonical form's business), text without escapes is copied once, and nothing unknown is ever built.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::json_array::{self, of_syntax};
use super::path_tree::{Elements, PathNode};
use super::record::Fields;
use super::{Decoder, Field, Limits, Unknown, not_finite};
use throng_core::values::raw::{Coordinate, RawBatch, Token};
use throng_core::values::rejection::RejectionReason;

/// Deepest level that is walked by recursion, below `serde_json`'s own limit of 128. Only pointers of the schema can
/// lead there; everything else is scanned without recursion.
const DEEPEST_WALK: usize = 120;

/// Decodes JSON objects into the cells of the given fields.
#[derive(Clone, Debug)]
pub struct JsonCodec {
    root: PathNode,
    /// Where the elements of an array are records: what is read of each.
    elements: Option<Elements>,
    limits: Limits,
    unknown: Unknown,
    /// A value that is no object is a record by itself.
    bare: bool,
}

impl Decoder for JsonCodec {
    /// See [`Decoder::fill`]. `NaN`, `Infinity` and `-Infinity`, which writers of JSON take for numbers, are untyped text, as in Parquet. A key that no field leads to adds one to `into.unknown_cells`, and so does a scalar where the
    /// fields expect an object (`null` there leaves the fields below it absent). Keys inside an unknown object are not
    /// counted. Duplicate keys are looked for in every object that a field leads into, the record itself included.
    ///
    /// What encloses an array whose elements are records is read once, and so is what is unknown of it.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        let spelled = not_finite::encoded(payload);
        let payload = spelled.as_deref().unwrap_or(payload);
        if let Some(elements) = &self.elements {
            return self.fill_elements(payload, elements, into);
        }
        match admit(payload, self.limits) {
            Ok(text) => self.fill_enclosing(text, into).map(drop),
            Err(RejectionReason::NotAnObject) if self.bare => self.fill_bare(payload, into),
            Err(reason) => Err(reason),
        }
    }
}

impl JsonCodec {
    /// A codec for batches of width `fields.len()`, which drops and counts unknown keys.
    #[must_use]
    pub fn new(fields: &[Field], limits: Limits) -> Self {
        Self { bare: false, ..Self::of(fields.iter().enumerate(), limits) }
    }

    /// A codec for one part of a message. Where a field is the whole part, a part that is no object is read too.
    #[must_use]
    pub fn of_part(fields: &Fields, limits: Limits) -> Self {
        Self::of(fields.iter().map(|(attribute, field)| (*attribute, field)), limits)
    }

    fn of<'f>(fields: impl Iterator<Item = (usize, &'f Field)> + Clone, limits: Limits) -> Self {
        let (root, elements) = (PathNode::of(fields.clone()), PathNode::of_elements(fields));
        let bare = !root.attributes.is_empty();
        Self { root, elements, limits, unknown: Unknown::Drop, bare }
    }

    /// The same codec with another rule for unknown keys.
    #[must_use]
    pub fn with_unknown(mut self, unknown: Unknown) -> Self {
        self.unknown = unknown;
        self
    }

    /// See [`Decoder::decode`].
    ///
    /// # Errors
    /// The rejection; `into` then has the rows and the count of unknown cells that it had before.
    pub fn decode(&self, payload: &[u8], coordinate: Coordinate, into: &mut RawBatch) -> Result<(), RejectionReason> {
        Decoder::decode(self, payload, coordinate, into)
    }

    /// A value that is known to be JSON and no object.
    fn fill_bare(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        let text = std::str::from_utf8(payload).map_err(|_| RejectionReason::NotUtf8)?;
        self.walk(into).put(&self.root, text.trim_ascii(), 0)
    }

    fn walk<'b>(&self, batch: &'b mut RawBatch) -> Walk<'b> {
        Walk { batch, limits: self.limits, unknown: self.unknown, refusal: None, array: None }
    }

    /// Sets the cells outside of the array whose elements are records, and gives the text of that.
    fn fill_enclosing(&self, text: &str, into: &mut RawBatch) -> Result<Option<String>, RejectionReason> {
        let mut walk = self.walk(into);
        let step = Step { node: &self.root, depth: 1, covered: !self.root.attributes.is_empty(), walk: &mut walk };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        if let Err(error) = step.deserialize(&mut deserializer) {
            return Err(walk.refusal.unwrap_or_else(|| of_syntax(&error)));
        }
        deserializer.end().map_err(|_| RejectionReason::TrailingText)?;
        walk.put(&self.root, text.trim_ascii(), 0)?;
        Ok(walk.array)
    }

    fn fill_elements(&self, payload: &[u8], elements: &Elements, into: &mut RawBatch) -> Result<(), RejectionReason> {
        let array = if self.root.is_array {
            // The message is the array.
            let text = text_of(payload, self.limits)?.trim_ascii();
            if text.is_empty() {
                return Err(RejectionReason::Empty);
            }
            text.to_owned()
        } else {
            let array = self.fill_enclosing(admit(payload, self.limits)?, into)?;
            array.ok_or(RejectionReason::NoElements)?
        };
        let elements_of = json_array::elements(&array, self.limits.max_elements)?;
        into.explode(elements_of, self.limits.max_repeated_bytes, |into, element| {
            let mut walk = self.walk(into);
            let outcome = walk.element(elements, element);
            outcome.map_err(|reason| walk.refusal.unwrap_or(reason))
        })
    }
}

fn text_of(payload: &[u8], limits: Limits) -> Result<&str, RejectionReason> {
    if payload.len() > limits.max_record_bytes {
        return Err(RejectionReason::Oversized);
    }
    std::str::from_utf8(payload).map_err(|_| RejectionReason::NotUtf8)
}

/// The text of a payload that may be an object.
pub(super) fn admit(payload: &[u8], limits: Limits) -> Result<&str, RejectionReason> {
    let text = text_of(payload, limits)?;
    match text.bytes().find(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r')) {
        Some(b'{') => Ok(text),
        None => Err(RejectionReason::Empty),
        Some(_) => Err(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => RejectionReason::NotAnObject,
            Err(error) => of_syntax(&error),
        }),
    }
}

/// Refuses a value that starts `depth` levels below the top of the record and is nested too deep.
pub(super) fn check_depth(json: &str, depth: usize, limits: Limits) -> Result<(), RejectionReason> {
    let nested = matches!(json.as_bytes().first(), Some(b'{' | b'['));
    if nested && depth + nesting(json) > limits.max_depth { Err(RejectionReason::TooDeep) } else { Ok(()) }
}

/// The token of a well-formed JSON text; strings with escapes are written to `unescaped`.
pub(super) fn token_of<'a>(json: &'a str, unescaped: &'a mut String) -> Result<Token<'a>, RejectionReason> {
    Ok(match json.as_bytes().first() {
        Some(b'"') => {
            let inner =
                json.strip_prefix('"').and_then(|j| j.strip_suffix('"')).ok_or(RejectionReason::MalformedJson)?;
            if inner.contains('\\') {
                // A lone surrogate is the one thing that the scan of raw text lets through.
                *unescaped = serde_json::from_str(json).map_err(|_| RejectionReason::MalformedJson)?;
                Token::Text(unescaped)
            } else {
                Token::Text(inner)
            }
        }
        Some(b't') => Token::Bool(true),
        Some(b'f') => Token::Bool(false),
        Some(b'n') => Token::Null,
        Some(b'{' | b'[') => Token::Structure(json),
        _ => not_finite::decoded(json).map_or(Token::Number(json), Token::Untyped),
    })
}

/// Deepest nesting of brackets in a JSON text that is known to be well formed.
fn nesting(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth -= 1,
            _ => {}
        }
    }
    deepest
}

/// The row being filled.
struct Walk<'a> {
    batch: &'a mut RawBatch,
    limits: Limits,
    unknown: Unknown,
    /// Set before the walk is broken off: serde's errors are text, a rejection is not.
    refusal: Option<RejectionReason>,
    /// The array whose elements are records, once it was met.
    array: Option<String>,
}

impl Walk<'_> {
    /// Takes the cells of one element, a well-formed value. A scalar is no record unless an attribute is all of the element.
    fn element(&mut self, elements: &Elements, json: &str) -> Result<(), RejectionReason> {
        let Elements { root, depth } = elements;
        let is_structure = json.starts_with(['{', '[']);
        if root.attributes.is_empty() && !is_structure {
            return Err(RejectionReason::NotAnObject);
        }
        self.put(root, json, depth - 1)?;
        if root.is_leaf() || !is_structure {
            return Ok(());
        }
        let step = Step { node: root, depth: *depth, covered: !root.attributes.is_empty(), walk: self };
        step.deserialize(&mut serde_json::Deserializer::from_str(json)).map_err(|error| of_syntax(&error))
    }

    fn refuse<E: de::Error>(&mut self, rejection: RejectionReason) -> E {
        self.refusal = Some(rejection);
        E::custom(rejection.name())
    }

    /// A value that no field wants.
    fn stranger(&mut self) -> Result<(), RejectionReason> {
        self.batch.unknown_cells += 1;
        match self.unknown {
            Unknown::Drop => Ok(()),
            Unknown::Refuse => Err(RejectionReason::UnknownAttribute),
        }
    }

    /// Sets the cells of the attributes that end at `node` to a well-formed value.
    fn put(&mut self, node: &PathNode, json: &str, depth: usize) -> Result<(), RejectionReason> {
        if node.attributes.is_empty() {
            return Ok(());
        }
        check_depth(json, depth, self.limits)?;
        let mut unescaped = String::new();
        let token = token_of(json, &mut unescaped)?;
        for &attribute in &node.attributes {
            if !self.batch.set(attribute, token) {
                return Err(RejectionReason::DuplicateKey);
            }
        }
        Ok(())
    }
}

/// One object or array on the way to the fields below `node`.
struct Step<'n, 'w, 'b> {
    node: &'n PathNode,
    /// Depth of this value; the record is 1.
    depth: usize,
    /// An attribute holds this value as a whole, so nothing in it is dropped.
    covered: bool,
    walk: &'w mut Walk<'b>,
}

impl Step<'_, '_, '_> {
    fn stray<E: de::Error>(self) -> Result<(), E> {
        if self.covered {
            return Ok(());
        }
        self.walk.stranger().map_err(|rejection| self.walk.refuse(rejection))
    }

    fn descend<E: de::Error>(&mut self) -> Result<(), E> {
        if self.depth > self.walk.limits.max_depth.min(DEEPEST_WALK) {
            return Err(self.walk.refuse(RejectionReason::TooDeep));
        }
        Ok(())
    }

    /// What a value below this one leads to, given how the caller reads it.
    fn below<'de, E, R>(&mut self, child: Option<&PathNode>, source: R) -> Result<(), E>
    where
        E: de::Error,
        R: ValueSource<'de, E>,
    {
        let (depth, covered) = (self.depth, self.covered);
        let Some(child) = child else {
            let raw = source.raw()?;
            let stranger = if covered { Ok(()) } else { self.walk.stranger() };
            let checked = stranger.and_then(|()| check_depth(raw, depth, self.walk.limits));
            return checked.map_err(|rejection| self.walk.refuse(rejection));
        };
        if child.attributes.is_empty() && !child.is_array {
            return source.walk(Step { node: child, depth: depth + 1, covered, walk: &mut *self.walk });
        }
        let raw = source.raw()?;
        self.walk.put(child, raw, depth).map_err(|rejection| self.walk.refuse(rejection))?;
        if child.is_array {
            self.walk.array = Some(raw.to_owned());
        }
        if child.is_leaf() || !raw.starts_with(['{', '[']) {
            return Ok(());
        }
        // An attribute that is a whole object and attributes inside it: read the object a second time.
        let step = Step { node: child, depth: depth + 1, covered: true, walk: &mut *self.walk };
        step.deserialize(&mut serde_json::Deserializer::from_str(raw)).map_err(E::custom)
    }
}

/// The next value of a map or an array, read in one of two ways.
trait ValueSource<'de, E> {
    fn raw(self) -> Result<&'de str, E>;
    fn walk(self, step: Step<'_, '_, '_>) -> Result<(), E>;
}

struct MapValue<'m, M>(&'m mut M);

impl<'de, M: MapAccess<'de>> ValueSource<'de, M::Error> for MapValue<'_, M> {
    fn raw(self) -> Result<&'de str, M::Error> {
        self.0.next_value::<&RawValue>().map(RawValue::get)
    }

    fn walk(self, step: Step<'_, '_, '_>) -> Result<(), M::Error> {
        self.0.next_value_seed(step)
    }
}

/// An array's element: already read, because only reading it tells whether there is one.
struct Element<'de>(&'de str);

impl<'de, E: de::Error> ValueSource<'de, E> for Element<'de> {
    fn raw(self) -> Result<&'de str, E> {
        Ok(self.0)
    }

    fn walk(self, step: Step<'_, '_, '_>) -> Result<(), E> {
        step.deserialize(&mut serde_json::Deserializer::from_str(self.0)).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Step<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Step<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<(), M::Error> {
        self.descend()?;
        let node = self.node;
        // Duplicates of an attribute are seen when its cell is set; the others need a memory of their own.
        let mut steps: Vec<usize> = Vec::new();
        let mut strangers: Vec<Cow<'de, str>> = Vec::new();
        while let Some(key) = map.next_key_seed(Key)? {
            let child = node.child(&key);
            match child {
                None => strangers.push(key),
                Some(child) if child.attributes.is_empty() => {
                    if steps.contains(&child.ordinal) {
                        return Err(self.walk.refuse(RejectionReason::DuplicateKey));
                    }
                    steps.push(child.ordinal);
                }
                Some(_) => {}
            }
            self.below(child, MapValue(&mut map))?;
        }
        if strangers.len() > 1 {
            strangers.sort_unstable();
            if strangers.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(self.walk.refuse(RejectionReason::DuplicateKey));
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(mut self, mut seq: S) -> Result<(), S::Error> {
        self.descend()?;
        let node = self.node;
        let mut index = 0_usize;
        while let Some(raw) = seq.next_element::<&RawValue>()? {
            self.below(node.child(&index.to_string()), Element(raw.get()))?;
            index += 1;
        }
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        self.stray()
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        self.stray()
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        self.stray()
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        self.stray()
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        self.stray()
    }
}

/// A key, borrowed from the payload unless it is written with escapes.
pub(super) struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: de::Error>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
