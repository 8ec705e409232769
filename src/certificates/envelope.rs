//! The signed form of a statement: a DSSE envelope (<https://github.com/secure-systems-lab/dsse>, version 1), one line of JSON.

use super::hex::hex;
use super::key::{PublicKey, SigningKey};
use super::statement::Statement;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a payload is.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// Bytes that a line may have: more is no certificate.
pub const LONGEST: usize = 1 << 20;

/// A payload and who has signed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    payload: String,
    #[serde(rename = "payloadType")]
    payload_type: String,
    signatures: Vec<Signature>,
}

/// A signature, and the key that it says it is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signature {
    keyid: String,
    sig: String,
}

/// What is signed: type and payload with their lengths (DSSE's pre-authentication encoding).
fn authenticated(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// A certificate that has been signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The envelope, without a line break. The same key and statement always give the same.
    pub line: Vec<u8>,
    /// SHA-256 of the statement's bytes: what the next certificate calls `previous`.
    pub digest: [u8; 32],
}

/// Signs a statement.
#[must_use]
pub fn sign(statement: &Statement, key: &SigningKey) -> Signed {
    let payload = serde_json::to_vec(statement).expect("texts and numbers always serialize");
    let signature = Signature { keyid: key.id().to_owned(), sig: STANDARD.encode(key.sign(&authenticated(&payload))) };
    let envelope = Envelope {
        payload: STANDARD.encode(&payload),
        payload_type: PAYLOAD_TYPE.to_owned(),
        signatures: vec![signature],
    };
    let line = serde_json::to_vec(&envelope).expect("texts always serialize");
    Signed { line, digest: Sha256::digest(&payload).into() }
}

/// Why a line is no certificate. No variant repeats any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum BadEnvelope {
    #[error("the line is no DSSE envelope of an in-toto statement")]
    Envelope,
    #[error("the payload is no statement of a release certificate of version 1")]
    Statement,
}

/// A certificate that has been read. Nothing of it is true before [`is_signed_by`](Self::is_signed_by) says so.
#[derive(Clone, Debug)]
pub struct Read {
    /// What it says.
    pub statement: Statement,
    /// SHA-256 of the statement's bytes, in lower-case hex.
    pub digest: String,
    payload: Vec<u8>,
    signatures: Vec<Vec<u8>>,
}

impl Read {
    /// Reads a line.
    ///
    /// # Errors
    /// [`BadEnvelope`].
    pub fn parse(line: &[u8]) -> Result<Self, BadEnvelope> {
        if line.len() > LONGEST {
            return Err(BadEnvelope::Envelope);
        }
        let envelope: Envelope = serde_json::from_slice(line).map_err(|_| BadEnvelope::Envelope)?;
        if envelope.payload_type != PAYLOAD_TYPE || envelope.signatures.is_empty() {
            return Err(BadEnvelope::Envelope);
        }
        let payload = STANDARD.decode(&envelope.payload).map_err(|_| BadEnvelope::Envelope)?;
        let signatures = envelope.signatures.iter().map(|signature| STANDARD.decode(&signature.sig));
        let signatures = signatures.collect::<Result<_, _>>().map_err(|_| BadEnvelope::Envelope)?;
        let statement: Statement = serde_json::from_slice(&payload).map_err(|_| BadEnvelope::Statement)?;
        if statement.kind != super::statement::STATEMENT || statement.predicate_type != super::statement::PREDICATE {
            return Err(BadEnvelope::Statement);
        }
        Ok(Self { statement, digest: hex(&Sha256::digest(&payload)), payload, signatures })
    }

    /// Whether one of `keys` has signed it. What the envelope calls the key is not believed: every key is tried.
    #[must_use]
    pub fn is_signed_by(&self, keys: &[PublicKey]) -> bool {
        let signed = authenticated(&self.payload);
        self.signatures.iter().any(|signature| keys.iter().any(|key| key.verifies(&signed, signature)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_what_dsse_says() {
        assert_eq!(authenticated(b"ab"), b"DSSEv1 28 application/vnd.in-toto+json 2 ab");
    }
}
