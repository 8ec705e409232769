//! Authenticated encryption of values that open only at the place they were sealed for.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rand::{RngCore, TryRngCore, rngs::OsRng};

/// Length of a nonce in bytes; a fresh random one precedes every sealed value.
const NONCE: usize = 24;

/// Seals values so that they open only at the place they were written to.
#[derive(Clone)]
pub struct Sealer(XChaCha20Poly1305);

impl Sealer {
    /// Seals under `key`.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(key.into()))
    }

    /// Encrypts `plain` under a fresh random nonce, which stands before the ciphertext. What was sealed for another
    /// place does not open at `place`.
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
    pub fn open(&self, place: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, body) = sealed.split_at_checked(NONCE)?;
        self.0.decrypt(XNonce::from_slice(nonce), Payload { msg: body, aad: place }).ok()
    }
}
