//! What instances must have in common to count for each other.

use crate::telemetry::ForeignReason;
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of one digest here: more than anybody can find two of.
const DIGEST: usize = 16;

/// What a release means, as digests: classes and people are counted under the same keys, values generalize alike, the lines go to
/// the same readers, and the same is promised of them. It is part of every sealed record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    digests: [u8; DIGEST],
    schema: [u8; DIGEST],
    outputs: [u8; DIGEST],
    policy: [u8; DIGEST],
}

fn digest(what: &str, bytes: &[u8]) -> [u8; DIGEST] {
    let hash = Sha256::new().chain_update(what.as_bytes()).chain_update([0]).chain_update(bytes).finalize();
    let mut short = [0; DIGEST];
    short.copy_from_slice(&hash[..DIGEST]);
    short
}

impl Terms {
    /// Length in bytes.
    pub const BYTES: usize = 4 * DIGEST;

    /// Terms of what names the keys of digests, of the fingerprint of the record schema, of where which groups leave to, and of the
    /// digest of the policy.
    #[must_use]
    pub fn new(digests: &[u8; 32], schema: &str, outputs: &str, policy: &[u8; 32]) -> Self {
        Self {
            digests: digest("digests", digests),
            schema: digest("schema", schema.as_bytes()),
            outputs: digest("outputs", outputs.as_bytes()),
            policy: digest("policy", policy),
        }
    }

    /// The same under another policy.
    #[must_use]
    pub fn with_policy(self, policy: &[u8; 32]) -> Self {
        Self { policy: digest("policy", policy), ..self }
    }

    /// Why `other` does not count here; none where it does. The most basic difference comes first.
    #[must_use]
    pub fn differs(&self, other: &Self) -> Option<ForeignReason> {
        let parts = [
            (self.digests == other.digests, ForeignReason::Digests),
            (self.schema == other.schema, ForeignReason::Schema),
            (self.outputs == other.outputs, ForeignReason::Outputs),
            (self.policy == other.policy, ForeignReason::Policy),
        ];
        parts.into_iter().find(|(same, _)| !same).map(|(_, reason)| reason)
    }

    /// As bytes, of which there are [`BYTES`](Self::BYTES).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.digests, self.schema, self.outputs, self.policy].concat()
    }

    /// `None` when `bytes` are too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let part = |at: usize| bytes.get(at * DIGEST..)?.first_chunk::<DIGEST>().copied();
        Some(Self { digests: part(0)?, schema: part(1)?, outputs: part(2)?, policy: part(3)? })
    }
}

/// The terms in force: the engine changes them with its policy, between two batches.
#[derive(Clone, Debug, Default)]
pub struct SharedTerms(Arc<Mutex<Terms>>);

impl SharedTerms {
    /// With these terms.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self(Arc::new(Mutex::new(terms)))
    }

    /// The terms now.
    #[must_use]
    pub fn now(&self) -> Terms {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another policy is in force from here on.
    pub fn put_policy(&self, policy: &[u8; 32]) {
        let mut terms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *terms = terms.with_policy(policy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_basic_difference_is_named() {
        let ours = Terms::new(&[1; 32], "schema", "topic out", &[2; 32]);
        assert_eq!(Terms::from_bytes(&ours.to_bytes()), Some(ours));
        assert_eq!((ours.to_bytes().len(), Terms::from_bytes(&ours.to_bytes()[1..])), (Terms::BYTES, None));
        assert_eq!(ours.differs(&ours), None);
        for (other, reason) in [
            (Terms::new(&[0; 32], "other", "topic out", &[2; 32]), ForeignReason::Digests),
            (Terms::new(&[1; 32], "other", "topic b", &[2; 32]), ForeignReason::Schema),
            (Terms::new(&[1; 32], "schema", "topic b", &[3; 32]), ForeignReason::Outputs),
            (ours.with_policy(&[3; 32]), ForeignReason::Policy),
        ] {
            assert_eq!(ours.differs(&other), Some(reason));
        }
        let shared = SharedTerms::new(ours);
        shared.put_policy(&[3; 32]);
        assert_eq!(shared.now(), ours.with_policy(&[3; 32]));
    }
}
