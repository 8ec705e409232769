//! JSON objects that nobody has described: the columns are the keys that come, in the order in which they come.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{self, DeserializeSeed, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json::{Key, admit, check_depth, token_of};
use super::json_array::of_syntax;
use super::{Limits, not_finite};
use throng_core::values::raw::{Coordinate, RawBatch};
use throng_core::values::rejection::RejectionReason;

/// Why a record was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It cannot be read.
    Rejected(RejectionReason),
    /// With this record there would be more columns than allowed.
    TooManyColumns,
}

impl From<RejectionReason> for Refusal {
    fn from(rejection: RejectionReason) -> Self {
        Self::Rejected(rejection)
    }
}

/// Decodes JSON objects into one column a key. A nested object has its keys' columns, joined by `.`; an array is one
/// cell, and so is an object without keys.
#[derive(Clone, Debug)]
pub struct JsonKeys {
    names: Vec<String>,
    /// By column, the keys from the top of the record down to it.
    ways: Vec<Vec<String>>,
    by_name: BTreeMap<String, usize>,
    wanted: Option<BTreeSet<String>>,
    at_most: usize,
    limits: Limits,
}

impl JsonKeys {
    /// Takes every key, or only those `wanted`; refuses the record that would bring column number `at_most` + 1.
    #[must_use]
    pub fn new(limits: Limits, wanted: Option<&[String]>, at_most: usize) -> Self {
        let wanted = wanted.map(|names| names.iter().cloned().collect());
        Self { names: Vec::new(), ways: Vec::new(), by_name: BTreeMap::new(), wanted, at_most, limits }
    }

    /// The columns so far.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// By column, the keys from the top of a record down to it, as the first record has them that has it: `a.b` may be one
    /// key, or two.
    #[must_use]
    pub fn ways(&self) -> &[Vec<String>] {
        &self.ways
    }

    /// Adds the record in `payload` as one row of `into`, which gets wider when the record has new keys.
    ///
    /// # Errors
    /// The refusal; `into` then has the rows that it had before. Keys that a refused record brought may stay known.
    pub fn decode(&mut self, payload: &[u8], coordinate: Coordinate, into: &mut RawBatch) -> Result<(), Refusal> {
        let spelled = not_finite::encoded(payload);
        let text = admit(spelled.as_deref().unwrap_or(payload), self.limits)?;
        let mut cells: Vec<(usize, &str)> = Vec::new();
        let mut refusal = None;
        let walk = Level { keys: self, prefix: "", way: None, depth: 1, cells: &mut cells, refusal: &mut refusal };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        if let Err(error) = walk.deserialize(&mut deserializer) {
            return Err(refusal.unwrap_or_else(|| of_syntax(&error).into()));
        }
        deserializer.end().map_err(|_| RejectionReason::TrailingText)?;
        into.widen(self.names.len());
        into.push_row(coordinate);
        for (column, json) in cells {
            let mut unescaped = String::new();
            let set = token_of(json, &mut unescaped).map(|token| into.set(column, token));
            // `{"a.b": 1, "a": {"b": 2}}`: which of the two it is would be a guess.
            if let Err(reason) = set.and_then(|fresh| fresh.then_some(()).ok_or(RejectionReason::DuplicateKey)) {
                into.pop_row();
                return Err(reason.into());
            }
        }
        Ok(())
    }

    /// The column of a key; none when it is not wanted.
    fn column(&mut self, name: &str, way: &Way<'_>) -> Result<Option<usize>, Refusal> {
        if let Some(&column) = self.by_name.get(name) {
            return Ok(Some(column));
        }
        if self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(name)) {
            return Ok(None);
        }
        if self.names.len() == self.at_most {
            return Err(Refusal::TooManyColumns);
        }
        let column = self.names.len();
        self.names.push(name.to_owned());
        self.ways.push(way.keys());
        self.by_name.insert(name.to_owned(), column);
        Ok(Some(column))
    }
}

/// A key below others.
#[derive(Clone, Copy)]
struct Way<'a> {
    key: &'a str,
    above: Option<&'a Way<'a>>,
}

impl Way<'_> {
    fn keys(&self) -> Vec<String> {
        let mut keys = self.above.map_or_else(Vec::new, Way::keys);
        keys.push(self.key.to_owned());
        keys
    }
}

/// One object on the way down.
struct Level<'k, 'p, 'c, 'de> {
    keys: &'k mut JsonKeys,
    prefix: &'p str,
    way: Option<&'p Way<'p>>,
    /// Depth of this object; the record is 1.
    depth: usize,
    cells: &'c mut Vec<(usize, &'de str)>,
    refusal: &'c mut Option<Refusal>,
}

