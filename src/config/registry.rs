//! `[registry]`: where the schemas of records are kept.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::{AccessError, guarded};
use super::quantity;

/// A schema registry with the REST interface of Confluent's (Karapace and Apicurio have it too).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Registry {
    /// The registry's address. Without one, Avro and Protobuf records are plain, and written under `source.writer_schema`.
    #[schemars(example = &"http://registry:8081")]
    pub url: Option<String>,
    /// The user of HTTP's basic authentication.
    #[schemars(example = &"throng")]
    pub user: Option<String>,
    /// A file whose content is the user's password (a last newline is not part of it). It may be readable by owner and group
    /// only.
    #[schemars(example = &"secret/registry.password")]
    pub password_file: Option<PathBuf>,
    /// A PEM file of the authorities that may vouch for an `https` registry, instead of the public ones.
    #[schemars(example = &"secret/ca.pem")]
    pub ca_file: Option<PathBuf>,
    /// How long one question may take. A registry that does not answer holds up the records whose schema it has to give.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"5s")]
    pub timeout: Duration,
}

impl Default for Registry {
    fn default() -> Self {
        Self { url: None, user: None, password_file: None, ca_file: None, timeout: Duration::from_secs(5) }
    }
}

impl Registry {
    /// The user's password, where one is configured.
    ///
    /// # Errors
    /// When its file cannot be read or is open to everybody.
    pub fn password(&self) -> Result<Option<zeroize::Zeroizing<String>>, AccessError> {
        let Some(path) = &self.password_file else { return Ok(None) };
        guarded(path)?;
        let text = std::fs::read_to_string(path).map_err(|error| AccessError::Unreadable(error.kind()))?;
        let mut text = zeroize::Zeroizing::new(text);
        let length = text.trim_end_matches(['\r', '\n']).len();
        text.truncate(length);
        Ok(Some(text))
    }
}
