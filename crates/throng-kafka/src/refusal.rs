//! Refusals, classified from error texts that may quote hosts and settings.

use crate::security::{SaslMechanism, SecurityConfig};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use serde::{Deserialize, Serialize};

/// Reason of a failed authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SecurityRefusal {
    /// The listener uses another protocol.
    #[serde(rename = "protocol")]
    Protocol,
    /// The broker's certificate is not trusted.
    #[serde(rename = "broker_certificate")]
    BrokerCertificate,
    /// The client certificate is missing or refused.
    #[serde(rename = "our_certificate")]
    OurCertificate,
    /// Mechanism, password or token is refused.
    #[serde(rename = "authentication")]
    Authentication,
    /// No token is available.
    #[serde(rename = "no_token")]
    NoToken,
}

impl SecurityRefusal {
    /// Returns the label of metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Protocol => "protocol",
            Self::BrokerCertificate => "broker_certificate",
            Self::OurCertificate => "our_certificate",
            Self::Authentication => "authentication",
            Self::NoToken => "no_token",
        }
    }
}

impl std::fmt::Display for SecurityRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Cause of a refused connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionRefusal {
    /// The listener uses another protocol.
    Protocol,
    /// No known authority has signed the broker's certificate.
    UnknownAuthority,
    /// The broker's certificate has another host name.
    OtherName,
    /// The broker's certificate has expired.
    Expired,
    /// The broker's certificate is not valid yet.
    NotYetValid,
    /// The broker's certificate is rejected for another reason.
    Certificate,
    /// The client certificate is missing or rejected.
    OurCertificate,
    /// The listener does not offer the configured mechanism.
    Mechanism,
    /// The user name or the password is wrong.
    Password,
    /// The broker rejects the token.
    Token,
    /// The identity provider rejects the client.
    Provider,
    /// No valid token is available.
    NoToken,
}

