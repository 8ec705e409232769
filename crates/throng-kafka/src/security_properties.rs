//! librdkafka properties of a security table.

use super::failure::KafkaFailure;
use crate::secret_file::AccessError;
use crate::security::{BrokerProtocol, SaslMechanism, SecurityConfig};
use std::path::Path;
use zeroize::Zeroizing;

/// `table` appears in errors; `known` replaces an unreadable password.
pub(super) fn librdkafka_properties(
    security: &SecurityConfig,
    table: &str,
    brokers: &str,
    known: Option<&Zeroizing<String>>,
) -> Result<Vec<(&'static str, Zeroizing<String>)>, KafkaFailure> {
    let failed = |key: &str, source: AccessError| {
        let (brokers, key) = (brokers.to_owned(), format!("{table}.{key}"));
        KafkaFailure::Secret { brokers, key, source }
    };
    if !security.is_configured() {
        return Ok(Vec::new());
    }
    let text = |text: &str| Zeroizing::new(text.to_owned());
    let path = |path: &Path| Zeroizing::new(path.to_string_lossy().into_owned());
    let protocol = match security.protocol {
        BrokerProtocol::Plaintext => "plaintext",
        BrokerProtocol::Tls => "ssl",
        BrokerProtocol::SaslPlaintext => "sasl_plaintext",
        BrokerProtocol::SaslTls => "sasl_ssl",
    };
    let mut found = vec![("security.protocol", text(protocol))];
    if security.protocol.is_encrypted() {
        // Explicit: the certificate must contain the broker's name.
        found.push(("ssl.endpoint.identification.algorithm", text("https")));
        found.push(("enable.ssl.certificate.verification", text("true")));
        let files = [
            ("ssl.ca.location", &security.ca_file),
            ("ssl.certificate.location", &security.certificate_file),
            ("ssl.key.location", &security.key_file),
        ];
        found.extend(files.into_iter().filter_map(|(name, file)| Some((name, path(file.as_deref()?)))));
    }
    if let Some(mechanism) = security.mechanism {
        let name = match mechanism {
            SaslMechanism::Plain => "PLAIN",
            SaslMechanism::ScramSha256 => "SCRAM-SHA-256",
            SaslMechanism::ScramSha512 => "SCRAM-SHA-512",
            SaslMechanism::Oauthbearer => "OAUTHBEARER",
        };
        found.push(("sasl.mechanism", text(name)));
        if mechanism.has_password() {
            found.push(("sasl.username", text(security.username.as_deref().unwrap_or_default())));
            let password = match security.password() {
                Ok(password) => password,
                Err(_) if known.is_some() => known.cloned(),
                Err(source) => return Err(failed("password_file", source)),
            };
            found.extend(password.map(|password| ("sasl.password", password)));
        }
    }
    Ok(found)
}

pub(super) fn affected_file_keys(words: &str, table: &str) -> String {
    if words.contains("mismatch") || words.contains("Private key check failed") {
        return format!("{table}.certificate_file or {table}.key_file, which do not match");
    }
    let key = if words.contains("ssl.ca.location") || words.contains("ssl_ca") {
        "ca_file"
    } else if words.contains("ssl.certificate.location") || words.contains("ssl_cert") {
        "certificate_file"
    } else if words.contains("ssl.key.location") || words.contains("ssl_key") {
        return format!("{table}.key_file, which must be a PEM file of a key without a password");
    } else {
        return format!("the files of {table}");
    };
    format!("{table}.{key}, which is not a PEM file of certificates")
}
