//! Keys derived from the one secret, by which what goes to disk is sealed.

pub use crate::records::sealer::Sealer;
use hkdf::Hkdf;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// The independent keys that one secret stands for.
pub struct Keys {
    /// Keys the digests of subjects.
    pub subjects: [u8; 32],
    /// Keys the digests of classes and coverages.
    pub classes: [u8; 32],
    /// Keys delays, windows and the choice among a subject's records.
    pub repetition: [u8; 32],
    /// Tells a wrong secret from a right one.
    pub check: [u8; 32],
    /// Keys the draws by which pages round their figures.
    pub pages: [u8; 32],
    /// Keys the check of an archive of the whole state.
    pub archive: [u8; 32],
    /// Seals the deltas of a ledger that instances share.
    pub shared: Zeroizing<[u8; 32]>,
    /// Names the records of a state in a topic, and seals them.
    pub followed: (Zeroizing<[u8; 32]>, Zeroizing<[u8; 32]>),
    /// Seals records that instances hand each other.
    pub residue: Zeroizing<[u8; 32]>,
    seal: Zeroizing<[u8; 32]>,
}

/// The keys that stay when the secret is exchanged: whatever they have made is known under it.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct LastingKeys {
    subjects: [u8; 32],
    classes: [u8; 32],
    repetition: [u8; 32],
    pages: [u8; 32],
}

impl Keys {
    /// The keys that stay when the secret is exchanged.
    #[must_use]
    pub fn lasting(&self) -> LastingKeys {
        let Self { subjects, classes, repetition, pages, .. } = *self;
        LastingKeys { subjects, classes, repetition, pages }
    }

    /// These keys, with those of an earlier secret that stay.
    #[must_use]
    pub fn with(self, lasting: LastingKeys) -> Self {
        let LastingKeys { subjects, classes, repetition, pages } = lasting;
        Self { subjects, classes, repetition, pages, ..self }
    }

    /// Derives the keys with HKDF-SHA-256.
    #[must_use]
    pub fn derive(secret: &[u8]) -> Self {
        let hkdf = Hkdf::<Sha256>::new(Some(b"throng state v1"), secret);
        let key = |purpose: &[u8]| {
            let mut out = [0u8; 32];
            hkdf.expand(purpose, &mut out).expect("32 bytes are far below the limit of HKDF");
            out
        };
        Self {
            subjects: key(b"subjects"),
            classes: key(b"classes"),
            repetition: key(b"repetition"),
            check: key(b"check"),
            pages: key(b"pages"),
            archive: key(b"archive"),
            shared: Zeroizing::new(key(b"shared ledger")),
            followed: (Zeroizing::new(key(b"state topic names")), Zeroizing::new(key(b"state topic"))),
            residue: Zeroizing::new(key(b"residue")),
            seal: Zeroizing::new(key(b"seal")),
        }
    }

    /// Seals values for, and opens them at, their place.
    #[must_use]
    pub fn sealer(&self) -> Sealer {
        Sealer::new(&self.seal)
    }

    /// Names the keys of digests without telling them: two instances with the same name know a person, and a class, under
    /// the same digest. It is shown to nobody who does not have the secret.
    #[must_use]
    pub fn name_of_digests(&self) -> [u8; 32] {
        Sha256::new()
            .chain_update(b"throng digests 1")
            .chain_update(self.subjects)
            .chain_update(self.classes)
            .finalize()
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_opens_only_where_it_was_sealed_and_with_its_secret() {
        let sealer = Keys::derive(b"a secret").sealer();
        let sealed = sealer.seal(b"here", b"canary");
        assert_eq!(sealer.open(b"here", &sealed).as_deref(), Some(&b"canary"[..]));
        assert_eq!(sealer.open(b"there", &sealed), None);
        assert_eq!(Keys::derive(b"another").sealer().open(b"here", &sealed), None);
        assert!(!sealed.windows(6).any(|w| w == b"canary"));
        let mut torn = sealed;
        torn.pop();
        assert_eq!(sealer.open(b"here", &torn), None);
        assert_eq!(sealer.open(b"here", b"short"), None);
    }

    #[test]
    fn purposes_do_not_share_a_key() {
        let keys = Keys::derive(b"a secret");
        assert_ne!(keys.subjects, keys.classes);
        assert_ne!(keys.subjects, keys.check);
    }
}
