//! Keys of Ed25519: one that signs, from a file that nobody else may read, and those that check.

use super::hex::{bytes_of, hex};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use sha2::{Digest, Sha256};
use std::fmt;
use zeroize::Zeroizing;

/// What stands before the 32 bytes of a public key in its DER (RFC 8410).
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Why a text is no key. No variant repeats any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum BadKey {
    #[error("it holds no private key of Ed25519, neither as PEM (PKCS#8) nor as 64 hex digits")]
    Private,
    #[error("it holds no public key of Ed25519, neither as PEM nor as 64 hex digits")]
    Public,
}

/// The DER of the one PEM block called `label`; none where there is no such block.
fn der(text: &str, label: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let body = text.split_once(&begin)?.1.split_once(&end)?.0;
    let body: Zeroizing<String> = Zeroizing::new(body.split_ascii_whitespace().collect());
    STANDARD.decode(body.as_bytes()).ok().map(Zeroizing::new)
}

/// How a public key is called in envelopes: SHA-256 of its DER (`openssl pkey -pubin -outform DER | sha256sum`).
fn id_of(public: &[u8]) -> String {
    hex(&Sha256::digest([&SPKI[..], public].concat()))
}

/// A key that signs. Debug prints its public name alone.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    id: String,
}

impl SigningKey {
    /// The key in the content of a file: PKCS#8 as PEM, or its 32 bytes as hex.
    ///
    /// # Errors
    /// [`BadKey::Private`].
    pub fn parse(content: &[u8]) -> Result<Self, BadKey> {
        let text = std::str::from_utf8(content).map_err(|_| BadKey::Private)?.trim();
        let pair = if let Some(seed) = bytes_of(text).map(Zeroizing::new) {
            Ed25519KeyPair::from_seed_unchecked(&*seed)
        } else {
            let der = der(text, "PRIVATE KEY").ok_or(BadKey::Private)?;
            // What OpenSSL writes has no public key beside the private one.
            Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
        };
        let pair = pair.map_err(|_| BadKey::Private)?;
        let id = id_of(pair.public_key().as_ref());
        Ok(Self { pair, id })
    }

    /// The name of its public half.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// 64 bytes; the same for the same message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.id)
    }
}

/// A key that checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key in the content of a file: PEM as OpenSSL writes it, or its 32 bytes as hex.
    ///
    /// # Errors
    /// [`BadKey::Public`].
    pub fn parse(content: &[u8]) -> Result<Self, BadKey> {
        let text = std::str::from_utf8(content).map_err(|_| BadKey::Public)?.trim();
        if let Some(bytes) = bytes_of(text) {
            return Ok(Self(bytes));
        }
        let der = der(text, "PUBLIC KEY").ok_or(BadKey::Public)?;
        let bytes = der.strip_prefix(&SPKI[..]).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(BadKey::Public)
    }

    /// Whether the key's owner has signed `message`.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, section 7.1, test 2.
    const SEED: &str = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
    const PUBLIC: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    const SIGNATURE: &str = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

    /// RFC 8410, section 10.3 and 10.1.
    const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    const PUBLIC_PEM: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

    #[test]
    fn signatures_are_those_of_the_standard() {
        let key = SigningKey::parse(SEED.as_bytes()).expect("a key");
        assert_eq!(hex(&key.sign(&[0x72])), SIGNATURE);
        let public = PublicKey::parse(PUBLIC.as_bytes()).expect("a key");
        assert!(public.verifies(&[0x72], &key.sign(&[0x72])) && !public.verifies(&[0x73], &key.sign(&[0x72])));
    }

    #[test]
    fn pem_is_read_and_anything_else_is_refused_without_quoting_it() {
        let key = SigningKey::parse(PEM.as_bytes()).expect("a key");
        let public = PublicKey::parse(PUBLIC_PEM.as_bytes()).expect("a key");
        assert!(public.verifies(b"a", &key.sign(b"a")));
        assert_eq!(key.id(), id_of(&public.0));
        let cut = PEM.replace("VhC", "VhD!");
        for text in ["", "canary", &SEED[1..], PUBLIC_PEM, &cut, "-----BEGIN PRIVATE KEY-----\ncanary"] {
            let error = SigningKey::parse(text.as_bytes()).expect_err("no key");
            assert!(!error.to_string().contains("canary"));
        }
        for text in ["", PEM, &PUBLIC[1..], "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"] {
            assert_eq!(PublicKey::parse(text.as_bytes()), Err(BadKey::Public));
        }
        assert!(!format!("{key:?}").contains(PEM), "a key is not printed");
    }
}
