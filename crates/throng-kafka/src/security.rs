//! Settings of credentials and authorities of a connection.

use crate::secret_file::{AccessError, secret_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Protection of the connection to a broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BrokerProtocol {
    /// No protection: any host on the network path can read and change the traffic.
    #[default]
    Plaintext,
    /// TLS; with `certificate_file` and `key_file` also client authentication (mutual TLS).
    Tls,
    /// SASL without encryption: only for a trusted network.
    SaslPlaintext,
    /// SASL inside TLS.
    SaslTls,
}

impl BrokerProtocol {
    /// Returns true for an encrypted connection.
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::Tls | Self::SaslTls)
    }

    /// Returns true for authentication by SASL.
    pub fn is_sasl(self) -> bool {
        matches!(self, Self::SaslPlaintext | Self::SaslTls)
    }
}

/// SASL mechanism of client authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SaslMechanism {
    /// User and password in clear text: only inside TLS.
    Plain,
    /// A proof of the password, by SHA-256.
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
    /// A proof of the password, by SHA-512.
    #[serde(rename = "scram-sha-512")]
    ScramSha512,
    /// A token of an identity provider (`source.security.oauth`).
    Oauthbearer,
}

impl SaslMechanism {
    /// Returns true if the mechanism needs a password.
    pub fn has_password(self) -> bool {
        matches!(self, Self::Plain | Self::ScramSha256 | Self::ScramSha512)
    }
}

/// Sets the credentials for the brokers, and the authorities that authenticate them. Files are read again when they
/// change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SecurityConfig {
    /// Selects `plaintext`, `tls`, `sasl_plaintext` or `sasl_tls`.
    #[cfg_attr(feature = "schemars", schemars(example = BrokerProtocol::SaslTls))]
    pub protocol: BrokerProtocol,
    /// Sets a PEM file of the authorities for the brokers, instead of those of the system.
    #[cfg_attr(feature = "schemars", schemars(example = &"secret/ca.pem"))]
    pub ca_file: Option<PathBuf>,
    /// Sets the client certificate, as PEM, with the intermediate certificates: for brokers that require one.
    #[cfg_attr(feature = "schemars", schemars(example = &"secret/throng.crt"))]
    pub certificate_file: Option<PathBuf>,
    /// Sets the private key of `certificate_file`, as PEM, without a password. It may be readable by owner and group
    /// only.
    #[cfg_attr(feature = "schemars", schemars(example = &"secret/throng.key"))]
    pub key_file: Option<PathBuf>,
    /// Selects the SASL mechanism. Required with `sasl_plaintext` and `sasl_tls`.
    #[cfg_attr(feature = "schemars", schemars(example = SaslMechanism::ScramSha512))]
    pub mechanism: Option<SaslMechanism>,
    /// Sets the user of `plain` and `scram-…`.
    #[cfg_attr(feature = "schemars", schemars(example = &"throng"))]
    pub username: Option<String>,
    /// Sets the file that contains the user's password (a last newline is not part of it). It may be readable by
    /// owner and group only. The daemon detects a change while it runs.
    #[cfg_attr(feature = "schemars", schemars(example = &"secret/kafka.password"))]
    pub password_file: Option<PathBuf>,
    /// Sets the source of the token for `oauthbearer`.
    pub oauth: OauthConfig,
}

/// Sets the source of the token for `oauthbearer`: an endpoint, or a file that another process renews.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct OauthConfig {
    /// Sets the address of the identity provider that issues tokens for `client_credentials`: `https`, or `http` on
    /// this machine.
    #[cfg_attr(feature = "schemars", schemars(example = &"https://id.example/realms/kafka/protocol/openid-connect/token"))]
    pub token_endpoint: Option<String>,
    /// Sets the client name at the identity provider.
    #[cfg_attr(feature = "schemars", schemars(example = &"throng"))]
    pub client_id: Option<String>,
    /// Sets the file that contains the client's secret (a last newline is not part of it). It may be readable by
    /// owner and group only.
    #[cfg_attr(feature = "schemars", schemars(example = &"secret/client.secret"))]
    pub client_secret_file: Option<PathBuf>,
    /// Sets the requested scope.
    #[cfg_attr(feature = "schemars", schemars(example = &"kafka"))]
    pub scope: Option<String>,
    /// Sets a PEM file of the authorities for the identity provider, instead of the public ones.
    #[cfg_attr(feature = "schemars", schemars(example = &"secret/ca.pem"))]
    pub ca_file: Option<PathBuf>,
    /// Sets a file that contains the token and that another process renews (a projected token of Kubernetes), instead
    /// of an endpoint.
    #[cfg_attr(feature = "schemars", schemars(example = &"var/run/secrets/kafka/token"))]
    pub token_file: Option<PathBuf>,
    /// Sends these extensions with the token; names are letters (`logicalCluster`, `identityPoolId`).
    #[cfg_attr(feature = "schemars", schemars(example = BTreeMap::from([("logicalCluster", "lkc-1")])))]
    pub extensions: BTreeMap<String, String>,
}

impl SecurityConfig {
    /// Reads the user's current password; `None` if not configured.
    ///
    /// # Errors
    /// If the file is unreadable, empty, or open to other users.
    pub fn password(&self) -> Result<Option<Zeroizing<String>>, AccessError> {
        self.password_file.as_deref().map(secret_text).transpose()
    }

    /// Returns true if any key differs from its default.
    pub fn is_configured(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the configured files with their keys below the table.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let OauthConfig { client_secret_file, ca_file: of_provider, token_file, .. } = &self.oauth;
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

impl OauthConfig {
    /// Reads the client's current secret; `None` if not configured.
    ///
    /// # Errors
    /// If the file is unreadable, empty, or open to other users.
    pub fn client_secret(&self) -> Result<Option<Zeroizing<String>>, AccessError> {
        self.client_secret_file.as_deref().map(secret_text).transpose()
    }
}
