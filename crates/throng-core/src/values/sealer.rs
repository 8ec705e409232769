//! Authenticated encryption of values that can be decrypted only for the place for which they were sealed.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rand::{RngCore, TryRngCore, rngs::OsRng};

/// Length of a nonce in bytes; a new random nonce precedes every sealed value.
const NONCE_BYTES: usize = 24;

/// Seals values with XChaCha20-Poly1305; the place is authenticated data.
#[derive(Clone)]
pub struct Sealer(XChaCha20Poly1305);

impl Sealer {
    /// Creates a sealer with `key`.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(key.into()))
    }

    /// Encrypts `plain` under a new random nonce, which precedes the ciphertext. The result can be opened only with
    /// the same `place`.
    pub fn seal(&self, place: &[u8], plain: &[u8]) -> Vec<u8> {
        let mut nonce = [0u8; NONCE_BYTES];
        OsRng.unwrap_err().fill_bytes(&mut nonce);
        let sealed = self
            .0
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: plain, aad: place })
            .expect("a value in memory is far below the cipher's limit");
        let mut out = nonce.to_vec();
        out.extend_from_slice(&sealed);
        out
    }

    /// Decrypts a value; `None` if it was not sealed with this key for this place.
    pub fn open(&self, place: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, body) = sealed.split_at_checked(NONCE_BYTES)?;
        self.0.decrypt(XNonce::from_slice(nonce), Payload { msg: body, aad: place }).ok()
    }
}
