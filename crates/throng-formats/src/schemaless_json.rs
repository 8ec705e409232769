use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{self, DeserializeSeed, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json_array_elements::syntax_rejection;
use super::json_decoder::{BorrowedKeySeed, check_depth, object_text, token_of};
use super::{DecodeLimits, non_finite_numbers};
use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_core::values::rejection::RejectionReason;

/// Reason for not adding a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemalessRefusal {
    /// The record is malformed.
    Rejected(RejectionReason),
    /// The record exceeds the maximum number of columns.
    TooManyColumns,
}

impl From<RejectionReason> for SchemalessRefusal {
    fn from(rejection: RejectionReason) -> Self {
        Self::Rejected(rejection)
    }
}

/// Decodes JSON objects into one column per key, with nested keys joined by `.`. An array or empty object is one cell.
#[derive(Clone, Debug)]
pub struct SchemalessJsonCodec {
    names: Vec<String>,
    column_key_paths: Vec<Vec<String>>,
    by_name: BTreeMap<String, usize>,
    selected_names: Option<BTreeSet<String>>,
    max_column_count: usize,
    limits: DecodeLimits,
}

impl SchemalessJsonCodec {
    /// Accepts all or only the `wanted` keys, up to `at_most` columns.
    #[must_use]
    pub fn new(limits: DecodeLimits, wanted: Option<&[String]>, at_most: usize) -> Self {
        let wanted = wanted.map(|names| names.iter().cloned().collect());
        Self {
            names: Vec::new(),
            column_key_paths: Vec::new(),
            by_name: BTreeMap::new(),
            selected_names: wanted,
            max_column_count: at_most,
            limits,
        }
    }

    /// Returns the columns so far.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the key path of each column in its first record: `a.b` may be one key or two.
    #[must_use]
    pub fn key_paths(&self) -> &[Vec<String>] {
        &self.column_key_paths
    }

    /// Adds the record to `into`, and widens it by new keys.
    ///
    /// # Errors
    /// Returns the refusal; the rows are then unchanged, but new keys may remain.
    pub fn decode(
        &mut self,
        payload: &[u8],
        coordinate: RecordPosition,
        into: &mut RawBatch,
    ) -> Result<(), SchemalessRefusal> {
        let spelled = non_finite_numbers::encoded(payload);
        let text = object_text(spelled.as_deref().unwrap_or(payload), self.limits)?;
        let mut cells: Vec<(usize, &str)> = Vec::new();
        let mut refusal = None;
        let walk = ObjectVisitor {
            keys: self,
            prefix: "",
            parent_path: None,
            depth: 1,
            cells: &mut cells,
            refusal: &mut refusal,
        };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        if let Err(error) = walk.deserialize(&mut deserializer) {
            return Err(refusal.unwrap_or_else(|| syntax_rejection(&error).into()));
        }
        deserializer.end().map_err(|_| RejectionReason::TrailingText)?;
        into.widen(self.names.len());
        into.push_row(coordinate);
        for (column, json) in cells {
            let mut unescaped = String::new();
            let set = token_of(json, &mut unescaped).map(|token| into.set(column, token));
            // In `{"a.b": 1, "a": {"b": 2}}`, `a.b` is ambiguous.
            if let Err(reason) = set.and_then(|fresh| fresh.then_some(()).ok_or(RejectionReason::DuplicateKey)) {
                into.pop_row();
                return Err(reason.into());
            }
        }
        Ok(())
    }

    fn column(&mut self, name: &str, way: &KeyPath<'_>) -> Result<Option<usize>, SchemalessRefusal> {
        if let Some(&column) = self.by_name.get(name) {
            return Ok(Some(column));
        }
        if self.selected_names.as_ref().is_some_and(|wanted| !wanted.contains(name)) {
            return Ok(None);
        }
        if self.names.len() == self.max_column_count {
            return Err(SchemalessRefusal::TooManyColumns);
        }
        let column = self.names.len();
        self.names.push(name.to_owned());
        self.column_key_paths.push(way.keys());
        self.by_name.insert(name.to_owned(), column);
        Ok(Some(column))
    }
}

#[derive(Clone, Copy)]
struct KeyPath<'a> {
    key: &'a str,
    parent_key: Option<&'a KeyPath<'a>>,
}

impl KeyPath<'_> {
    fn keys(&self) -> Vec<String> {
        let mut keys = self.parent_key.map_or_else(Vec::new, KeyPath::keys);
        keys.push(self.key.to_owned());
        keys
    }
}

