//! `[source.security]`: credentials and authorities of the brokers.

use super::problem::ProblemCollector;
use super::{ConfigProblem, KafkaProperties, TelemetryConfig};
use throng_kafka::secret_file::{AccessError, check_permissions};
pub use throng_kafka::security::{BrokerProtocol, OauthConfig, SaslMechanism, SecurityConfig};

/// Properties that remain available: each value is safe.
const ALLOWED_PROPERTIES: [&str; 5] =
    ["ssl.cipher.suites", "ssl.curves.list", "ssl.sigalgs.list", "ssl.crl.location", "ssl.providers"];

const REPLACED_PREFIXES: [&str; 5] = ["security.protocol", "ssl.", "sasl.", "enable.ssl.", "enable.sasl."];

fn replacement_key(property: &str) -> &'static str {
    match property {
        "security.protocol" => "protocol",
        "ssl.ca.location" | "ssl.ca.pem" | "enable.ssl.certificate.verification" => "ca_file",
        "ssl.certificate.location" | "ssl.certificate.pem" | "ssl.keystore.location" => "certificate_file",
        "ssl.key.location" | "ssl.key.pem" | "ssl.key.password" | "ssl.keystore.password" => "key_file",
        "sasl.mechanism" | "sasl.mechanisms" => "mechanism",
        "sasl.username" => "username",
        "sasl.password" => "password_file",
        property if property.starts_with("sasl.oauthbearer.") => "oauth",
        _ => "protocol",
    }
}

/// Checks `[source.security]` and the librdkafka properties.
pub(super) fn check_security(
    security: &SecurityConfig,
    uses_kafka: bool,
    properties: [(&str, &KafkaProperties); 2],
    found: &mut ProblemCollector,
) {
    found.require(
        uses_kafka || !security.is_configured(),
        "source.security",
        "no topic is read or written",
        "remove it",
    );
    check_security_table("source.security", security, found);
    for (section, properties) in properties {
        refuse_replaced_properties(section, security, properties, found);
    }
}

fn is_encrypted_or_local(address: &str) -> bool {
    let host = |rest: &str| {
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        let name = host.rsplit_once(':').map_or(host, |(name, port)| if port.ends_with(']') { host } else { name });
        matches!(name, "localhost" | "127.0.0.1" | "[::1]")
    };
    address.strip_prefix("https://").is_some_and(|rest| !rest.is_empty())
        || address.strip_prefix("http://").is_some_and(host)
}