impl ConnectionRefusal {
    /// Classifies an error text of a client.
    pub fn of(error: &KafkaError, words: &str, security: &SecurityConfig) -> Option<Self> {
        let has = |part: &str| words.contains(part);
        // TLS 1.3 rejects a client certificate after the handshake.
        if has("certificate required") || has(" alert ") && (has("certificate") || has("unknown ca")) {
            return Some(Self::OurCertificate);
        }
        if has("certificate verify failed") || has("Failed to verify broker certificate") {
            return Some(Self::Certificate);
        }
        if has("wrong version number")
            || has("packet length too long")
            || has("connecting to a PLAINTEXT broker listener?")
        {
            return Some(Self::Protocol);
        }
        if has("incorrect security.protocol configuration") || has("broker might require SASL authentication") {
            return Some(Self::Protocol);
        }
        if has("handshake failure") || has("alert number") {
            return Some(Self::OurCertificate);
        }
        // Interrupted authentication: nothing was refused.
        if has("failed: Local:") {
            return None;
        }
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::Authentication | RDKafkaErrorCode::SaslAuthenticationFailed) => {}
            Some(RDKafkaErrorCode::UnsupportedSASLMechanism) => return Some(Self::Mechanism),
            Some(RDKafkaErrorCode::SSL) => return Some(Self::Certificate),
            _ => return None,
        }
        // Some listeners report this only in the text.
        if has("nsupported") && has("mechanism") || has("mechanism not supported") || has("UnsupportedSaslMechanism") {
            return Some(Self::Mechanism);
        }
        match security.mechanism {
            Some(SaslMechanism::Oauthbearer) => Some(Self::Token),
            _ => Some(Self::Password),
        }
    }

    /// Returns the label for metrics and pages.
    pub fn label(self) -> SecurityRefusal {
        match self {
            Self::Protocol => SecurityRefusal::Protocol,
            Self::UnknownAuthority | Self::OtherName | Self::Expired | Self::NotYetValid | Self::Certificate => {
                SecurityRefusal::BrokerCertificate
            }
            Self::OurCertificate => SecurityRefusal::OurCertificate,
            Self::Mechanism | Self::Password | Self::Token => SecurityRefusal::Authentication,
            Self::Provider | Self::NoToken => SecurityRefusal::NoToken,
        }
    }

    /// Returns true if waiting may help.
    pub fn is_temporary(self) -> bool {
        self == Self::NoToken
    }

    /// Returns cause and remedy for the configuration table `table`.
    pub fn remedy_message(self, table: &str, security: &SecurityConfig) -> String {
        let t = table;
        match self {
            Self::Protocol => format!(
                "the listener uses a different protocol than configured: set {t}.protocol, or correct the port"
            ),
            Self::UnknownAuthority => format!(
                "the broker's certificate is not signed by a known authority: name the authority's file in {t}.ca_file"
            ),
            Self::OtherName => {
                "the broker's certificate is for another host name: use the host names in the certificates (source.brokers, advertised.listeners)"
                    .to_owned()
            }
            Self::Expired => "the broker's certificate has expired: renew it on the broker".to_owned(),
            Self::NotYetValid => {
                "the broker's certificate is not valid yet: correct the clock of this machine, or the certificate".to_owned()
            }
            Self::Certificate => {
                format!("the broker's certificate cannot be verified: correct {t}.ca_file, or the certificate")
            }
            Self::OurCertificate if security.certificate_file.is_some() => format!(
                "the broker rejects our certificate: check that {t}.certificate_file has not expired, and that the broker knows its authority"
            ),
            Self::OurCertificate => {
                format!("the broker requires a client certificate: set {t}.certificate_file and {t}.key_file")
            }
            Self::Mechanism => format!("the listener does not offer this mechanism: set {t}.mechanism to one that it offers"),
            Self::Password => {
                format!("the broker rejects user and password: correct {t}.username and {t}.password_file")
            }
            Self::Token => format!(
                "the broker rejects the token: correct {t}.oauth.scope, and the audience and issuer that the broker expects"
            ),
            Self::Provider => format!(
                "the identity provider refuses a token: correct {t}.oauth.client_id, {t}.oauth.client_secret_file and {t}.oauth.scope"
            ),
            Self::NoToken if security.oauth.token_file.is_some() => {
                format!("{t}.oauth.token_file has no token that is still valid: check that it is renewed")
            }
            Self::NoToken => format!(
                "no token received from the identity provider: check that it is up, and that {t}.oauth.token_endpoint and {t}.oauth.ca_file are right"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_error_texts_map_to_refusals() {
        let code = |code| KafkaError::Global(code);
        let (ssl, transport, login) =
            (RDKafkaErrorCode::SSL, RDKafkaErrorCode::BrokerTransportFailure, RDKafkaErrorCode::Authentication);
        for (error, words, expected) in [
            (
                code(ssl),
                "ssl://h:1/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: broker certificate could not be verified, verify that ssl.ca.location is correctly configured",
                Some(ConnectionRefusal::Certificate),
            ),
            (
                code(transport),
                "ssl://h:1/1: Receive failed: SSL routines::tlsv13 alert certificate required: SSL alert number 116",
                Some(ConnectionRefusal::OurCertificate),
            ),
            (
                code(transport),
                "h:1/bootstrap: Disconnected while requesting ApiVersion: might be caused by incorrect security.protocol configuration (connecting to a SSL listener?) or broker version is < 0.10",
                Some(ConnectionRefusal::Protocol),
            ),
            (
                code(ssl),
                "ssl://h:1: SSL handshake failed: error:0A00010B:SSL routines::wrong version number",
                Some(ConnectionRefusal::Protocol),
            ),
            (
                code(login),
                "sasl_ssl://h:1: SASL authentication error: Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256",
                Some(ConnectionRefusal::Password),
            ),
            (
                code(login),
                "sasl_ssl://h:1/1: SASL PLAIN mechanism handshake failed: Local: Broker handle destroyed: broker's supported mechanisms: ",
                None,
            ),
            (
                code(login),
                "sasl_ssl://h:1/1: SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: broker's supported mechanisms: OAUTHBEARER",
                Some(ConnectionRefusal::Mechanism),
            ),
            (code(transport), "h:1/bootstrap: Connect to ipv4#h:1 failed: Connection refused", None),
        ] {
            assert_eq!(ConnectionRefusal::of(&error, words, &SecurityConfig::default()), expected, "{words}");
        }
    }
}
