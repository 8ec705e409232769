//! What a topic has of a state, as one number: who reads the topic and finds another one has not found all of it, or something else.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A value of the state, sealed as it is on the disk, for the topic that the state follows its instance in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// The number of its tree.
    pub tree: u8,
    /// Its key there.
    pub key: Vec<u8>,
    /// None where it is gone.
    pub value: Option<Vec<u8>>,
    /// Records of the value before that the topic may have.
    pub parts: u32,
    /// The [digest](digest_of) of the value before that the topic has; none where it has none.
    pub had: Option<u128>,
}

/// The digest of a sealed value at its place.
///
/// It is not keyed: what is sealed was sealed with the secret and a nonce of its own, so nobody without the secret who sees the topic knows
/// what it is the digest of, or finds other values with the same sum.
#[must_use]
pub fn digest_of(tree: u8, key: &[u8], sealed: &[u8]) -> u128 {
    let hash = Sha256::new().chain_update([tree]).chain_update((key.len() as u64).to_be_bytes());
    let hash = hash.chain_update(key).chain_update(sealed).finalize();
    hash.first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes))
}

/// The sum of the digests of all values, in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeptSum(pub u128);

impl KeptSum {
    /// The sum when the topic has taken `change`.
    #[must_use]
    pub fn with(self, change: &StateChange) -> Self {
        let Self(sum) = self;
        let now = change.value.as_ref().map_or(0, |value| digest_of(change.tree, &change.key, value));
        Self(sum.wrapping_sub(change.had.unwrap_or(0)).wrapping_add(now))
    }

    /// The sum of `values`, of which the topic had nothing before.
    #[must_use]
    pub fn of(values: &[StateChange]) -> Self {
        values.iter().fold(Self::default(), Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(key: &str, value: Option<&str>, had: Option<&str>) -> StateChange {
        let digest = |value: &str| digest_of(1, key.as_bytes(), value.as_bytes());
        let (key, value) = (key.as_bytes().to_vec(), value.map(|value| value.as_bytes().to_vec()));
        StateChange { tree: 1, key, value, parts: 0, had: had.map(digest) }
    }

    #[test]
    fn what_is_left_counts_and_the_order_does_not() {
        let (a, b) = (change("a", Some("1"), None), change("b", Some("2"), None));
        let both = KeptSum::of(&[a.clone(), b.clone()]);
        assert_eq!(KeptSum::of(&[b.clone(), a.clone()]), both);
        let over = both.with(&change("a", Some("3"), Some("1"))).with(&change("c", Some("4"), None));
        assert_eq!(over.with(&change("c", None, Some("4"))).with(&change("a", Some("1"), Some("3"))), both);
        assert_eq!(both.with(&change("b", None, Some("2"))), KeptSum::of(std::slice::from_ref(&a)));
        assert_eq!(both.with(&change("c", None, None)), both, "of what the topic never had nothing goes");
        for other in [vec![a.clone()], vec![a.clone(), a.clone()], vec![change("a", Some("2"), None), b], Vec::new()] {
            assert_ne!(KeptSum::of(&other), both, "{other:?}");
        }
        assert_ne!(digest_of(1, b"ab", b"c"), digest_of(1, b"a", b"bc"));
        assert_ne!(digest_of(1, b"a", b"b"), digest_of(2, b"a", b"b"));
    }
}
