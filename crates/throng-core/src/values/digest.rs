//! Keyed digests: what the ledger and the state keep instead of values and subjects.

use hmac::{Hmac, Mac};
use rand::TryRngCore;
use rand::rngs::OsRng;
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

/// The secret under which coverages and subjects are digested. An unkeyed hash of a birth date or a phone number is
/// undone by trying them all; without the key nobody can try.
#[derive(Clone, Default)]
pub struct DigestKey(pub [u8; 32]);

impl DigestKey {
    /// A key from two digests made under another.
    pub fn of_halves(one: u128, other: u128) -> Self {
        let mut key = Self::default();
        key.0[..16].copy_from_slice(&one.to_be_bytes());
        key.0[16..].copy_from_slice(&other.to_be_bytes());
        key
    }

    /// The key that `content` is: whoever does not have all of it does not have the key.
    pub fn of_content<'a>(content: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut key = ContentKey::default();
        content.for_each(|part| key.add(part));
        key.finish()
    }

    /// Digests under this key; the prefix must not contain a zero byte.
    pub fn keyed(&self, prefix: &str) -> Keyed {
        Keyed::new(self, prefix)
    }

    /// A key for one run, of which nothing stays: nobody can have prepared values whose digests collide under it.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn of_this_run() -> Result<Self, std::io::Error> {
        let mut key = Self([0; 32]);
        OsRng.try_fill_bytes(&mut key.0).map_err(std::io::Error::other)?;
        Ok(key)
    }
}

/// [`DigestKey::of_content`] of content that comes part by part.
#[derive(Clone, Default)]
pub struct ContentKey(Sha256);

impl ContentKey {
    /// Adds one part.
    pub fn add(&mut self, part: &[u8]) {
        self.0.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        self.0.update(part);
    }

    /// The key that all parts are.
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

/// Digests of names of the configuration: which attributes form a class.
#[derive(Clone, Debug)]
pub struct NameDigest(Keyed);

impl NameDigest {
    /// Digests under a key.
    pub fn new(key: &DigestKey) -> Self {
        Self(Keyed::new(key, "throng name"))
    }

    /// The digest of a name.
    pub fn digest(&self, name: &str) -> u128 {
        self.0.digest(name.as_bytes())
    }
}

/// The number of a value where values are counted: half of the digest of its coverage.
pub fn value_number(coverage: u128) -> u64 {
    (coverage >> 64) as u64
}

/// Hashes class keys by taking their low half: they are sums of keyed digests, uniform already, and nobody without the key
/// can choose them.
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

/// Builds [`ClassKeyHash`].
pub type BuildClassKeyHash = std::hash::BuildHasherDefault<ClassKeyHash>;

/// HMAC-SHA-256 with a fixed prefix absorbed once.
#[derive(Clone)]
pub struct Keyed(Hmac<Sha256>);

impl std::fmt::Debug for Keyed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyed(…)")
    }
}

impl Keyed {
    /// Digests of `prefix ‖ 0 ‖ text`; the prefix must not contain a zero byte, so that nothing can be shifted.
    pub fn new(key: &DigestKey, prefix: &str) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC takes keys of every length");
        mac.update(prefix.as_bytes());
        mac.update(&[0]);
        Self(mac)
    }

    /// The first 128 bits, big-endian.
    pub fn digest(&self, text: &[u8]) -> u128 {
        let mut mac = self.0.clone();
        mac.update(text);
        let bytes = mac.finalize().into_bytes();
        bytes.iter().take(16).fold(0, |sum, &byte| sum << 8 | u128::from(byte))
    }
}

/// The finalizer of SplitMix64 [SPL]: a bijection that spreads every bit.
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_known_answer() {
        // HMAC-SHA-256 with a key of zeros over "a\0b", computed with Python's hmac module.
        let digest = Keyed::new(&DigestKey([0; 32]), "a").digest(b"b");
        assert_eq!(format!("{digest:032x}"), "5f4c8963bfc503bf0ef713905dd7bfdd");
    }

    #[test]
    fn the_key_decides_and_is_not_shown() {
        let (one, two) = (DigestKey([1; 32]), DigestKey([2; 32]));
        assert_ne!(Keyed::new(&one, "a").digest(b"b"), Keyed::new(&two, "a").digest(b"b"));
        assert_ne!(Keyed::new(&one, "a").digest(b"b"), Keyed::new(&one, "ab").digest(b""));
        assert!(!format!("{one:?}").contains('1'));
    }
}
