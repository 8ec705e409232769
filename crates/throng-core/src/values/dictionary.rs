//! Exact codes of a column for analysis; released streams use a [codebook](crate::values::codebook).

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::values::canonical::{CanonicalKind, CellError, ValueTyping};
use crate::values::raw_batch::RawToken;
use crate::values::token_cache::TokenCache;

/// Missing key.
pub const ABSENT: u32 = 0;
/// Null, or spelled as missing.
pub const MISSING: u32 = 1;
/// First value.
pub const FIRST_VALUE: u32 = 2;

const MAX_SPELLINGS: usize = 1 << 16;

/// Error for too many values or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the column has too many distinct values for a dictionary (2\u{b3}\u{b2} bytes of text): exclude it")]
pub struct DictionaryFull;

/// Reason for a cell without code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum EncodeError {
    #[error(transparent)]
    Cell(#[from] CellError),
    #[error(transparent)]
    Full(#[from] DictionaryFull),
}

/// Values of a column in order of arrival.
#[derive(Clone, Debug)]
pub struct Dictionary {
    typing: Option<(ValueTyping, TokenCache<u32>)>,
    by_text: HashTable<u32>,
    hasher: DefaultHashBuilder,
    arena: String,
    ends: Vec<u32>,
    buffer: String,
}

impl Dictionary {
    /// Creates a dictionary of canonical values.
    ///
    /// Without a typing, values are texts as spelled, and empty untyped fields are missing.
    pub fn new(typing: Option<ValueTyping>) -> Self {
        Self {
            typing: typing.map(|typing| (typing, TokenCache::new(MAX_SPELLINGS))),
            by_text: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            arena: String::new(),
            ends: Vec::new(),
            buffer: String::new(),
        }
    }

    /// Returns the code of a token.
    ///
    /// # Errors
    /// Fails for the wrong type, or if full.
    pub fn encode(&mut self, token: RawToken<'_>) -> Result<u32, EncodeError> {
        match token {
            RawToken::Absent => return Ok(ABSENT),
            RawToken::Null => return Ok(MISSING),
            _ => {}
        }
        let Some((typing, cache)) = &mut self.typing else {
            let text = match token {
                RawToken::Untyped("") => return Ok(MISSING),
                RawToken::Text(text) | RawToken::Number(text) | RawToken::Structure(text) | RawToken::Untyped(text) => {
                    text
                }
                RawToken::Bool(true) => "true",
                RawToken::Bool(false) => "false",
                RawToken::Absent | RawToken::Null => "",
            };
            return Ok(self.code_of(text)?);
        };
        if let Some(code) = cache.get(&token) {
            return Ok(code);
        }
        let mut text = std::mem::take(&mut self.buffer);
        let code = match typing.canonical(token, &mut text) {
            Ok(CanonicalKind::Absent) => Ok(ABSENT),
            Ok(CanonicalKind::Null) => Ok(MISSING),
            Ok(CanonicalKind::Value) => self.code_of(&text).map_err(EncodeError::from),
            Err(error) => Err(error.into()),
        };
        self.buffer = text;
        if let (Ok(code), Some((_, cache))) = (&code, &mut self.typing) {
            cache.insert(&token, *code);
        }
        code
    }

    /// Checks a token without storing it.
    ///
    /// # Errors
    /// Fails for the wrong type.
    pub fn check(&mut self, token: RawToken<'_>) -> Result<(), CellError> {
        let Some((typing, _)) = &self.typing else { return Ok(()) };
        match token {
            RawToken::Absent | RawToken::Null => Ok(()),
            token => typing.canonical(token, &mut self.buffer).map(drop),
        }
    }

    /// Returns an empty dictionary with the same typing.
    #[must_use]
    pub fn without_values(&self) -> Self {
        let typing = self.typing.as_ref().map(|(typing, _)| (typing.clone(), TokenCache::new(0)));
        Self { typing, ..Self::new(None) }
    }

    fn code_of(&mut self, text: &str) -> Result<u32, DictionaryFull> {
        let hash = self.hasher.hash_one(text);
        let (arena, ends) = (&self.arena, &self.ends);
        if let Some(&code) = self.by_text.find(hash, |&code| slice(arena, ends, code) == text) {
            return Ok(code);
        }
        let code =
            u32::try_from(self.ends.len()).ok().and_then(|n| n.checked_add(FIRST_VALUE)).ok_or(DictionaryFull)?;
        let end = u32::try_from(self.arena.len() + text.len()).map_err(|_| DictionaryFull)?;
        self.arena.push_str(text);
        self.ends.push(end);
        let Self { arena, ends, hasher, by_text, .. } = self;
        by_text.insert_unique(hash, code, |&code| hasher.hash_one(slice(arena, ends, code)));
        Ok(code)
    }

    /// Returns canonical JSON, or the spelling without a typing; none for missing and absent.
    pub fn text(&self, code: u32) -> Option<&str> {
        let known = code >= FIRST_VALUE && ((code - FIRST_VALUE) as usize) < self.ends.len();
        known.then(|| slice(&self.arena, &self.ends, code))
    }

    /// Returns all texts in code order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        (0..self.values() as u32).map(|index| slice(&self.arena, &self.ends, FIRST_VALUE + index))
    }

    /// Returns the number of values.
    pub fn values(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes in use.
    pub fn bytes(&self) -> usize {
        self.arena.capacity()
            + self.ends.capacity() * size_of::<u32>()
            + self.by_text.allocation_size()
            + self.typing.as_ref().map_or(0, |(_, cache)| cache.bytes())
    }

    /// Frees the memory for encoding.
    pub fn finish_encoding(&mut self) {
        self.by_text = HashTable::new();
        if let Some((_, cache)) = &mut self.typing {
            *cache = TokenCache::new(0);
        }
    }
}

fn slice<'a>(arena: &'a str, ends: &[u32], code: u32) -> &'a str {
    let index = (code - FIRST_VALUE) as usize;
    let start = if index == 0 { 0 } else { ends[index - 1] as usize };
    &arena[start..ends[index] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::canonical::{AttributeType, MissingSpellings, Rounding};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn absent_and_missing_differ_from_values() {
        let mut dictionary = Dictionary::new(None);
        assert_eq!(dictionary.encode(RawToken::Absent), Ok(ABSENT));
        assert_eq!(dictionary.encode(RawToken::Null), Ok(MISSING));
        assert_eq!(dictionary.encode(RawToken::Untyped("")), Ok(MISSING));
        let empty = dictionary.encode(RawToken::Text("")).unwrap();
        assert_eq!((empty, dictionary.text(empty)), (FIRST_VALUE, Some("")), "an empty JSON string is a value");
        let five = dictionary.encode(RawToken::Number("5")).unwrap();
        for same in [RawToken::Text("5"), RawToken::Untyped("5")] {
            assert_eq!(dictionary.encode(same), Ok(five));
        }
        assert_ne!(dictionary.encode(RawToken::Number("5.0")), Ok(five), "without a schema nothing is rounded");
        let truth = dictionary.encode(RawToken::Bool(true)).unwrap();
        assert_eq!(dictionary.text(truth), Some("true"));
        assert_eq!((dictionary.text(ABSENT), dictionary.text(MISSING), dictionary.text(99)), (None, None, None));
    }

    #[test]
    fn typed_dictionary_rounds_before_counting() {
        let typing = ValueTyping {
            attribute: "x".into(),
            kind: AttributeType::Float,
            rounding: Rounding::step(0.5).unwrap(),
            missing: MissingSpellings::new(Some(vec!["-1".into()]), true),
            spelling: crate::values::spelling::Spelling::default(),
            dates: crate::values::date_formats::DateFormats::default(),
            conversion: None,
            decimal_comma: false,
            zone: None,
        };
        let mut dictionary = Dictionary::new(Some(typing));
        let code = dictionary.encode(RawToken::Untyped("71.6")).unwrap();
        for same in [RawToken::Number("71.5"), RawToken::Text("71.50"), RawToken::Untyped("71.6")] {
            assert_eq!(dictionary.encode(same), Ok(code));
        }
        assert_eq!(dictionary.text(code), Some("71.5"));
        assert_eq!(dictionary.encode(RawToken::Number("-1.0")), Ok(MISSING));
        assert!(matches!(dictionary.encode(RawToken::Text("x")), Err(EncodeError::Cell(_))));
    }

    proptest! {
        #[test]
        fn dictionary_codes_equal_a_map(words in proptest::collection::vec("[a-c]{0,3}", 0..400)) {
            let mut dictionary = Dictionary::new(None);
            let mut twin: BTreeMap<&str, u32> = BTreeMap::new();
            for word in &words {
                let next = FIRST_VALUE + twin.len() as u32;
                let expected = *twin.entry(word).or_insert(next);
                prop_assert_eq!(dictionary.encode(RawToken::Text(word)), Ok(expected));
            }
            for (word, code) in &twin {
                prop_assert_eq!(dictionary.text(*code), Some(*word));
            }
            prop_assert_eq!(dictionary.texts().collect::<Vec<_>>().len(), twin.len());
            dictionary.finish_encoding();
            prop_assert_eq!(dictionary.texts().count(), twin.len());
        }
    }
}
