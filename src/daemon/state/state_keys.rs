//! Keys derived from the secret, for all data on disk.

use hkdf::Hkdf;
use sha2::Sha256;
pub use throng_core::values::sealer::Sealer;
use zeroize::Zeroizing;

/// Independent keys of one secret.
pub struct StateKeys {
    /// Key of subject digests.
    pub subjects: [u8; 32],
    /// Key of class and coverage digests.
    pub classes: [u8; 32],
    /// Key for delays, windows and the choice of records.
    pub repetition: [u8; 32],
    /// Check value against a wrong secret.
    pub check: [u8; 32],
    /// Key for the draws that round numbers on pages.
    pub pages: [u8; 32],
    seal: Zeroizing<[u8; 32]>,
}

impl StateKeys {
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

    /// Returns a sealer, which binds values to their database key.
    #[must_use]
    pub fn sealer(&self) -> Sealer {
        Sealer::new(&self.seal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_value_opens_only_at_its_key_with_its_secret() {
        let sealer = StateKeys::derive(b"a secret").sealer();
        let sealed = sealer.seal(b"here", b"canary");
        assert_eq!(sealer.open(b"here", &sealed).as_deref(), Some(&b"canary"[..]));
        assert_eq!(sealer.open(b"there", &sealed), None);
        assert_eq!(StateKeys::derive(b"another").sealer().open(b"here", &sealed), None);
        assert!(!sealed.windows(6).any(|w| w == b"canary"));
        let mut torn = sealed;
        torn.pop();
        assert_eq!(sealer.open(b"here", &torn), None);
        assert_eq!(sealer.open(b"here", b"short"), None);
    }

    #[test]
    fn derived_keys_differ_by_purpose() {
        let keys = StateKeys::derive(b"a secret");
        assert_ne!(keys.subjects, keys.classes);
        assert_ne!(keys.subjects, keys.check);
    }
}