fn check_security_table(name: &str, security: &SecurityConfig, found: &mut ProblemCollector) {
    let mut unless = |fulfilled: bool, key: &str, message: &str, remedy: &str| {
        found.require(fulfilled, &format!("{name}.{key}"), message, remedy);
    };
    let SecurityConfig { protocol, oauth, .. } = security;
    for (key, path) in security.files() {
        unless(!path.as_os_str().is_empty(), key, "no file is named", "name a file, or remove the key");
    }
    let tls = [
        ("ca_file", &security.ca_file),
        ("certificate_file", &security.certificate_file),
        ("key_file", &security.key_file),
    ];
    for (key, path) in tls {
        let used = path.is_none() || protocol.is_encrypted();
        unless(used, key, "the connection is not encrypted", "set protocol = \"tls\" or \"sasl_tls\"");
    }
    let both = security.certificate_file.is_some() == security.key_file.is_some();
    unless(both, "certificate_file", "a certificate and its key must be set together", "name both files, or none");
    let said = security.mechanism.is_some();
    if protocol.is_sasl() {
        unless(said, "mechanism", "SASL requires a mechanism", "set \"scram-sha-512\", for example");
    } else {
        unless(!said, "mechanism", "a mechanism requires SASL", "set protocol = \"sasl_tls\"");
    }
    let has_password = security.mechanism.is_some_and(SaslMechanism::has_password);
    let user = security.username.as_deref().is_some_and(|name| !name.is_empty());
    let given = security.password_file.is_some();
    if has_password {
        unless(user, "username", "no user is named", "name a user that the brokers know");
        unless(given, "password_file", "the user has no password", "name a file that holds it, mode 0600");
    } else {
        let none = security.username.is_none() && !given;
        let remedy = "set mechanism = \"plain\", \"scram-sha-256\" or \"scram-sha-512\"";
        unless(none, "username", "this mechanism does not use a user and password", remedy);
    }
    let open = *protocol == BrokerProtocol::SaslPlaintext
        && matches!(security.mechanism, Some(SaslMechanism::Plain | SaslMechanism::Oauthbearer));
    let message = "an eavesdropper would learn the password or the token";
    unless(!open, "protocol", message, "set \"sasl_tls\", or a mechanism that does not send it (\"scram-sha-512\")");

    let by_token = security.mechanism == Some(SaslMechanism::Oauthbearer);
    let some = *oauth != OauthConfig::default();
    unless(by_token || !some, "oauth", "only valid for tokens", "set mechanism = \"oauthbearer\", or remove them");
    if by_token {
        let one = oauth.token_endpoint.is_some() != oauth.token_file.is_some();
        let remedy = "give the URL of the token endpoint, or the file that contains a token";
        unless(one, "oauth.token_endpoint", "a token comes from an endpoint or from a file", remedy);
        let safe = oauth.token_endpoint.as_deref().is_none_or(is_encrypted_or_local);
        let remedy = "give https://…; http only on this machine";
        unless(safe, "oauth.token_endpoint", "an eavesdropper would learn the client's secret", remedy);
        let secret = oauth.token_endpoint.as_deref().is_none_or(|address| !address.contains('@'));
        let remedy = "set client_id and client_secret_file";
        unless(secret, "oauth.token_endpoint", "the URL must not contain a user and password", remedy);
        let secret = oauth.client_secret_file.is_some();
        if oauth.token_endpoint.is_some() {
            let named = oauth.client_id.as_deref().is_some_and(|id| !id.is_empty());
            unless(named, "oauth.client_id", "no client is named", "give the client id of the identity provider");
            let remedy = "name a file that holds it, mode 0600";
            unless(secret, "oauth.client_secret_file", "the client has no secret", remedy);
        } else {
            let asked = oauth.client_id.is_some() || oauth.scope.is_some() || secret || oauth.ca_file.is_some();
            let message = "these keys are for an endpoint, but the token is in a file";
            unless(!asked, "oauth.token_file", message, "remove client_id, client_secret_file, scope and ca_file");
        }
        for name in oauth.extensions.keys() {
            let legal = !name.is_empty() && name != "auth" && name.bytes().all(|b| b.is_ascii_alphabetic());
            let key = format!("oauth.extensions.{name}");
            unless(legal, &key, "invalid extension name", "use only letters, and not \"auth\"");
        }
    }
}

fn refuse_replaced_properties(
    section: &str,
    security: &SecurityConfig,
    properties: &KafkaProperties,
    found: &mut ProblemCollector,
) {
    let taken = |property: &str| {
        REPLACED_PREFIXES.iter().any(|start| property.starts_with(start)) && !ALLOWED_PROPERTIES.contains(&property)
    };
    for (property, _) in properties.iter().filter(|(property, _)| security.is_configured() && taken(property)) {
        let key = format!("{section}.librdkafka.{property}");
        let remedy = format!("remove it, and set source.security.{}", replacement_key(property));
        found.require(false, &key, "already set by [source.security]", &remedy);
    }
}

pub(super) fn security_file_flaws(security: &SecurityConfig) -> Vec<SecretFileFlaw> {
    let secret = "write it to the file, and set the mode of the file to 0640 or 0600";
    let readable = |key: &str| {
        let path = security.files().find(|(named, _)| *named == key).map(|(_, path)| path);
        path.map_or(Ok(()), |path| std::fs::File::open(path).map(drop).map_err(|e| AccessError::Unreadable(e.kind())))
    };
    let pem = "name a PEM file that this process may read";
    let checked = [
        ("ca_file", readable("ca_file"), pem),
        ("certificate_file", readable("certificate_file"), pem),
        ("key_file", security.key_file.as_deref().map_or(Ok(()), check_permissions), secret),
        ("password_file", security.password().map(drop), secret),
        ("oauth.client_secret_file", security.oauth.client_secret().map(drop), secret),
        ("oauth.ca_file", readable("oauth.ca_file"), pem),
    ];
    checked.into_iter().filter_map(|(key, checked, remedy)| Some((key, checked.err()?, remedy))).collect()
}