struct ObjectVisitor<'k, 'p, 'c, 'de> {
    keys: &'k mut SchemalessJsonCodec,
    prefix: &'p str,
    parent_path: Option<&'p KeyPath<'p>>,
    /// Depth, 1 for the record.
    depth: usize,
    cells: &'c mut Vec<(usize, &'de str)>,
    refusal: &'c mut Option<SchemalessRefusal>,
}

impl<'de> ObjectVisitor<'_, '_, '_, 'de> {
    fn refuse<E: de::Error>(&mut self, refusal: SchemalessRefusal) -> E {
        *self.refusal = Some(refusal);
        E::custom("refused")
    }

    fn value<E: de::Error>(&mut self, key: &str, json: &'de str) -> Result<(), E> {
        let joined: String;
        let name = if self.prefix.is_empty() {
            key
        } else {
            joined = format!("{}.{key}", self.prefix);
            &joined
        };
        let way = KeyPath { key, parent_key: self.parent_path };
        let limits = self.keys.limits;
        check_depth(json, self.depth, limits).map_err(|rejection| self.refuse(rejection.into()))?;
        if json.starts_with('{') && json[1..].trim_ascii_start() != "}" {
            let below = ObjectVisitor {
                keys: self.keys,
                prefix: name,
                parent_path: Some(&way),
                depth: self.depth + 1,
                cells: self.cells,
                refusal: self.refusal,
            };
            return below.deserialize(&mut serde_json::Deserializer::from_str(json)).map_err(E::custom);
        }
        match self.keys.column(name, &way) {
            Ok(Some(column)) => self.cells.push((column, json)),
            Ok(None) => {}
            Err(refusal) => return Err(self.refuse(refusal)),
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for ObjectVisitor<'_, '_, '_, 'de> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectVisitor<'_, '_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<(), M::Error> {
        let mut keys: Vec<Cow<'de, str>> = Vec::new();
        while let Some(key) = map.next_key_seed(BorrowedKeySeed)? {
            let json = map.next_value::<&'de RawValue>()?.get();
            self.value(&key, json)?;
            keys.push(key);
        }
        keys.sort_unstable();
        if keys.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(self.refuse(RejectionReason::DuplicateKey.into()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec_fixtures::MESSAGE_POSITION;
    use proptest::prelude::*;
    use throng_core::values::raw_batch::RawToken;

    const LIMITS: DecodeLimits =
        DecodeLimits { max_record_bytes: 400, max_depth: 4, max_elements: 100, max_repeated_bytes: 1 << 20 };
    fn decode(keys: &mut SchemalessJsonCodec, text: &str, into: &mut RawBatch) -> Result<(), SchemalessRefusal> {
        keys.decode(text.as_bytes(), MESSAGE_POSITION, into)
    }

    #[test]
    fn columns_follow_first_appearance_of_keys() {
        let mut keys = SchemalessJsonCodec::new(LIMITS, None, 9);
        let mut batch = RawBatch::new(0);
        decode(&mut keys, r#"{"a":1,"b":{"c":"x\ty","d":null},"e":[1,{"f":2}],"g":{ }}"#, &mut batch).unwrap();
        decode(&mut keys, r#"{"h":true,"a":"1"}"#, &mut batch).unwrap();
        decode(&mut keys, "{}", &mut batch).unwrap();
        assert_eq!(keys.names(), ["a", "b.c", "b.d", "e", "g", "h"]);
        let row = |row| (0..6).map(|column| batch.token(row, column)).collect::<Vec<_>>();
        assert_eq!(
            row(0),
            [
                RawToken::Number("1"),
                RawToken::Text("x\ty"),
                RawToken::Null,
                RawToken::Structure("[1,{\"f\":2}]"),
                RawToken::Structure("{ }"),
                RawToken::Absent
            ]
        );
        assert_eq!(row(1)[0], RawToken::Text("1"));
        assert_eq!(row(1)[1..], [[RawToken::Absent; 4].as_slice(), &[RawToken::Bool(true)]].concat());
        assert_eq!(row(2), [RawToken::Absent; 6]);
        decode(&mut keys, r#"{"a":NaN,"b":{"c":-Infinity},"e":[NaN],"h":"NaN"}"#, &mut batch).unwrap();
        let row: Vec<_> = (0..6).map(|column| batch.token(3, column)).collect();
        assert_eq!(row[..2], [RawToken::Untyped("NaN"), RawToken::Untyped("-Infinity")]);
        assert_eq!((row[3], row[5]), (RawToken::Structure("[null]"), RawToken::Text("NaN")), "no number among others");
    }

    #[test]
    fn rejected_record_adds_no_row() {
        let mut keys = SchemalessJsonCodec::new(LIMITS, None, 3);
        let mut batch = RawBatch::new(0);
        decode(&mut keys, r#"{"a":1}"#, &mut batch).unwrap();
        for (text, rejection) in [
            (r#"{"a":1,"a":2}"#, RejectionReason::DuplicateKey),
            (r#"{"a":1,"\u0061":2}"#, RejectionReason::DuplicateKey),
            (r#"{"b":{"c":1},"b":{"d":1}}"#, RejectionReason::DuplicateKey),
            (r#"{"b.c":1,"b":{"c":1}}"#, RejectionReason::DuplicateKey),
            (r#"{"a":[[[[1]]]]}"#, RejectionReason::TooDeep),
            (r#"{"a":{"a":{"a":{"a":{"a":1}}}}}"#, RejectionReason::TooDeep),
            (r#"{"a":"\ud800"}"#, RejectionReason::MalformedJson),
            ("[]", RejectionReason::NotAnObject),
            ("", RejectionReason::Empty),
            (r#"{"a":1"#, RejectionReason::Truncated),
            (r#"{"a":1} x"#, RejectionReason::TrailingText),
        ] {
            assert_eq!(decode(&mut keys, text, &mut batch), Err(rejection.into()), "{text}");
            assert_eq!(batch.rows(), 1, "{text}");
        }
        let wide = r#"{"p":1,"q":1,"r":1,"s":1}"#;
        assert_eq!(decode(&mut keys, wide, &mut batch), Err(SchemalessRefusal::TooManyColumns));
        assert_eq!(batch.rows(), 1);
    }

    #[test]
    fn unselected_keys_add_no_columns() {
        let wanted = ["b.c".to_owned(), "z".to_owned()];
        let mut keys = SchemalessJsonCodec::new(LIMITS, Some(&wanted), 2);
        let mut batch = RawBatch::new(0);
        decode(&mut keys, r#"{"a":1,"b":{"c":2,"d":3},"e":4}"#, &mut batch).unwrap();
        assert_eq!((keys.names(), batch.token(0, 0)), (["b.c".to_owned()].as_slice(), RawToken::Number("2")));
    }

    proptest! {
        #[test]
        fn decoded_columns_match_flattened_json(rows in proptest::collection::vec(object(3), 1..12)) {
            let mut keys = SchemalessJsonCodec::new(DecodeLimits { max_record_bytes: 1 << 16, max_depth: 32, max_elements: 100, max_repeated_bytes: 1 << 20 }, None, 1 << 10);
            let mut batch = RawBatch::new(0);
            let mut expected = Vec::new();
            for row in &rows {
                decode(&mut keys, &row.to_string(), &mut batch).unwrap();
                let mut flat = BTreeMap::new();
                flatten("", row, &mut flat);
                expected.push(flat);
            }
            for (row, flat) in expected.iter().enumerate() {
                for (column, name) in keys.names().iter().enumerate() {
                    let found = match batch.token(row, column) {
                        RawToken::Absent => None,
                        RawToken::Null => Some("null".to_owned()),
                        RawToken::Bool(truth) => Some(truth.to_string()),
                        RawToken::Text(text) => Some(format!("{text:?}")),
                        RawToken::Number(text) | RawToken::Structure(text) | RawToken::Untyped(text) => Some(text.to_owned()),
                    };
                    prop_assert_eq!(&found, &flat.get(name).cloned(), "{}", name);
                }
                prop_assert!(flat.keys().all(|name| keys.names().contains(name)));
            }
        }
    }

    fn object(depth: u32) -> BoxedStrategy<serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i16>().prop_map(Into::into),
            "[a-z]{0,3}".prop_map(Into::into),
            proptest::collection::vec(any::<u8>(), 0..3).prop_map(Into::into),
        ];
        let value = if depth == 0 { leaf.boxed() } else { prop_oneof![3 => leaf, 1 => object(depth - 1)].boxed() };
        proptest::collection::btree_map("[a-c]", value, 0..4)
            .prop_map(|map| serde_json::Value::Object(map.into_iter().collect()))
            .boxed()
    }

    fn flatten(prefix: &str, value: &serde_json::Value, into: &mut BTreeMap<String, String>) {
        for (key, value) in value.as_object().unwrap() {
            let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            match value {
                serde_json::Value::Object(map) if !map.is_empty() => flatten(&name, value, into),
                other => {
                    into.insert(name, other.to_string());
                }
            }
        }
    }
}
