//! Bounded cache of tokens.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hasher};

use crate::values::raw_batch::RawToken;

/// Bytes.
const MAX_ARENA: usize = 8 << 20;

#[derive(Clone, Copy, Debug)]
struct CachedToken<V> {
    hash: u32,
    start: u32,
    len: u32,
    kind: u8,
    value: V,
}

/// Cache by token kind and text; emptied when full.
#[derive(Clone, Debug)]
pub struct TokenCache<V> {
    table: HashTable<CachedToken<V>>,
    arena: String,
    hasher: DefaultHashBuilder,
    capacity: usize,
}

/// None for absent and null.
fn key<'a>(token: &RawToken<'a>) -> Option<(u8, &'a str)> {
    Some(token.parts()).filter(|(kind, _)| *kind > 1)
}

impl<V: Copy> TokenCache<V> {
    pub fn new(capacity: usize) -> Self {
        Self { table: HashTable::new(), arena: String::new(), hasher: DefaultHashBuilder::default(), capacity }
    }

    #[inline]
    fn hash(&self, kind: u8, text: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u8(kind);
        hasher.write(text.as_bytes());
        hasher.finish()
    }

    #[inline]
    pub fn get(&self, token: &RawToken<'_>) -> Option<V> {
        let (kind, text) = key(token)?;
        let hash = self.hash(kind, text);
        let same = |entry: &CachedToken<V>| {
            entry.kind == kind
                && entry.len as usize == text.len()
                && &self.arena.as_bytes()[entry.start as usize..entry.start as usize + text.len()] == text.as_bytes()
        };
        self.table.find(spread(hash), same).map(|entry| entry.value)
    }

    /// Adds a token that is not in the cache.
    pub fn insert(&mut self, token: &RawToken<'_>, value: V) {
        let Some((kind, text)) = key(token) else { return };
        if self.table.len() >= self.capacity || self.arena.len() + text.len() > MAX_ARENA {
            self.clear();
        }
        let (Ok(start), Ok(len)) = (u32::try_from(self.arena.len()), u32::try_from(text.len())) else { return };
        if text.len() > MAX_ARENA {
            return;
        }
        let hash = fold(self.hash(kind, text));
        self.arena.push_str(text);
        let entry = CachedToken { hash, start, len, kind, value };
        self.table.insert_unique(unfold(hash), entry, |entry| unfold(entry.hash));
    }

    pub fn clear(&mut self) {
        self.table.clear();
        self.arena.clear();
    }

    pub fn bytes(&self) -> usize {
        self.arena.capacity() + self.table.allocation_size()
    }
}

/// Entries keep 32 bits, so that growth does not rehash texts.
#[inline]
fn fold(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
}

#[inline]
fn unfold(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

#[inline]
fn spread(hash: u64) -> u64 {
    unfold(fold(hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn token_cache_separates_kinds_and_respects_capacity() {
        let mut cache = TokenCache::new(3);
        cache.insert(&RawToken::Text("1"), 1);
        cache.insert(&RawToken::Number("1"), 2);
        cache.insert(&RawToken::Bool(true), 3);
        assert_eq!(cache.get(&RawToken::Text("1")), Some(1));
        assert_eq!(cache.get(&RawToken::Number("1")), Some(2));
        assert_eq!(cache.get(&RawToken::Bool(false)), None);
        assert_eq!(cache.get(&RawToken::Untyped("1")), None);
        cache.insert(&RawToken::Text("4"), 4);
        assert_eq!((cache.get(&RawToken::Text("1")), cache.get(&RawToken::Text("4"))), (None, Some(4)));
    }

    proptest! {
        #[test]
        fn token_cache_equals_a_map(words in proptest::collection::vec("[a-c]{0,4}", 0..300)) {
            let mut cache = TokenCache::new(1_000);
            let mut twin: HashMap<&str, usize> = HashMap::new();
            for (i, word) in words.iter().enumerate() {
                prop_assert_eq!(cache.get(&RawToken::Text(word)), twin.get(word.as_str()).copied());
                if twin.insert(word, i).is_none() {
                    cache.insert(&RawToken::Text(word), i);
                } else {
                    twin.insert(word, cache.get(&RawToken::Text(word)).unwrap());
                }
            }
        }
    }
}
