//! What signs certificates.

use super::digest::PolicyDigest;
use crate::certificates::key::SigningKey;
use crate::config::{Config, Problem};
use std::sync::Arc;

/// What signs certificates, and the policy that they name.
#[derive(Debug)]
pub struct Signer {
    /// The key.
    pub key: SigningKey,
    /// Digest of the policy in force, in lower-case hex.
    pub policy: String,
}

/// What signs the certificates of `config`, the file `file` in messages, under `policy`; none where none are written.
///
/// # Errors
/// When the key's file cannot be read, is open to everybody, or holds no key.
pub fn signer(config: &Config, policy: PolicyDigest, file: &str) -> Result<Option<Arc<Signer>>, Vec<Problem>> {
    let key = "certificates.key_file";
    let content = config.certificates.key().map_err(|error| {
        let remedy = "write a key there (`openssl genpkey -algorithm ed25519`), and `chmod 0640` or 0600 it";
        vec![Problem::new(file, key, error.to_string(), remedy)]
    })?;
    let Some(content) = content else { return Ok(None) };
    let signing = SigningKey::parse(&content).map_err(|error| {
        let remedy = "make one with `openssl genpkey -algorithm ed25519`";
        vec![Problem::new(file, key, error.to_string(), remedy)]
    })?;
    Ok(Some(Arc::new(Signer { key: signing, policy: policy.to_string() })))
}
