//! Keyed digests, stored instead of values and subjects.

use hmac::{Hmac, Mac};
use rand::TryRngCore;
use rand::rngs::OsRng;
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

/// Secret key. Without it, an attacker cannot try all values against a digest.
#[derive(Clone, Default)]
pub struct DigestKey(pub [u8; 32]);

impl DigestKey {
    /// Joins two digests.
    pub fn from_halves(one: u128, other: u128) -> Self {
        let mut key = Self::default();
        key.0[..16].copy_from_slice(&one.to_be_bytes());
        key.0[16..].copy_from_slice(&other.to_be_bytes());
        key
    }

    /// Derives a key that requires the complete `content`.
    pub fn from_content<'a>(content: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut key = ContentKey::default();
        content.for_each(|part| key.add(part));
        key.finish()
    }

    /// Returns the digest function; `prefix` without zero bytes.
    pub fn keyed_digest(&self, prefix: &str) -> KeyedDigest {
        KeyedDigest::new(self, prefix)
    }

    /// Creates a random key, so that no attacker can prepare collisions.
    ///
    /// # Errors
    /// Fails without randomness.
    pub fn random_key() -> Result<Self, std::io::Error> {
        let mut key = Self([0; 32]);
        OsRng.try_fill_bytes(&mut key.0).map_err(std::io::Error::other)?;
        Ok(key)
    }
}

/// Incremental form of [`DigestKey::from_content`].
#[derive(Clone, Default)]
pub struct ContentKey(Sha256);

impl ContentKey {
    /// Adds a part.
    pub fn add(&mut self, part: &[u8]) {
        self.0.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        self.0.update(part);
    }

    /// Returns the key.
    pub fn finish(self) -> DigestKey {
        DigestKey(self.0.finalize().into())
    }
}

impl std::fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DigestKey(…)")
    }
}

impl Drop for DigestKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Digests of configuration names.
#[derive(Clone, Debug)]
pub struct NameDigest(KeyedDigest);

impl NameDigest {
    /// Creates the digest function.
    pub fn new(key: &DigestKey) -> Self {
        Self(KeyedDigest::new(key, "throng name"))
    }

    /// Returns the digest.
    pub fn digest(&self, name: &str) -> u128 {
        self.0.digest(name.as_bytes())
    }
}

/// Returns the upper half of a coverage digest, for counting.
pub fn value_number(coverage: u128) -> u64 {
    (coverage >> 64) as u64
}

/// Hasher of class keys, which are uniform and secret sums of keyed digests.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassKeyHash(u64);

impl std::hash::Hasher for ClassKeyHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

/// Builder of [`ClassKeyHash`].
pub type BuildClassKeyHash = std::hash::BuildHasherDefault<ClassKeyHash>;

/// HMAC-SHA-256 with a fixed prefix.
#[derive(Clone)]
pub struct KeyedDigest(Hmac<Sha256>);

impl std::fmt::Debug for KeyedDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyed(…)")
    }
}

impl KeyedDigest {
    /// Creates the digest of `prefix ‖ 0 ‖ text`; `prefix` without zero bytes.
    pub fn new(key: &DigestKey, prefix: &str) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC takes keys of every length");
        mac.update(prefix.as_bytes());
        mac.update(&[0]);
        Self(mac)
    }

    /// Returns the first 128 bits, big-endian.
    pub fn digest(&self, text: &[u8]) -> u128 {
        let mut mac = self.0.clone();
        mac.update(text);
        let bytes = mac.finalize().into_bytes();
        bytes.iter().take(16).fold(0, |sum, &byte| sum << 8 | u128::from(byte))
    }
}

/// SplitMix64 finalizer \[SPL], a bijection.
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyed_digest_equals_python_hmac() {
        // Python: HMAC-SHA-256 of "a\0b" with a zero key.
        let digest = KeyedDigest::new(&DigestKey([0; 32]), "a").digest(b"b");
        assert_eq!(format!("{digest:032x}"), "5f4c8963bfc503bf0ef713905dd7bfdd");
    }

    #[test]
    fn digest_depends_on_key_and_debug_hides_it() {
        let (one, two) = (DigestKey([1; 32]), DigestKey([2; 32]));
        assert_ne!(KeyedDigest::new(&one, "a").digest(b"b"), KeyedDigest::new(&two, "a").digest(b"b"));
        assert_ne!(KeyedDigest::new(&one, "a").digest(b"b"), KeyedDigest::new(&one, "ab").digest(b""));
        assert!(!format!("{one:?}").contains('1'));
    }
}
