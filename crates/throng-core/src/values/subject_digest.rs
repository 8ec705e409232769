//! Subjects as keyed digests.

use std::sync::Arc;

use crate::values::canonical::{CanonicalKind, CellError};
use crate::values::digest::{DigestKey, KeyedDigest, mix};
use crate::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use crate::values::schema::Attribute;
use crate::values::token_cache::TokenCache;

/// Digest without a subject; supports no class.
pub const NO_SUBJECT: u64 = 0;

const MAX_CACHED_SUBJECTS: usize = 1 << 17;

/// Writes the canonical name into `text`. Returns false if absent, null, empty or missing.
///
/// # Errors
/// Fails for the wrong type, arrays and objects.
pub fn canonical_name(attribute: &Attribute, token: RawToken<'_>, text: &mut String) -> Result<bool, CellError> {
    text.clear();
    match token {
        RawToken::Absent | RawToken::Null => Ok(false),
        RawToken::Structure(_) => Err(attribute.typing.type_error("an array or an object")),
        token => Ok(attribute.typing.canonical(token, text)? == CanonicalKind::Value && text != "\"\""),
    }
}

/// Digester of subjects: 64 bits of HMAC-SHA-256, never [`NO_SUBJECT`].
#[derive(Clone, Debug)]
pub struct SubjectDigester {
    attribute: Arc<Attribute>,
    keyed: KeyedDigest,
    cache: TokenCache<u64>,
}

impl SubjectDigester {
    /// Creates the digester of an attribute.
    pub fn new(attribute: Arc<Attribute>, secret: &DigestKey) -> Self {
        let keyed = KeyedDigest::new(secret, "throng subject");
        Self { attribute, keyed, cache: TokenCache::new(MAX_CACHED_SUBJECTS) }
    }

    /// Returns the digest of a token; [`NO_SUBJECT`] without a name.
    ///
    /// # Errors
    /// Fails for the wrong type, arrays and objects, which can spell one name in many ways.
    pub fn digest(&mut self, token: RawToken<'_>) -> Result<u64, CellError> {
        if let Some(known) = self.cache.get(&token) {
            return Ok(known);
        }
        let digest = self.digest_uncached(token)?;
        self.cache.insert(&token, digest);
        Ok(digest)
    }

    /// Returns the digest without caching the name.
    ///
    /// # Errors
    /// Fails like [`digest`](Self::digest).
    pub fn digest_uncached(&self, token: RawToken<'_>) -> Result<u64, CellError> {
        let mut text = String::new();
        let is_named = canonical_name(&self.attribute, token, &mut text)?;
        Ok(if is_named { self.digest_canonical(&text) } else { NO_SUBJECT })
    }

    /// Returns the digest of a canonical text.
    pub fn digest_canonical(&self, canonical: &str) -> u64 {
        ((self.keyed.digest(canonical.as_bytes()) >> 64) as u64).max(1)
    }

    /// Appends one subject per row; cells of the wrong type are listed in `failures`.
    pub fn digest_column(
        &mut self,
        batch: &RawBatch,
        attribute: usize,
        out: &mut Vec<u64>,
        failures: &mut Vec<(u32, CellError)>,
    ) {
        let mut last = Ok(NO_SUBJECT);
        for row in 0..batch.rows() {
            if row == 0 || !batch.repeats_previous(row, attribute) {
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

/// Returns the hash of a position, as subject of the whole message; offsets of a partition do not collide.
pub fn coordinate_subject(coordinate: RecordPosition) -> u64 {
    let place = u64::from(coordinate.topic) << 32 | u64::from(coordinate.partition.cast_unsigned());
    let mixed = mix(mix(place.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ coordinate.offset.cast_unsigned());
    if mixed == NO_SUBJECT { 1 } else { mixed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::schema::Schema;
    use std::collections::HashSet;
    use std::path::Path;

    fn subjects(key: u8) -> SubjectDigester {
        let text = "name = \"t\"\n[[attribute]]\nname = \"id\"\ntype = \"integer\"\nrole = \"subject\"\n";
        let schema = Schema::parse(text, "t.toml", Path::new("")).unwrap();
        SubjectDigester::new(Arc::clone(&schema.attributes[0]), &DigestKey([key; 32]))
    }

    #[test]
    fn subject_spellings_have_one_digest() {
        let mut one = subjects(1);
        let digest = one.digest(RawToken::Untyped("7")).unwrap();
        assert_eq!(one.digest(RawToken::Number("7.0")).unwrap(), digest);
        assert_eq!(one.digest(RawToken::Untyped("7")).unwrap(), digest);
        assert_eq!(one.digest_canonical("7"), digest);
        for spelled in [RawToken::Untyped(" 7 "), RawToken::Number("7.0")] {
            assert_eq!(one.digest_uncached(spelled).unwrap(), digest);
        }
        assert!(
            one.digest_uncached(RawToken::Untyped("x")).is_err()
                && one.digest_uncached(RawToken::Structure("[7]")).is_err()
        );
        assert_ne!(one.digest(RawToken::Untyped("8")).unwrap(), digest);
        assert_ne!(subjects(2).digest(RawToken::Untyped("7")).unwrap(), digest);
        for nobody in [RawToken::Absent, RawToken::Null, RawToken::Untyped("")] {
            assert_eq!(one.digest(nobody).unwrap(), NO_SUBJECT);
        }
        assert!(one.digest(RawToken::Untyped("x")).is_err());
    }

    #[test]
    fn structure_as_subject_name_is_refused() {
        let text = "name = \"t\"\n[[attribute]]\nname = \"id\"\ntype = \"string\"\nrole = \"subject\"\n";
        let schema = Schema::parse(text, "t.toml", Path::new("")).unwrap();
        let mut subjects = SubjectDigester::new(Arc::clone(&schema.attributes[0]), &DigestKey([1; 32]));
        for structure in ["[\"7\"]", "[\"07\"]", "{\"id\":7}", "[]"] {
            assert!(subjects.digest(RawToken::Structure(structure)).is_err(), "{structure}");
        }
        assert!(subjects.digest(RawToken::Text("[7]")).is_ok(), "a text is a text");
    }

    #[test]
    fn record_positions_have_distinct_subjects() {
        let mut seen = HashSet::new();
        for topic in 0..3 {
            for partition in 0..10 {
                for offset in 0..1_000 {
                    assert!(seen.insert(coordinate_subject(RecordPosition { topic, partition, offset, element: 0 })));
                }
            }
        }
        assert!(!seen.contains(&NO_SUBJECT));
    }
}