impl<'de> Level<'_, '_, '_, 'de> {
    fn refuse<E: de::Error>(&mut self, refusal: Refusal) -> E {
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
        let way = Way { key, above: self.way };
        let limits = self.keys.limits;
        check_depth(json, self.depth, limits).map_err(|rejection| self.refuse(rejection.into()))?;
        if json.starts_with('{') && json[1..].trim_ascii_start() != "}" {
            let below = Level {
                keys: self.keys,
                prefix: name,
                way: Some(&way),
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

impl<'de> DeserializeSeed<'de> for Level<'_, '_, '_, 'de> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Level<'_, '_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<(), M::Error> {
        let mut keys: Vec<Cow<'de, str>> = Vec::new();
        while let Some(key) = map.next_key_seed(Key)? {
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
    use crate::testing::AT;
    use proptest::prelude::*;
    use throng_core::values::raw::Token;

    const LIMITS: Limits =
        Limits { max_record_bytes: 400, max_depth: 4, max_elements: 100, max_repeated_bytes: 1 << 20 };
    fn decode(keys: &mut JsonKeys, text: &str, into: &mut RawBatch) -> Result<(), Refusal> {
        keys.decode(text.as_bytes(), AT, into)
    }

    #[test]
    fn columns_are_the_keys_in_the_order_in_which_they_come() {
        let mut keys = JsonKeys::new(LIMITS, None, 9);
        let mut batch = RawBatch::new(0);
        decode(&mut keys, r#"{"a":1,"b":{"c":"x\ty","d":null},"e":[1,{"f":2}],"g":{ }}"#, &mut batch).unwrap();
        decode(&mut keys, r#"{"h":true,"a":"1"}"#, &mut batch).unwrap();
        decode(&mut keys, "{}", &mut batch).unwrap();
        assert_eq!(keys.names(), ["a", "b.c", "b.d", "e", "g", "h"]);
        let row = |row| (0..6).map(|column| batch.token(row, column)).collect::<Vec<_>>();
        assert_eq!(
            row(0),
            [
                Token::Number("1"),
                Token::Text("x\ty"),
                Token::Null,
                Token::Structure("[1,{\"f\":2}]"),
                Token::Structure("{ }"),
                Token::Absent
            ]
        );
        assert_eq!(row(1)[0], Token::Text("1"));
        assert_eq!(row(1)[1..], [[Token::Absent; 4].as_slice(), &[Token::Bool(true)]].concat());
        assert_eq!(row(2), [Token::Absent; 6]);
        decode(&mut keys, r#"{"a":NaN,"b":{"c":-Infinity},"e":[NaN],"h":"NaN"}"#, &mut batch).unwrap();
        let row: Vec<_> = (0..6).map(|column| batch.token(3, column)).collect();
        assert_eq!(row[..2], [Token::Untyped("NaN"), Token::Untyped("-Infinity")]);
        assert_eq!((row[3], row[5]), (Token::Structure("[null]"), Token::Text("NaN")), "no number among others");
    }

    #[test]
    fn what_cannot_be_read_leaves_no_row() {
        let mut keys = JsonKeys::new(LIMITS, None, 3);
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
        assert_eq!(decode(&mut keys, wide, &mut batch), Err(Refusal::TooManyColumns));
        assert_eq!(batch.rows(), 1);
    }

    #[test]
    fn only_wanted_keys_count() {
        let wanted = ["b.c".to_owned(), "z".to_owned()];
        let mut keys = JsonKeys::new(LIMITS, Some(&wanted), 2);
        let mut batch = RawBatch::new(0);
        decode(&mut keys, r#"{"a":1,"b":{"c":2,"d":3},"e":4}"#, &mut batch).unwrap();
        assert_eq!((keys.names(), batch.token(0, 0)), (["b.c".to_owned()].as_slice(), Token::Number("2")));
    }

    proptest! {
        /// Against a parser of whole values that flattens afterwards.
        #[test]
        fn agrees_with_a_tree(rows in proptest::collection::vec(object(3), 1..12)) {
            let mut keys = JsonKeys::new(Limits { max_record_bytes: 1 << 16, max_depth: 32, max_elements: 100, max_repeated_bytes: 1 << 20 }, None, 1 << 10);
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
                        Token::Absent => None,
                        Token::Null => Some("null".to_owned()),
                        Token::Bool(truth) => Some(truth.to_string()),
                        Token::Text(text) => Some(format!("{text:?}")),
                        Token::Number(text) | Token::Structure(text) | Token::Untyped(text) => Some(text.to_owned()),
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
