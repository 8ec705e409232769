//! A table of security as properties of librdkafka.

use super::failure::KafkaFailure;
use crate::config::{AccessError, Mechanism, Protocol, Security};
use std::path::Path;
use zeroize::Zeroizing;

/// The properties of `security`, the table `table` in errors; the password is `known` where there is one.
///
/// # Errors
/// [`KafkaFailure::Secret`] when a file that opens something cannot be read.
pub(super) fn properties(
    security: &Security,
    table: &str,
    brokers: &str,
    known: Option<&Zeroizing<String>>,
) -> Result<Vec<(&'static str, Zeroizing<String>)>, KafkaFailure> {
    let failed = |key: &str, source: AccessError| {
        let (brokers, key) = (brokers.to_owned(), format!("{table}.{key}"));
        KafkaFailure::Secret { brokers, key, source }
    };
    if !security.is_given() {
        return Ok(Vec::new());
    }
    let text = |text: &str| Zeroizing::new(text.to_owned());
    let path = |path: &Path| Zeroizing::new(path.to_string_lossy().into_owned());
    let protocol = match security.protocol {
        Protocol::Plaintext => "plaintext",
        Protocol::Tls => "ssl",
        Protocol::SaslPlaintext => "sasl_plaintext",
        Protocol::SaslTls => "sasl_ssl",
    };
    let mut found = vec![("security.protocol", text(protocol))];
    if security.protocol.is_encrypted() {
        // Said, so that no other default of the client ever counts: the broker's name must be in its certificate.
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
            Mechanism::Plain => "PLAIN",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
            Mechanism::ScramSha512 => "SCRAM-SHA-512",
            Mechanism::Oauthbearer => "OAUTHBEARER",
        };
        found.push(("sasl.mechanism", text(name)));
        if mechanism.has_password() {
            found.push(("sasl.username", text(security.username.as_deref().unwrap_or_default())));
            let password = match security.password() {
                Ok(password) => password,
                // A file that is being replaced: what it held is still the password, as far as anybody knows.
                Err(_) if known.is_some() => known.cloned(),
                Err(source) => return Err(failed("password_file", source)),
            };
            found.extend(password.map(|password| ("sasl.password", password)));
        }
    }
    Ok(found)
}

/// The keys of the files that the words of a client that could not be made are about.
pub(super) fn files_meant(words: &str, table: &str) -> String {
    if words.contains("mismatch") || words.contains("Private key check failed") {
        return format!("{table}.certificate_file or {table}.key_file, which do not belong together");
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
    format!("{table}.{key}, which is no PEM file of certificates")
}
