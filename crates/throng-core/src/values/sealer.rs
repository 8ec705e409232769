//! Authenticated encryption.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rand::{RngCore, TryRngCore, rngs::OsRng};

const NONCE_BYTES: usize = 24;

/// XChaCha20-Poly1305 with the place as authenticated data.
#[derive(Clone)]
pub struct Sealer(XChaCha20Poly1305);

impl Sealer {
    /// Creates a sealer.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(key.into()))
    }

    /// Encrypts under a new random nonce, which precedes the ciphertext.
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

    /// Decrypts a value; none for another key or place.
    pub fn open(&self, place: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, body) = sealed.split_at_checked(NONCE_BYTES)?;
        self.0.decrypt(XNonce::from_slice(nonce), Payload { msg: body, aad: place }).ok()
    }
}
