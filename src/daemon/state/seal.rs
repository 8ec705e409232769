//! Keys derived from the one secret, by which what goes to disk is sealed.

use hkdf::Hkdf;
use sha2::Sha256;
pub use throng_core::values::sealer::Sealer;
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
    seal: Zeroizing<[u8; 32]>,
}

impl Keys {
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
            seal: Zeroizing::new(key(b"seal")),
        }
    }

    /// Seals values for, and opens them at, their place.
    #[must_use]
    pub fn sealer(&self) -> Sealer {
        Sealer::new(&self.seal)
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
