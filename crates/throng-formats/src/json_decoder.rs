//! JSON decoder: nested keys in one pass. Leaves are raw text, so numbers keep their digits.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::json_array_elements::{self, syntax_rejection};
use super::path_tree::{ElementPaths, PathNode};
use super::record_decoder::NumberedFields;
use super::{DecodeLimits, FieldPath, RecordDecoder, UnknownCellPolicy, non_finite_numbers};
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_core::values::rejection::RejectionReason;

/// Below the limit 128 of `serde_json`. Unselected values are scanned without recursion.
const MAX_RECURSION_DEPTH: usize = 120;

/// Decodes JSON objects into cells.
#[derive(Clone, Debug)]
pub struct JsonCodec {
    root: PathNode,
    elements: Option<ElementPaths>,
    limits: DecodeLimits,
    unknown: UnknownCellPolicy,
    accepts_scalars: bool,
}

impl RecordDecoder for JsonCodec {
    /// Treats `NaN`, `Infinity` and `-Infinity` as untyped text.
    ///
    /// An unselected key adds one to `into.unknown_cells`, as does a scalar in place of an object. `null` there makes
    /// the fields absent. Duplicate keys are refused in objects on the path to a field.
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        let spelled = non_finite_numbers::encoded(payload);
        let payload = spelled.as_deref().unwrap_or(payload);
        if let Some(elements) = &self.elements {
            return self.fill_elements(payload, elements, into);
        }
        match object_text(payload, self.limits) {
            Ok(text) => self.fill_enclosing(text, into).map(drop),
            Err(RejectionReason::NotAnObject) if self.accepts_scalars => self.fill_scalar(payload, into),
            Err(reason) => Err(reason),
        }
    }
}

impl JsonCodec {
    /// Creates a codec for batches of width `fields.len()` with [`UnknownCellPolicy::Drop`].
    #[must_use]
    pub fn new(fields: &[FieldPath], limits: DecodeLimits) -> Self {
        Self { accepts_scalars: false, ..Self::from_numbered_fields(fields.iter().enumerate(), limits) }
    }

    /// Creates a codec for one part of a message, which may be a non-object if a field is the whole part.
    #[must_use]
    pub fn for_message_part(fields: &NumberedFields, limits: DecodeLimits) -> Self {
        Self::from_numbered_fields(fields.iter().map(|(attribute, field)| (*attribute, field)), limits)
    }

    fn from_numbered_fields<'f>(
        fields: impl Iterator<Item = (usize, &'f FieldPath)> + Clone,
        limits: DecodeLimits,
    ) -> Self {
        let (root, elements) = (PathNode::from_fields(fields.clone()), PathNode::element_paths(fields));
        let bare = !root.attributes.is_empty();
        Self { root, elements, limits, unknown: UnknownCellPolicy::Drop, accepts_scalars: bare }
    }

    /// Sets the policy for unknown keys.
    #[must_use]
    pub fn with_unknown(mut self, unknown: UnknownCellPolicy) -> Self {
        self.unknown = unknown;
        self
    }

    /// See [`RecordDecoder::decode`].
    ///
    /// # Errors
    /// Returns the rejection reason; rows and counts of `into` are then unchanged.
    pub fn decode(
        &self,
        payload: &[u8],
        coordinate: RecordPosition,
        into: &mut RawBatch,
    ) -> Result<(), RejectionReason> {
        RecordDecoder::decode(self, payload, coordinate, into)
    }

    fn fill_scalar(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        let text = std::str::from_utf8(payload).map_err(|_| RejectionReason::NotUtf8)?;
        self.walk(into).write_node_cells(&self.root, text.trim_ascii(), 0)
    }

