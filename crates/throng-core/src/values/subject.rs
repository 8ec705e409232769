//! Whom a record counts for: keyed digests of subjects.

use std::sync::Arc;

use crate::values::cache::TokenCache;
use crate::values::canonical::{Canonical, CellError};
use crate::values::digest::{DigestKey, Keyed, mix};
use crate::values::raw::{Coordinate, RawBatch, Token};
use crate::values::schema::Attribute;

/// The digest of nobody: a record without a subject supports no class.
pub const NO_SUBJECT: u64 = 0;

/// Subjects remembered at most, for speed alone.
const MAX_REMEMBERED: usize = 1 << 17;

/// Writes the canonical text of the name in `token` into `text`; false where the token names nobody: it is absent, null, empty or spelled as
/// missing.
///
/// # Errors
/// When the attribute's type cannot take the token, and for arrays and objects: they spell one name in many ways.
pub fn canonical_name(attribute: &Attribute, token: Token<'_>, text: &mut String) -> Result<bool, CellError> {
    text.clear();
    match token {
        Token::Absent | Token::Null => Ok(false),
        Token::Structure(_) => Err(attribute.typing.refuses("an array or an object")),
        // An empty name is nobody's.
        token => Ok(attribute.typing.canonical(token, text)? == Canonical::Value && text != "\"\""),
    }
}

/// Digests the subject attribute: HMAC-SHA-256 of its canonical text, 64 bits, never [`NO_SUBJECT`].
#[derive(Clone, Debug)]
pub struct Subjects {
    attribute: Arc<Attribute>,
    keyed: Keyed,
    cache: TokenCache<u64>,
}

impl Subjects {
    /// Digests of the values of an attribute.
    pub fn new(attribute: Arc<Attribute>, secret: &DigestKey) -> Self {
        let keyed = Keyed::new(secret, "throng subject");
        Self { attribute, keyed, cache: TokenCache::new(MAX_REMEMBERED) }
    }

    /// The digest of a token; [`NO_SUBJECT`] when it is absent, null, empty or spelled as missing.
    ///
    /// # Errors
    /// When the attribute's type cannot take it, and for arrays and objects: they spell one name in many ways.
    pub fn digest(&mut self, token: Token<'_>) -> Result<u64, CellError> {
        if let Some(known) = self.cache.get(&token) {
            return Ok(known);
        }
        let digest = self.digest_once(token)?;
        self.cache.insert(&token, digest);
        Ok(digest)
    }

    /// The same for a token that is not remembered: whoever is to be forgotten is not kept by being named.
    ///
    /// # Errors
    /// As [`digest`](Self::digest).
    pub fn digest_once(&self, token: Token<'_>) -> Result<u64, CellError> {
        let mut text = String::new();
        let is_named = canonical_name(&self.attribute, token, &mut text)?;
        Ok(if is_named { self.digest_canonical(&text) } else { NO_SUBJECT })
    }

    /// The digest of a canonical text: for erasing a subject by name.
    pub fn digest_canonical(&self, canonical: &str) -> u64 {
        ((self.keyed.digest(canonical.as_bytes()) >> 64) as u64).max(1)
    }

    /// Appends the subjects of a batch, one a row; a cell of the wrong type is nobody and listed in `failures`.
    pub fn digest_column(
        &mut self,
        batch: &RawBatch,
        attribute: usize,
        out: &mut Vec<u64>,
        failures: &mut Vec<(u32, CellError)>,
    ) {
        let mut last = Ok(NO_SUBJECT);
        for row in 0..batch.rows() {
            // A name that encloses thousands of elements is looked at once.
            if row == 0 || !batch.repeats(row, attribute) {
                last = self.digest(batch.token(row, attribute));
            }
            match &last {
                Ok(subject) => out.push(*subject),
                Err(error) => {
                    failures.push((u32::try_from(row).unwrap_or(u32::MAX), error.clone()));
                    out.push(NO_SUBJECT);
                }
            }
        }
    }
}

/// The subject of a record where the schema names none: the record itself, by its coordinate; all elements of one message are one. Different offsets of a
/// partition never collide; others do with the odds of 64-bit hashes.
pub fn coordinate_subject(coordinate: Coordinate) -> u64 {
    let place = u64::from(coordinate.topic) << 32 | u64::from(coordinate.partition.cast_unsigned());
    let mixed = mix(mix(place.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ coordinate.offset.cast_unsigned());
    // One offset of 2⁶⁴ is mapped to 0.
    if mixed == NO_SUBJECT { 1 } else { mixed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::schema::Schema;
    use std::collections::HashSet;
    use std::path::Path;

    fn subjects(key: u8) -> Subjects {
        let text = "name = \"t\"\n[[attribute]]\nname = \"id\"\ntype = \"integer\"\nrole = \"subject\"\n";
        let schema = Schema::parse(text, "t.toml", Path::new("")).unwrap();
        Subjects::new(Arc::clone(&schema.attributes[0]), &DigestKey([key; 32]))
    }

    #[test]
    fn spellings_of_one_subject_are_one_digest() {
        let mut one = subjects(1);
        let digest = one.digest(Token::Untyped("7")).unwrap();
        assert_eq!(one.digest(Token::Number("7.0")).unwrap(), digest);
        assert_eq!(one.digest(Token::Untyped("7")).unwrap(), digest);
        assert_eq!(one.digest_canonical("7"), digest);
        for spelled in [Token::Untyped(" 7 "), Token::Number("7.0")] {
            assert_eq!(one.digest_once(spelled).unwrap(), digest);
        }
        assert!(one.digest_once(Token::Untyped("x")).is_err() && one.digest_once(Token::Structure("[7]")).is_err());
        assert_ne!(one.digest(Token::Untyped("8")).unwrap(), digest);
        assert_ne!(subjects(2).digest(Token::Untyped("7")).unwrap(), digest);
        for nobody in [Token::Absent, Token::Null, Token::Untyped("")] {
            assert_eq!(one.digest(nobody).unwrap(), NO_SUBJECT);
        }
        assert!(one.digest(Token::Untyped("x")).is_err());
    }

    #[test]
    fn a_structure_is_nobodys_name() {
        let text = "name = \"t\"\n[[attribute]]\nname = \"id\"\ntype = \"string\"\nrole = \"subject\"\n";
        let schema = Schema::parse(text, "t.toml", Path::new("")).unwrap();
        let mut subjects = Subjects::new(Arc::clone(&schema.attributes[0]), &DigestKey([1; 32]));
        for structure in ["[\"7\"]", "[\"07\"]", "{\"id\":7}", "[]"] {
            assert!(subjects.digest(Token::Structure(structure)).is_err(), "{structure}");
        }
        assert!(subjects.digest(Token::Text("[7]")).is_ok(), "a text is a text");
    }

    #[test]
    fn coordinates_are_different_subjects() {
        let mut seen = HashSet::new();
        for topic in 0..3 {
            for partition in 0..10 {
                for offset in 0..1_000 {
                    assert!(seen.insert(coordinate_subject(Coordinate { topic, partition, offset, element: 0 })));
                }
            }
        }
        assert!(!seen.contains(&NO_SUBJECT));
    }
}
