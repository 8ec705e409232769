//! The dictionary of one column: from tokens to dense codes, exact, without hierarchies, keys or digests.
//!
//! A [codebook](crate::values::codebook) serves a stream that releases; this serves a table that is only looked at.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::values::cache::TokenCache;
use crate::values::canonical::{Canonical, CellError, Typing};
use crate::values::raw::Token;

/// The key is not there.
pub const ABSENT: u32 = 0;
/// The cell is null, or spelled as missing.
pub const MISSING: u32 = 1;
/// The first code of a value.
pub const FIRST_VALUE: u32 = 2;

/// Spellings remembered beside the values of a typed column.
const MAX_SPELLINGS: usize = 1 << 16;

/// A column has more different values, or more bytes of them, than can be numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the column has more different values than fit into a dictionary (2\u{b3}\u{b2} bytes of text): leave it out")]
pub struct DictionaryFull;

/// Why a cell has no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum EncodeError {
    #[error(transparent)]
    Cell(#[from] CellError),
    #[error(transparent)]
    Full(#[from] DictionaryFull),
}

/// Every value of a column, numbered in the order of arrival.
#[derive(Clone, Debug)]
pub struct Dictionary {
    typing: Option<(Typing, TokenCache<u32>)>,
    by_text: HashTable<u32>,
    hasher: DefaultHashBuilder,
    arena: String,
    /// Where the text of each value ends in the arena.
    ends: Vec<u32>,
    buffer: String,
}

impl Dictionary {
    /// With a typing, values are canonical (rounded, one spelling each). Without one they are the texts as they are
    /// spelled, an empty untyped field (CSV) is missing, and the number 5 and the text "5" are one value.
    pub fn new(typing: Option<Typing>) -> Self {
        Self {
            typing: typing.map(|typing| (typing, TokenCache::new(MAX_SPELLINGS))),
            by_text: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            arena: String::new(),
            ends: Vec::new(),
            buffer: String::new(),
        }
    }

    /// The code of a token.
    ///
    /// # Errors
    /// When the type cannot take it, or the dictionary is full.
    pub fn encode(&mut self, token: Token<'_>) -> Result<u32, EncodeError> {
        match token {
            Token::Absent => return Ok(ABSENT),
            Token::Null => return Ok(MISSING),
            _ => {}
        }
        let Some((typing, cache)) = &mut self.typing else {
            let text = match token {
                Token::Untyped("") => return Ok(MISSING),
                Token::Text(text) | Token::Number(text) | Token::Structure(text) | Token::Untyped(text) => text,
                Token::Bool(true) => "true",
                Token::Bool(false) => "false",
                Token::Absent | Token::Null => "",
            };
            return Ok(self.code_of(text)?);
        };
        if let Some(code) = cache.get(&token) {
            return Ok(code);
        }
        let mut text = std::mem::take(&mut self.buffer);
        let code = match typing.canonical(token, &mut text) {
            Ok(Canonical::Absent) => Ok(ABSENT),
            Ok(Canonical::Null) => Ok(MISSING),
            Ok(Canonical::Value) => self.code_of(&text).map_err(EncodeError::from),
            Err(error) => Err(error.into()),
        };
        self.buffer = text;
        if let (Ok(code), Some((_, cache))) = (&code, &mut self.typing) {
            cache.insert(&token, *code);
        }
        code
    }

    /// Refuses a token that the type cannot take, as [`encode`](Self::encode) does, and remembers nothing of it.
    ///
    /// # Errors
    /// When the type cannot take it.
    pub fn check(&mut self, token: Token<'_>) -> Result<(), CellError> {
        let Some((typing, _)) = &self.typing else { return Ok(()) };
        match token {
            Token::Absent | Token::Null => Ok(()),
            token => typing.canonical(token, &mut self.buffer).map(drop),
        }
    }

    /// The same typing, without a value: to go on checking a column whose values are not held.
    #[must_use]
    pub fn emptied(&self) -> Self {
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

    /// The text of a value's code: canonical JSON with a typing, as spelled without; none for missing and absent.
    pub fn text(&self, code: u32) -> Option<&str> {
        let known = code >= FIRST_VALUE && ((code - FIRST_VALUE) as usize) < self.ends.len();
        known.then(|| slice(&self.arena, &self.ends, code))
    }

    /// The texts of all values, in the order of their codes.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        (0..self.values() as u32).map(|index| slice(&self.arena, &self.ends, FIRST_VALUE + index))
    }

    /// Number of different values, missing and absent not counted.
    pub fn values(&self) -> usize {
        self.ends.len()
    }

    /// Memory held.
    pub fn bytes(&self) -> usize {
        self.arena.capacity()
            + self.ends.capacity() * size_of::<u32>()
            + self.by_text.allocation_size()
            + self.typing.as_ref().map_or(0, |(_, cache)| cache.bytes())
    }

    /// Gives back what only encoding needs.
    pub fn close(&mut self) {
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
    use crate::values::canonical::{Missing, Rounding, Type};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn kinds_of_nothing_are_apart_from_values() {
        let mut dictionary = Dictionary::new(None);
        assert_eq!(dictionary.encode(Token::Absent), Ok(ABSENT));
        assert_eq!(dictionary.encode(Token::Null), Ok(MISSING));
        assert_eq!(dictionary.encode(Token::Untyped("")), Ok(MISSING));
        let empty = dictionary.encode(Token::Text("")).unwrap();
        assert_eq!((empty, dictionary.text(empty)), (FIRST_VALUE, Some("")), "an empty JSON string is a value");
        let five = dictionary.encode(Token::Number("5")).unwrap();
        for same in [Token::Text("5"), Token::Untyped("5")] {
            assert_eq!(dictionary.encode(same), Ok(five));
        }
        assert_ne!(dictionary.encode(Token::Number("5.0")), Ok(five), "without a schema nothing is rounded");
        let truth = dictionary.encode(Token::Bool(true)).unwrap();
        assert_eq!(dictionary.text(truth), Some("true"));
        assert_eq!((dictionary.text(ABSENT), dictionary.text(MISSING), dictionary.text(99)), (None, None, None));
    }

    #[test]
    fn a_typing_rounds_before_anything_is_counted() {
        let typing = Typing {
            attribute: "x".into(),
            kind: Type::Float,
            rounding: Rounding::step(0.5).unwrap(),
            missing: Missing::new(Some(vec!["-1".into()]), true),
            spelling: crate::values::spelling::Spelling::default(),
            dates: crate::values::dates::Dates::default(),
            conversion: None,
            decimal_comma: false,
            zone: None,
        };
        let mut dictionary = Dictionary::new(Some(typing));
        let code = dictionary.encode(Token::Untyped("71.6")).unwrap();
        for same in [Token::Number("71.5"), Token::Text("71.50"), Token::Untyped("71.6")] {
            assert_eq!(dictionary.encode(same), Ok(code));
        }
        assert_eq!(dictionary.text(code), Some("71.5"));
        assert_eq!(dictionary.encode(Token::Number("-1.0")), Ok(MISSING));
        assert!(matches!(dictionary.encode(Token::Text("x")), Err(EncodeError::Cell(_))));
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(words in proptest::collection::vec("[a-c]{0,3}", 0..400)) {
            let mut dictionary = Dictionary::new(None);
            let mut twin: BTreeMap<&str, u32> = BTreeMap::new();
            for word in &words {
                let next = FIRST_VALUE + twin.len() as u32;
                let expected = *twin.entry(word).or_insert(next);
                prop_assert_eq!(dictionary.encode(Token::Text(word)), Ok(expected));
            }
            for (word, code) in &twin {
                prop_assert_eq!(dictionary.text(*code), Some(*word));
            }
            prop_assert_eq!(dictionary.texts().collect::<Vec<_>>().len(), twin.len());
            dictionary.close();
            prop_assert_eq!(dictionary.texts().count(), twin.len());
        }
    }
}