    fn walk<'b>(&self, batch: &'b mut RawBatch) -> JsonRowWriter<'b> {
        JsonRowWriter { batch, limits: self.limits, unknown: self.unknown, refusal: None, array: None }
    }

    /// Returns the text of the array of records.
    fn fill_enclosing(&self, text: &str, into: &mut RawBatch) -> Result<Option<String>, RejectionReason> {
        let mut walk = self.walk(into);
        let step =
            JsonPathVisitor { node: &self.root, depth: 1, covered: !self.root.attributes.is_empty(), walk: &mut walk };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        if let Err(error) = step.deserialize(&mut deserializer) {
            return Err(walk.refusal.unwrap_or_else(|| syntax_rejection(&error)));
        }
        deserializer.end().map_err(|_| RejectionReason::TrailingText)?;
        walk.write_node_cells(&self.root, text.trim_ascii(), 0)?;
        Ok(walk.array)
    }

    fn fill_elements(
        &self,
        payload: &[u8],
        elements: &ElementPaths,
        into: &mut RawBatch,
    ) -> Result<(), RejectionReason> {
        let array = if self.root.is_array {
            // The message is the array.
            let text = text_of(payload, self.limits)?.trim_ascii();
            if text.is_empty() {
                return Err(RejectionReason::Empty);
            }
            text.to_owned()
        } else {
            let array = self.fill_enclosing(object_text(payload, self.limits)?, into)?;
            array.ok_or(RejectionReason::NoElements)?
        };
        let elements_of = json_array_elements::elements(&array, self.limits.max_elements)?;
        into.explode(elements_of, self.limits.max_repeated_bytes, |into, element| {
            let mut walk = self.walk(into);
            let outcome = walk.element(elements, element);
            outcome.map_err(|reason| walk.refusal.unwrap_or(reason))
        })
    }
}

fn text_of(payload: &[u8], limits: DecodeLimits) -> Result<&str, RejectionReason> {
    if payload.len() > limits.max_record_bytes {
        return Err(RejectionReason::Oversized);
    }
    std::str::from_utf8(payload).map_err(|_| RejectionReason::NotUtf8)
}

pub(super) fn object_text(payload: &[u8], limits: DecodeLimits) -> Result<&str, RejectionReason> {
    let text = text_of(payload, limits)?;
    match text.bytes().find(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r')) {
        Some(b'{') => Ok(text),
        None => Err(RejectionReason::Empty),
        Some(_) => Err(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => RejectionReason::NotAnObject,
            Err(error) => syntax_rejection(&error),
        }),
    }
}

/// Refuses deep nesting; `depth` is that of the value's parent.
pub(super) fn check_depth(json: &str, depth: usize, limits: DecodeLimits) -> Result<(), RejectionReason> {
    let nested = matches!(json.as_bytes().first(), Some(b'{' | b'['));
    if nested && depth + bracket_depth(json) > limits.max_depth { Err(RejectionReason::TooDeep) } else { Ok(()) }
}

/// Writes strings with escapes to `unescaped`.
pub(super) fn token_of<'a>(json: &'a str, unescaped: &'a mut String) -> Result<RawToken<'a>, RejectionReason> {
    Ok(match json.as_bytes().first() {
        Some(b'"') => {
            let inner =
                json.strip_prefix('"').and_then(|j| j.strip_suffix('"')).ok_or(RejectionReason::MalformedJson)?;
            if inner.contains('\\') {
                // The raw scan accepts a lone surrogate.
                *unescaped = serde_json::from_str(json).map_err(|_| RejectionReason::MalformedJson)?;
                RawToken::Text(unescaped)
            } else {
                RawToken::Text(inner)
            }
        }
        Some(b't') => RawToken::Bool(true),
        Some(b'f') => RawToken::Bool(false),
        Some(b'n') => RawToken::Null,
        Some(b'{' | b'[') => RawToken::Structure(json),
        _ => non_finite_numbers::decoded(json).map_or(RawToken::Number(json), RawToken::Untyped),
    })
}

fn bracket_depth(json: &str) -> usize {
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

struct JsonRowWriter<'a> {
    batch: &'a mut RawBatch,
    limits: DecodeLimits,
    unknown: UnknownCellPolicy,
    /// Reason for stopping, since serde's errors carry only text.
    refusal: Option<RejectionReason>,
    array: Option<String>,
}

impl JsonRowWriter<'_> {
    /// A scalar is refused unless an attribute is the whole element.
    fn element(&mut self, elements: &ElementPaths, json: &str) -> Result<(), RejectionReason> {
        let ElementPaths { root, depth } = elements;
        let is_structure = json.starts_with(['{', '[']);
        if root.attributes.is_empty() && !is_structure {
            return Err(RejectionReason::NotAnObject);
        }
        self.write_node_cells(root, json, depth - 1)?;
        if root.is_leaf() || !is_structure {
            return Ok(());
        }
        let step = JsonPathVisitor { node: root, depth: *depth, covered: !root.attributes.is_empty(), walk: self };
        step.deserialize(&mut serde_json::Deserializer::from_str(json)).map_err(|error| syntax_rejection(&error))
    }

    fn refuse<E: de::Error>(&mut self, rejection: RejectionReason) -> E {
        self.refusal = Some(rejection);
        E::custom(rejection.name())
    }

    fn stranger(&mut self) -> Result<(), RejectionReason> {
        self.batch.unknown_cells += 1;
        match self.unknown {
            UnknownCellPolicy::Drop => Ok(()),
            UnknownCellPolicy::Refuse => Err(RejectionReason::UnknownAttribute),
        }
    }

    fn write_node_cells(&mut self, node: &PathNode, json: &str, depth: usize) -> Result<(), RejectionReason> {
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

struct JsonPathVisitor<'n, 'w, 'b> {
    node: &'n PathNode,
    /// Depth, 1 for the record.
    depth: usize,
    /// An attribute contains the whole value, so nothing in it is dropped.
    covered: bool,
    walk: &'w mut JsonRowWriter<'b>,
}

