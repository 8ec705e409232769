//! `[registry]`: where the schemas of records are kept.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::access::{AccessError, secret_text};

/// A schema registry with the REST interface of Confluent's (Karapace and Apicurio have it too).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Registry {
    /// The registry's address. Without one, Avro and Protobuf records are plain: read under `source.writer_schema`, and written without the number of a schema.
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
}

impl Registry {
    /// The user's password, where one is configured.
    ///
    /// # Errors
    /// When its file cannot be read, is empty, or is open to everybody.
    pub fn password(&self) -> Result<Option<Zeroizing<String>>, AccessError> {
        self.password_file.as_deref().map(secret_text).transpose()
    }
}
