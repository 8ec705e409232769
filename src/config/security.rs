//! `[source.security]`: credentials for the brokers, and the authorities that vouch for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::access::{AccessError, secret_text};

/// How the connection to a broker is protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Not at all: everybody on the way reads and changes what passes.
    #[default]
    Plaintext,
    /// TLS; with `certificate_file` and `key_file` we prove who we are by it (mutual TLS).
    Tls,
    /// SASL without encryption: for a network that nobody listens to.
    SaslPlaintext,
    /// SASL inside TLS.
    SaslTls,
}

impl Protocol {
    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::Tls | Self::SaslTls)
    }

    /// Whether we say by SASL who we are.
    #[must_use]
    pub fn is_sasl(self) -> bool {
        matches!(self, Self::SaslPlaintext | Self::SaslTls)
    }
}

/// How we say who we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// User and password as they are: only inside TLS.
    Plain,
    /// A proof of the password, by SHA-256.
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
    /// The same by SHA-512.
    #[serde(rename = "scram-sha-512")]
    ScramSha512,
    /// A token of an identity provider (`security.oauth`).
    Oauthbearer,
}

impl Mechanism {
    /// Whether it takes a user and a password.
    #[must_use]
    pub fn has_password(self) -> bool {
        matches!(self, Self::Plain | Self::ScramSha256 | Self::ScramSha512)
    }
}

/// Who we are to the brokers, and how we know them. Files are read again when they change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Security {
    /// `plaintext`, `tls`, `sasl_plaintext` or `sasl_tls`.
    #[schemars(example = Protocol::SaslTls)]
    pub protocol: Protocol,
    /// A PEM file of the authorities that may vouch for the brokers, instead of those of the system.
    #[schemars(example = &"secret/ca.pem")]
    pub ca_file: Option<PathBuf>,
    /// Our certificate, PEM, with those between it and the authority: for brokers that ask for one.
    #[schemars(example = &"secret/throng.crt")]
    pub certificate_file: Option<PathBuf>,
    /// The private key of `certificate_file`, PEM, without a password. It may be readable by owner and group only.
    #[schemars(example = &"secret/throng.key")]
    pub key_file: Option<PathBuf>,
    /// The mechanism of SASL. Required with `sasl_plaintext` and `sasl_tls`.
    #[schemars(example = Mechanism::ScramSha512)]
    pub mechanism: Option<Mechanism>,
    /// The user of `plain` and `scram-…`.
    #[schemars(example = &"throng")]
    pub username: Option<String>,
    /// A file whose content is the user's password (a last newline is not part of it). It may be readable by owner and group only.
    /// A change is taken while the daemon runs.
    #[schemars(example = &"secret/kafka.password")]
    pub password_file: Option<PathBuf>,
    /// Where the token of `oauthbearer` comes from.
    pub oauth: Oauth,
}

/// Where the token of `oauthbearer` comes from: an endpoint that is asked, or a file that somebody else renews.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Oauth {
    /// The address of the identity provider that gives tokens for `client_credentials`: `https`, or `http` on this machine.
    #[schemars(example = &"https://id.example/realms/kafka/protocol/openid-connect/token")]
    pub token_endpoint: Option<String>,
    /// Who we are to the identity provider.
    #[schemars(example = &"throng")]
    pub client_id: Option<String>,
    /// A file whose content is the client's secret (a last newline is not part of it). It may be readable by owner and group only.
    #[schemars(example = &"secret/client.secret")]
    pub client_secret_file: Option<PathBuf>,
    /// The scope that is asked for.
    #[schemars(example = &"kafka")]
    pub scope: Option<String>,
    /// A PEM file of the authorities that may vouch for the identity provider, instead of the public ones.
    #[schemars(example = &"secret/ca.pem")]
    pub ca_file: Option<PathBuf>,
    /// A file that holds the token and that somebody else renews (a projected token of Kubernetes), instead of an endpoint.
    #[schemars(example = &"var/run/secrets/kafka/token")]
    pub token_file: Option<PathBuf>,
    /// Extensions that go along with the token; names are letters (`logicalCluster`, `identityPoolId`).
    #[schemars(example = BTreeMap::from([("logicalCluster", "lkc-1")]))]
    pub extensions: BTreeMap<String, String>,
}

impl Security {
    /// The user's password as it is now; none where none is configured.
    ///
    /// # Errors
    /// When its file cannot be read, is empty, or is open to everybody.
    pub fn password(&self) -> Result<Option<Zeroizing<String>>, AccessError> {
        self.password_file.as_deref().map(secret_text).transpose()
    }

    /// Whether anything is configured.
    #[must_use]
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }

    /// The files that it names, by their keys below the table.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let Oauth { client_secret_file, ca_file: of_provider, token_file, .. } = &self.oauth;
        let files = [
            ("ca_file", &self.ca_file),
            ("certificate_file", &self.certificate_file),
            ("key_file", &self.key_file),
            ("password_file", &self.password_file),
            ("oauth.client_secret_file", client_secret_file),
            ("oauth.ca_file", of_provider),
            ("oauth.token_file", token_file),
        ];
        files.into_iter().filter_map(|(key, path)| Some((key, path.as_deref()?)))
    }
}

impl Oauth {
    /// The client's secret as it is now; none where none is configured.
    ///
    /// # Errors
    /// When its file cannot be read, is empty, or is open to everybody.
    pub fn client_secret(&self) -> Result<Option<Zeroizing<String>>, AccessError> {
        self.client_secret_file.as_deref().map(secret_text).transpose()
    }
}
