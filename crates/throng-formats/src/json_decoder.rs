//! JSON decoder: one object per record, flat and nested keys in one pass.
//!
//! `serde_json` parses the structure and returns each leaf as raw text. Numbers keep their spelling; the canonical
//! form rounds them later. Text without escapes is copied once, and unknown values are not built.

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

/// Deepest level that is read recursively, below `serde_json`'s own limit of 128. Only schema pointers can lead
/// there; other values are scanned without recursion.
const MAX_RECURSION_DEPTH: usize = 120;

/// Decodes JSON objects into the cells of the given fields.
#[derive(Clone, Debug)]
pub struct JsonCodec {
    root: PathNode,
    /// Fields of each element, if the elements of an array are records.
    elements: Option<ElementPaths>,
    limits: DecodeLimits,
    unknown: UnknownCellPolicy,
    /// Accepts a non-object value as a record.
    accepts_scalars: bool,
}

impl RecordDecoder for JsonCodec {
    /// See [`RecordDecoder::fill`]. `NaN`, `Infinity` and `-Infinity`, which some JSON writers emit as numbers, are untyped
    /// text, as in Parquet.
    ///
    /// A key that no field selects adds one to `into.unknown_cells`, and so does a scalar where the fields expect an
    /// object. With `null` there, the fields below it are absent. Keys inside an unknown object are not counted.
    /// Duplicate keys are detected in the record and in every object that a field leads into.
    ///
    /// The values around an array of records are read once, and their unknown values are counted once.
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
    /// Creates a codec for batches of width `fields.len()`, which drops and counts unknown keys.
    #[must_use]
    pub fn new(fields: &[FieldPath], limits: DecodeLimits) -> Self {
        Self { accepts_scalars: false, ..Self::from_numbered_fields(fields.iter().enumerate(), limits) }
    }

    /// Creates a codec for one part of a message. A part that is not an object is accepted if a field is the whole
    /// part.
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
    /// Returns the rejection reason. `into` then has its previous rows and its previous count of unknown cells.
    pub fn decode(
        &self,
        payload: &[u8],
        coordinate: RecordPosition,
        into: &mut RawBatch,
    ) -> Result<(), RejectionReason> {
        RecordDecoder::decode(self, payload, coordinate, into)
    }

    /// Sets the cells of a JSON value that is not an object.
    fn fill_scalar(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), RejectionReason> {
        let text = std::str::from_utf8(payload).map_err(|_| RejectionReason::NotUtf8)?;
        self.walk(into).write_node_cells(&self.root, text.trim_ascii(), 0)
    }

    fn walk<'b>(&self, batch: &'b mut RawBatch) -> JsonRowWriter<'b> {
        JsonRowWriter { batch, limits: self.limits, unknown: self.unknown, refusal: None, array: None }
    }

    /// Sets the cells outside the array of records, and returns the text of this array.
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

/// Returns the text of a payload that starts like an object.
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

/// Refuses a value that starts `depth` levels below the top of the record and is nested too deeply.
pub(super) fn check_depth(json: &str, depth: usize, limits: DecodeLimits) -> Result<(), RejectionReason> {
    let nested = matches!(json.as_bytes().first(), Some(b'{' | b'['));
    if nested && depth + bracket_depth(json) > limits.max_depth { Err(RejectionReason::TooDeep) } else { Ok(()) }
}

/// Returns the token of a well-formed JSON text; strings with escapes are written to `unescaped`.
pub(super) fn token_of<'a>(json: &'a str, unescaped: &'a mut String) -> Result<RawToken<'a>, RejectionReason> {
    Ok(match json.as_bytes().first() {
        Some(b'"') => {
            let inner =
                json.strip_prefix('"').and_then(|j| j.strip_suffix('"')).ok_or(RejectionReason::MalformedJson)?;
            if inner.contains('\\') {
                // The scan of raw text accepts a lone surrogate; all other malformed strings are refused earlier.
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

/// Row being filled.
struct JsonRowWriter<'a> {
    batch: &'a mut RawBatch,
    limits: DecodeLimits,
    unknown: UnknownCellPolicy,
    /// Reason for stopping early, set before serde's error is returned; serde's errors carry only text.
    refusal: Option<RejectionReason>,
    array: Option<String>,
}

impl JsonRowWriter<'_> {
    /// Sets the cells of one element, a well-formed value. A scalar is refused unless an attribute is the whole
    /// element.
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

    /// Sets the cells of the attributes at `node` to a well-formed value.
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

/// Object or array on the path to the fields below `node`.
struct JsonPathVisitor<'n, 'w, 'b> {
    node: &'n PathNode,
    /// Depth of this value; the record is depth 1.
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

    /// Processes a child value, which `source` reads as raw text or as nested structure.
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
        // One attribute is the whole object and others are inside it: the object is read a second time.
        let step = JsonPathVisitor { node: child, depth: depth + 1, covered: true, walk: &mut *self.walk };
        step.deserialize(&mut serde_json::Deserializer::from_str(raw)).map_err(E::custom)
    }
}

/// Next value of a map or an array, readable in one of two ways.
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

/// Array element. It is already read, because its existence is only known after reading.
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
        // A duplicate attribute is detected when its cell is set; other keys are tracked here.
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

/// Deserializes a key; borrows it from the payload unless it contains escapes.
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