/// Returns problems of the secret files of pages and brokers, except `oauth.token_file`, which another process may
/// create later.
pub(super) fn secret_file_problems(
    telemetry: &TelemetryConfig,
    security: &SecurityConfig,
    file: &str,
) -> Vec<ConfigProblem> {
    let guarding =
        page_file_flaws(telemetry).into_iter().map(|(key, error, remedy)| (format!("telemetry.{key}"), error, remedy));
    let security = security_file_flaws(security).into_iter();
    let security = security.map(|(key, error, remedy)| (format!("source.security.{key}"), error, remedy));
    guarding
        .chain(security)
        .map(|(key, error, remedy)| ConfigProblem::new(file, key, error.to_string(), remedy))
        .collect()
}

/// Key, error and remedy.
type SecretFileFlaw = (&'static str, AccessError, &'static str);

pub(super) fn page_file_flaws(telemetry: &TelemetryConfig) -> Vec<SecretFileFlaw> {
    let token = telemetry
        .token()
        .err()
        .map(|error| ("token_file", error, "write a random token to the file, and set its mode to 0640 or 0600"));
    let key = telemetry.tls.key_file.as_deref().and_then(|path| check_permissions(path).err());
    let key =
        key.map(|error| ("tls.key_file", error, "name the PEM file of the key, and set its mode to 0640 or 0600"));
    token.into_iter().chain(key).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    fn keys(text: &str) -> Vec<String> {
        let text = format!(
            "{text}\n[schema]\nfile = \"s.toml\"\n[sink]\ntopic = \"out\"\n[source]\ntopics = [\"in\"]\nbrokers = \"b:1\"\n"
        );
        let found = parse(&text, "throng.toml", std::iter::empty()).err().unwrap_or_default();
        let mut keys: Vec<String> =
            found.into_iter().map(|problem| problem.key.replace("source.security.", "")).collect();
        // A file of an unused key may also be missing.
        keys.dedup();
        keys
    }

    #[test]
    fn incomplete_security_names_missing_key() {
        let home = tempfile::tempdir().expect("a folder");
        let secret = home.path().join("secret");
        std::fs::write(&secret, "canary-8812").expect("a file");
        std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("our file");
        let secret = secret.display();
        for (lines, expected) in [
            ("protocol = \"tls\"".to_owned(), vec![]),
            ("ca_file = \"ca.pem\"".to_owned(), vec!["ca_file"]),
            ("protocol = \"tls\"\ncertificate_file = \"c.pem\"".to_owned(), vec!["certificate_file"]),
            ("protocol = \"sasl_tls\"".to_owned(), vec!["mechanism"]),
            ("mechanism = \"plain\"".to_owned(), vec!["mechanism", "password_file", "username"]),
            (
                format!(
                    "protocol = \"sasl_tls\"\nmechanism = \"plain\"\nusername = \"u\"\npassword_file = \"{secret}\""
                ),
                vec![],
            ),
            (
                format!(
                    "protocol = \"sasl_plaintext\"\nmechanism = \"plain\"\nusername = \"u\"\npassword_file = \"{secret}\""
                ),
                vec!["protocol"],
            ),
            ("protocol = \"sasl_tls\"\nmechanism = \"oauthbearer\"".to_owned(), vec!["oauth.token_endpoint"]),
            (
                format!(
                    "protocol = \"sasl_tls\"\nmechanism = \"oauthbearer\"\noauth.token_endpoint = \"http://id.example/token\"\n\
                     oauth.client_id = \"c\"\noauth.client_secret_file = \"{secret}\""
                ),
                vec!["oauth.token_endpoint"],
            ),
            (
                format!(
                    "protocol = \"sasl_tls\"\nmechanism = \"oauthbearer\"\noauth.token_endpoint = \"http://127.0.0.1:9/token\"\n\
                     oauth.client_id = \"c\"\noauth.client_secret_file = \"{secret}\""
                ),
                vec![],
            ),
        ] {
            assert_eq!(keys(&format!("[source.security]\n{lines}")), expected, "{lines}");
        }
    }

    #[test]
    fn property_replaced_by_security_is_refused() {
        let text = "[source.security]\nprotocol = \"tls\"\n[source.librdkafka]\n\"ssl.ca.location\" = \"a\"\n\"ssl.curves.list\" = \"X25519\"";
        assert_eq!(keys(text), ["source.librdkafka.ssl.ca.location"]);
    }
}
