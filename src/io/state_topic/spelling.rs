//! A value of a state as records of its topic.
//!
//! The key of a record is the group and the name of the instance, the generation, a keyed digest of where the value belongs, and the number of the
//! part: whoever has no secret learns how many values there are and how often each changes, and not which they are. The
//! body is sealed for that key.

use crate::records::sealer::Sealer;
use crate::release::kept_sum::StateChange;
use crate::release::sink::{STATE_PART, parts_of};
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Bytes of a digest: more than anybody can find two of.
const DIGEST: usize = 16;
/// Bytes of a key behind the name: generation, digest, part.
const PLACE: usize = 8 + DIGEST + 4;

/// How the values of one instance are spelled.
#[derive(Clone)]
pub struct Spelling {
    /// The group, and the name of the instance in it.
    name: String,
    instance: String,
    names: Zeroizing<[u8; 32]>,
    sealer: Sealer,
}

/// A record of the topic, tombstones without a body.
pub type Record = (Vec<u8>, Option<Vec<u8>>);

/// What a key of ours says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The copy that the value is part of.
    pub generation: u64,
    /// Of which value.
    pub digest: [u8; DIGEST],
    /// Its number among the records of the value.
    pub part: u32,
}

/// What a record holds.
#[derive(Serialize, Deserialize)]
pub struct Body {
    /// The tree of the value.
    pub tree: u8,
    /// Its key.
    pub key: Vec<u8>,
    /// Records of the value.
    pub parts: u32,
    /// This part of it.
    pub bytes: Vec<u8>,
}

impl Spelling {
    /// The spelling of `instance` of `group`; `names` and `seal` are keys of its secret.
    #[must_use]
    pub fn new(group: &str, instance: &str, names: &[u8; 32], seal: &[u8; 32]) -> Self {
        let name = format!("{group}/{instance}");
        Self { name, instance: instance.to_owned(), names: Zeroizing::new(*names), sealer: Sealer::new(seal) }
    }

    /// The name of the instance.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// The partition of the instance, in a topic of so many.
    #[must_use]
    pub fn partition(&self, partitions: i32) -> i32 {
        let hash = Sha256::digest(self.name.as_bytes());
        let number = hash.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        i32::try_from(i64::from(number) % i64::from(partitions.max(1))).unwrap_or(0)
    }

    fn key(&self, generation: u64, tree: u8, key: &[u8], part: u32) -> Vec<u8> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.names[..]).expect("HMAC takes keys of any length");
        mac.update(self.name.as_bytes());
        mac.update(&[0, tree]);
        // Else who reads the topic sees which values a copy behind an erasure has no more.
        mac.update(&generation.to_be_bytes());
        mac.update(key);
        let mut digest = [0; DIGEST];
        digest.copy_from_slice(&mac.finalize().into_bytes()[..DIGEST]);
        self.key_of(&Place { generation, digest, part })
    }

    /// The records that `change` is told by in `generation`, those that go among them.
    #[must_use]
    pub fn spell(&self, generation: u64, change: &StateChange) -> Vec<Record> {
        let StateChange { tree, key, value, parts: before, .. } = change;
        let parts = value.as_ref().map_or(0, |value| parts_of(value.len()));
        let mut records = Vec::new();
        let value = value.as_deref().unwrap_or_default();
        for part in 0..parts {
            let from = part as usize * STATE_PART;
            let bytes = value[from..value.len().min(from + STATE_PART)].to_vec();
            let body = Body { tree: *tree, key: key.clone(), parts, bytes };
            let plain = postcard::to_stdvec(&body).expect("plain values always serialize");
            let place = self.key(generation, *tree, key, part);
            let sealed = self.sealer.seal(&place, &plain);
            records.push((place, Some(sealed)));
        }
        records.extend((parts..*before).map(|part| (self.key(generation, *tree, key, part), None)));
        records
    }

    /// The key that says `place`.
    #[must_use]
    pub fn key_of(&self, place: &Place) -> Vec<u8> {
        let Place { generation, digest, part } = place;
        [self.name.as_bytes(), b"/", &generation.to_be_bytes(), digest, &part.to_be_bytes()].concat()
    }

    /// What a key says; none where it is not ours.
    #[must_use]
    pub fn place(&self, key: &[u8]) -> Option<Place> {
        let rest = key.strip_prefix(self.name.as_bytes())?.strip_prefix(b"/").filter(|r| r.len() == PLACE)?;
        Some(Place {
            generation: u64::from_be_bytes(rest[..8].try_into().ok()?),
            digest: rest[8..8 + DIGEST].try_into().ok()?,
            part: u32::from_be_bytes(rest[8 + DIGEST..].try_into().ok()?),
        })
    }

    /// What a record holds; none where it was not sealed for its key by this secret.
    #[must_use]
    pub fn open(&self, key: &[u8], sealed: &[u8]) -> Option<Body> {
        postcard::from_bytes(&self.sealer.open(key, sealed)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_and_tells_nothing_on_its_way() {
        let spelling = Spelling::new("group", "throng-0", &[1; 32], &[2; 32]);
        let long = vec![7; STATE_PART + 1];
        let change =
            StateChange { tree: 1, key: b"canary-key".to_vec(), value: Some(long.clone()), parts: 4, had: None };
        let records = spelling.spell(9, &change);
        assert_eq!(records.len(), 4, "two parts, and two that go");
        let mut found = Vec::new();
        for (at, (key, body)) in records.iter().enumerate() {
            let place = spelling.place(key).expect("ours");
            assert_eq!((place.generation, place.part as usize), (9, at));
            assert!(!key.windows(6).any(|w| w == b"canary"));
            let Some(body) = body else { continue };
            assert!(!body.windows(6).any(|w| w == b"canary"));
            let opened = spelling.open(key, body).expect("sealed for its place");
            assert_eq!((opened.tree, opened.key.as_slice(), opened.parts), (1, &b"canary-key"[..], 2));
            found.extend(opened.bytes);
            assert!(spelling.open(&records[1 - at].0, body).is_none(), "not elsewhere");
        }
        assert_eq!(found, long);
        assert!(records[2..].iter().all(|(_, body)| body.is_none()));
        assert!(
            Spelling::new("group", "throng", &[1; 32], &[2; 32]).place(&records[0].0).is_none(),
            "another instance"
        );
        let gone = StateChange { value: None, parts: 1, ..change };
        assert_eq!(spelling.spell(9, &gone), [(records[0].0.clone(), None)]);
        assert!((0..5).contains(&spelling.partition(5)) && spelling.partition(1) == 0);
    }
}