impl JsonPathVisitor<'_, '_, '_> {
    fn count_unexpected_scalar<E: de::Error>(self) -> Result<(), E> {
        if self.covered {
            return Ok(());
        }
        self.walk.stranger().map_err(|rejection| self.walk.refuse(rejection))
    }

    fn check_recursion<E: de::Error>(&mut self) -> Result<(), E> {
        if self.depth > self.walk.limits.max_depth.min(MAX_RECURSION_DEPTH) {
            return Err(self.walk.refuse(RejectionReason::TooDeep));
        }
        Ok(())
    }

    fn visit_child<'de, E, R>(&mut self, child: Option<&PathNode>, source: R) -> Result<(), E>
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
            return source.walk(JsonPathVisitor { node: child, depth: depth + 1, covered, walk: &mut *self.walk });
        }
        let raw = source.raw()?;
        self.walk.write_node_cells(child, raw, depth).map_err(|rejection| self.walk.refuse(rejection))?;
        if child.is_array {
            self.walk.array = Some(raw.to_owned());
        }
        if child.is_leaf() || !raw.starts_with(['{', '[']) {
            return Ok(());
        }
        // An attribute inside the object requires a second pass.
        let step = JsonPathVisitor { node: child, depth: depth + 1, covered: true, walk: &mut *self.walk };
        step.deserialize(&mut serde_json::Deserializer::from_str(raw)).map_err(E::custom)
    }
}

trait ValueSource<'de, E> {
    fn raw(self) -> Result<&'de str, E>;
    fn walk(self, step: JsonPathVisitor<'_, '_, '_>) -> Result<(), E>;
}

struct PendingMapValue<'m, M>(&'m mut M);

impl<'de, M: MapAccess<'de>> ValueSource<'de, M::Error> for PendingMapValue<'_, M> {
    fn raw(self) -> Result<&'de str, M::Error> {
        self.0.next_value::<&RawValue>().map(RawValue::get)
    }

    fn walk(self, step: JsonPathVisitor<'_, '_, '_>) -> Result<(), M::Error> {
        self.0.next_value_seed(step)
    }
}

/// Already read, because only reading reveals its existence.
struct ArrayElementText<'de>(&'de str);

impl<'de, E: de::Error> ValueSource<'de, E> for ArrayElementText<'de> {
    fn raw(self) -> Result<&'de str, E> {
        Ok(self.0)
    }

    fn walk(self, step: JsonPathVisitor<'_, '_, '_>) -> Result<(), E> {
        step.deserialize(&mut serde_json::Deserializer::from_str(self.0)).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for JsonPathVisitor<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonPathVisitor<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<(), M::Error> {
        self.check_recursion()?;
        let node = self.node;
        // A duplicate attribute is detected when its cell is set.
        let mut steps: Vec<usize> = Vec::new();
        let mut strangers: Vec<Cow<'de, str>> = Vec::new();
        while let Some(key) = map.next_key_seed(BorrowedKeySeed)? {
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
            self.visit_child(child, PendingMapValue(&mut map))?;
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
        self.check_recursion()?;
        let node = self.node;
        let mut index = 0_usize;
        while let Some(raw) = seq.next_element::<&RawValue>()? {
            self.visit_child(node.child(&index.to_string()), ArrayElementText(raw.get()))?;
            index += 1;
        }
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        self.count_unexpected_scalar()
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        self.count_unexpected_scalar()
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        self.count_unexpected_scalar()
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        self.count_unexpected_scalar()
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        self.count_unexpected_scalar()
    }
}

/// Borrows a key unless it contains escapes.
pub(super) struct BorrowedKeySeed;

impl<'de> DeserializeSeed<'de> for BorrowedKeySeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for BorrowedKeySeed {
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
