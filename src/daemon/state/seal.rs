//! Keys derived from the one secret, and authenticated encryption of what goes to disk.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use rand::{RngCore, TryRngCore, rngs::OsRng};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Length of a nonce in bytes; a fresh random one precedes every sealed value.
const NONCE: usize = 24;

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
            seal: Zeroizing::new(key(b"seal")),
        }
    }

    /// Seals values for, and opens them at, their place.
    #[must_use]
    pub fn sealer(&self) -> Sealer {
        Sealer(XChaCha20Poly1305::new((&*self.seal).into()))
    }
}

/// Seals values so that they open only at the place they were written to.
#[derive(Clone)]
pub struct Sealer(XChaCha20Poly1305);

impl Sealer {
    /// Encrypts `plain` under a fresh random nonce, which stands before the ciphertext. What was sealed for another
    /// place does not open at `place`.
    #[must_use]
    pub fn seal(&self, place: &[u8], plain: &[u8]) -> Vec<u8> {
        let mut nonce = [0u8; NONCE];
        OsRng.unwrap_err().fill_bytes(&mut nonce);
        let sealed = self
            .0
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: plain, aad: place })
            .expect("a value in memory is far below the cipher's limit");
        let mut out = nonce.to_vec();
        out.extend_from_slice(&sealed);
        out
    }

    /// `None` when the bytes were not sealed with this key for this place.
    #[must_use]
    pub fn open(&self, place: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, body) = sealed.split_at_checked(NONCE)?;
        self.0.decrypt(XNonce::from_slice(nonce), Payload { msg: body, aad: place }).ok()
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
