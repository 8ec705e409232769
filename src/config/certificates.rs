//! `[certificates]`: signed statements of what has left.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::access::{AccessError, guarded};

/// Signed statements of what each committed batch was: counts, crowds and digests, no value. Written only where `key_file` is set;
/// `throng verify-release --certificates` checks them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Certificates {
    /// A file with the private Ed25519 key that signs: PKCS#8 as PEM (`openssl genpkey -algorithm ed25519`), or its 32 bytes as 64 hex
    /// digits. It may be readable by owner and group only.
    #[schemars(example = &"secret/certificates.pem")]
    pub key_file: Option<PathBuf>,
    /// The compacted Kafka topic of certificates, where the sink is a topic. Each is a record of partition 0 in its batch's own transaction, under
    /// the instance and the number of the batch as its key.
    #[schemars(example = &"throng.audit")]
    pub topic: String,
    /// The file of certificates (NDJSON), where the sink is a file. Required there with `key_file`.
    #[schemars(example = &"out/certificates.ndjson")]
    pub path: Option<PathBuf>,
}

impl Default for Certificates {
    fn default() -> Self {
        Self { key_file: None, topic: "throng.audit".into(), path: None }
    }
}

impl Certificates {
    /// Whether certificates are written.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.key_file.is_some()
    }

    /// The content of the key's file, where one is configured.
    ///
    /// # Errors
    /// When it cannot be read or is open to everybody.
    pub fn key(&self) -> Result<Option<Zeroizing<Vec<u8>>>, AccessError> {
        let Some(path) = &self.key_file else { return Ok(None) };
        guarded(path)?;
        let bytes = std::fs::read(path).map_err(|error| AccessError::Unreadable(error.kind()))?;
        Ok(Some(Zeroizing::new(bytes)))
    }
}
