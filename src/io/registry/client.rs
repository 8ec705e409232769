//! Client of a schema registry.

use crate::telemetry::printable;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

const REGISTRY_TIMEOUT: Duration = Duration::from_secs(5);

/// [`MAX_SCHEMA_BYTES`] with every second byte escaped.
const MAX_ANSWER_BYTES: u64 = 2 << 20;

const MAX_REFERENCES: usize = 64;

/// Compiling a schema of this size takes a third of a second.
const MAX_SCHEMA_BYTES: usize = 1 << 20;

/// Connection settings of a registry.
#[derive(Clone, Debug)]
pub struct RegistryAccess<'a> {
    /// Address, `http://` or `https://`.
    pub url: &'a str,
    /// User name and password.
    pub user: Option<(&'a str, &'a str)>,
    /// PEM file of the registry's authorities.
    pub authorities: Option<&'a Path>,
}

/// Error of a request, without record content.
#[derive(Clone, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum RegistryError {
    #[error(
        "the schema registry at {url} does not answer: {what} (check that it is up, and that registry.url is right)"
    )]
    Unreachable { url: String, what: String },
    #[error("the schema registry at {url} has no {what}")]
    Unknown { url: String, what: String },
    #[error("request to the schema registry at {url} for {what} failed: status {status}{said}")]
    Refused { url: String, what: String, status: u16, said: String },
    #[error("the authorities of registry.ca_file cannot be read: {0}")]
    Authorities(String),
}

/// Schema from a registry.
#[derive(Clone, Debug)]
pub struct WriterSchema {
    /// `AVRO`, `JSON` or `PROTOBUF`.
    pub kind: String,
    /// Text of the schema.
    pub text: String,
    /// References: import path (Protobuf) or address (JSON Schema), and text.
    pub parts: Vec<(String, String)>,
}

impl WriterSchema {
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.parts.iter().map(|(_, text)| text.len()).sum::<usize>()
    }
}

/// Client that sends one request at a time.
#[derive(Debug)]
pub struct RegistryClient {
    agent: ureq::Agent,
    url: String,
    authorization: Option<zeroize::Zeroizing<String>>,
}

#[derive(Deserialize)]
struct SchemaResponse {
    schema: String,
    #[serde(rename = "schemaType", default)]
    kind: Option<String>,
    #[serde(default)]
    references: Vec<SchemaReference>,
}

#[derive(Clone, Deserialize)]
struct SchemaReference {
    #[serde(default)]
    name: String,
    subject: String,
    version: i64,
}

#[derive(Deserialize)]
struct RegistrationResponse {
    id: u32,
}

#[derive(Default, Deserialize)]
struct RegistryErrorBody {
    #[serde(default)]
    message: String,
    #[serde(default)]
    error_code: u32,
}

/// Missing subject, version or schema.
const NOT_FOUND_CODES: std::ops::RangeInclusive<u32> = 40_401..=40_403;

impl RegistryClient {
    /// Creates a client.
    ///
    /// # Errors
    /// If the authorities cannot be read.
    pub fn new(access: &RegistryAccess<'_>) -> Result<Self, RegistryError> {
        let mut tls = TlsConfig::builder();
        if let Some(path) = access.authorities {
            tls = tls.root_certs(RootCerts::Specific(Arc::new(read_authorities(path)?)));
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(REGISTRY_TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            // Without TLS, a proxy would learn the password.
            .proxy(if access.user.is_some() && access.url.starts_with("http://") {
                None
            } else {
                ureq::Proxy::try_from_env()
            })
            .tls_config(tls.build())
            .build();
        let authorization = access.user.map(|(user, password)| {
            let pair = zeroize::Zeroizing::new(format!("{user}:{password}"));
            zeroize::Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())))
        });
        Ok(Self { agent: config.into(), url: access.url.trim_end_matches('/').to_owned(), authorization })
    }

    /// Returns schema `id` with its references.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] if there is none.
    pub fn schema(&self, id: u32) -> Result<WriterSchema, RegistryError> {
        let what = format!("schema number {id}");
        let until = Instant::now() + 2 * REGISTRY_TIMEOUT;
        let found: SchemaResponse = self.get(&format!("/schemas/ids/{id}"), &what)?;
        self.with_parts(found, &what, until)
    }

    /// Returns the latest schema under `subject`, if any.
    ///
    /// # Errors
    /// If the registry refuses or does not answer.
    pub fn latest(&self, subject: &str) -> Result<Option<WriterSchema>, RegistryError> {
        let what = format!("the latest schema under subject {subject:?}");
        let until = Instant::now() + 2 * REGISTRY_TIMEOUT;
        match self.get(&format!("/subjects/{}/versions/latest", encode_path_segment(subject)), &what) {
            Ok(found) => self.with_parts(found, &what, until).map(Some),
            Err(RegistryError::Unknown { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn with_parts(&self, found: SchemaResponse, what: &str, until: Instant) -> Result<WriterSchema, RegistryError> {
        let mut parts = Vec::new();
        let mut bytes = found.schema.len();
        let mut open = found.references.clone();
        // References may form a cycle.
        let mut seen: Vec<(String, String, i64)> = Vec::new();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(self.too_large_error(what));
        }
        while let Some(SchemaReference { name, subject, version }) = open.pop() {
            let key = (name.clone(), subject.clone(), version);
            if seen.contains(&key) {
                continue;
            }
            if Instant::now() > until {
                let what = format!("timeout while reading the parts of {what}");
                return Err(RegistryError::Unreachable { url: self.url.clone(), what });
            }
            if seen.len() >= MAX_REFERENCES {
                return Err(self.refused(what, 200, format!(": the schema has more than {MAX_REFERENCES} parts")));
            }
            let part: SchemaResponse = self.get(
                &format!("/subjects/{}/versions/{version}", encode_path_segment(&subject)),
                &format!("part of {what}"),
            )?;
            bytes += part.schema.len();
            if bytes > MAX_SCHEMA_BYTES {
                return Err(self.too_large_error(what));
            }
            seen.push(key);
            open.extend(part.references);
            parts.push((name, part.schema));
        }
        Ok(WriterSchema { kind: found.kind.unwrap_or_else(|| "AVRO".to_owned()), text: found.schema, parts })
    }

    /// Registers `schema` of type `kind` under `subject`; returns its number.
    ///
    /// # Errors
    /// [`RegistryError::Refused`], for example if incompatible.
    pub fn register(&self, subject: &str, kind: &str, schema: &str) -> Result<u32, RegistryError> {
        let what = format!("the output schema under subject {subject:?}");
        let body = serde_json::json!({ "schema": schema, "schemaType": kind }).to_string();
        let path = format!("/subjects/{}/versions", encode_path_segment(subject));
        let request = self.authorized(self.agent.post(format!("{}{path}", self.url)));
        let request = request.header("Content-Type", "application/vnd.schemaregistry.v1+json");
        let text = self.answer(request.send(body.as_str()), &what)?;
        let read: RegistrationResponse = self.read(&text, &what)?;
        Ok(read.id)
    }

    fn get<T: serde::de::DeserializeOwned>(&self, path: &str, what: &str) -> Result<T, RegistryError> {
        let request = self.authorized(self.agent.get(format!("{}{path}", self.url)));
        let text = self.answer(request.call(), what)?;
        self.read(&text, what)
    }

    fn authorized<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        let request = request.header("Accept", "application/vnd.schemaregistry.v1+json, application/json");
        match &self.authorization {
            Some(authorization) => request.header("Authorization", authorization.as_str()),
            None => request,
        }
    }

    fn answer(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
        what: &str,
    ) -> Result<String, RegistryError> {
        let unreachable =
            |error: &ureq::Error| RegistryError::Unreachable { url: self.url.clone(), what: error.to_string() };
        let mut answer = answer.map_err(|error| unreachable(&error))?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_string();
        let body = match body {
            Err(ureq::Error::BodyExceedsLimit(_)) => {
                return Err(self.refused(what, status, format!(": the answer has more than {MAX_ANSWER_BYTES} bytes")));
            }
            body => body.map_err(|error| unreachable(&error))?,
        };
        let complaint: RegistryErrorBody = serde_json::from_str(&body).unwrap_or_default();
        match status {
            200..=299 => Ok(body),
            // A proxy may return 404 too: only the registry's error codes are final.
            404 if !NOT_FOUND_CODES.contains(&complaint.error_code) => {
                let what = "status 404 without the error code of a registry".to_owned();
                Err(RegistryError::Unreachable { url: self.url.clone(), what })
            }
            404 => Err(RegistryError::Unknown { url: self.url.clone(), what: what.to_owned() }),
            // The same request may succeed later.
            408 | 429 | 500..=599 => {
                Err(RegistryError::Unreachable { url: self.url.clone(), what: format!("status {status}") })
            }
            _ => {
                let said = printable(&complaint.message);
                let said = if said.is_empty() { said } else { format!(": {said}") };
                Err(self.refused(what, status, said))
            }
        }
    }

    fn read<T: serde::de::DeserializeOwned>(&self, text: &str, what: &str) -> Result<T, RegistryError> {
        serde_json::from_str(text)
            .map_err(|_| self.refused(what, 200, ": the answer is not that of a schema registry".into()))
    }

    fn too_large_error(&self, what: &str) -> RegistryError {
        self.refused(what, 200, format!(": the schema has more than {MAX_SCHEMA_BYTES} bytes with its parts"))
    }

    fn refused(&self, what: &str, status: u16, said: String) -> RegistryError {
        RegistryError::Refused { url: self.url.clone(), what: what.to_owned(), status, said }
    }
}

fn read_authorities(path: &Path) -> Result<Vec<Certificate<'static>>, RegistryError> {
    let failed = |what: String| RegistryError::Authorities(format!("{}: {what}", path.display()));
    let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let mut found = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| failed(error.to_string()))? {
            found.push(certificate);
        }
    }
    if found.is_empty() { Err(failed("the file contains no certificate".to_owned())) } else { Ok(found) }
}

fn encode_path_segment(subject: &str) -> String {
    subject
        .bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn client_with_answer(status: &'static str, body: &'static str) -> RegistryClient {
        client_by_path(move |_| (status, body.to_owned()))
    }

    pub(in crate::io::registry) fn client_by_path(
        answer: impl Fn(&str) -> (&'static str, String) + Send + 'static,
    ) -> RegistryClient {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut question = [0; 4096];
                let read = stream.read(&mut question).unwrap_or(0);
                let asked = String::from_utf8_lossy(&question[..read]).into_owned();
                let (status, body) = answer(asked.split(' ').nth(1).unwrap_or_default());
                let length = body.len();
                let answer =
                    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
                if stream.write_all(answer.as_bytes()).is_err() {
                    // The client has read as much as it needs.
                }
            }
        });
        let access = RegistryAccess { url: &url, user: None, authorities: None };
        RegistryClient::new(&access).expect("a client")
    }

    #[test]
    fn http_status_decides_between_unknown_refused_and_unreachable() {
        let asked = |status, body| client_with_answer(status, body).schema(7).expect_err("no schema");
        let unknown = asked("404 Not Found", r#"{"error_code": 40403, "message": "Schema not found"}"#);
        assert!(matches!(unknown, RegistryError::Unknown { .. }), "{unknown}");
        for (status, body) in [
            ("404 Not Found", "<html>no such page</html>"),
            ("404 Not Found", r#"{"error_code": 404, "message": "HTTP 404 Not Found"}"#),
            ("503 Service Unavailable", ""),
            ("429 Too Many Requests", "{}"),
        ] {
            let error = asked(status, body);
            assert!(matches!(error, RegistryError::Unreachable { .. }), "{status}: {error}");
        }
        for (status, body) in
            [("422 Unprocessable", r#"{"error_code": 42202}"#), ("200 OK", "hello"), ("403 Forbidden", "")]
        {
            let error = asked(status, body);
            assert!(matches!(error, RegistryError::Refused { .. }), "{status}: {error}");
        }
    }

    #[test]
    fn schema_without_type_is_avro() {
        let found = client_with_answer("200 OK", r#"{"schema": "\"int\"", "id": 7}"#).schema(7).expect("a schema");
        assert_eq!((found.kind.as_str(), found.text.as_str(), found.parts.len()), ("AVRO", "\"int\"", 0));
    }

    fn with_references(schema: &str, references: &[(&str, &str)]) -> String {
        let named =
            |(name, subject): &(&str, &str)| serde_json::json!({"name": name, "subject": subject, "version": 1});
        let references: Vec<_> = references.iter().map(named).collect();
        serde_json::json!({"schema": schema, "schemaType": "PROTOBUF", "references": references}).to_string()
    }

    #[test]
    fn cyclic_references_are_read_once() {
        let client = client_by_path(|path| {
            let body = match path {
                "/schemas/ids/7" => with_references("root", &[("a.proto", "a"), ("b.proto", "b")]),
                "/subjects/a/versions/1" => with_references("a", &[("b.proto", "b"), ("a.proto", "a")]),
                "/subjects/b/versions/1" => with_references("b", &[("a.proto", "a")]),
                other => return ("404 Not Found", format!("{{\"error_code\": 40401, \"message\": {other:?}}}")),
            };
            ("200 OK", body)
        });
        let mut found = client.schema(7).expect("a schema").parts;
        found.sort();
        assert_eq!(found, [("a.proto", "a"), ("b.proto", "b")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert!(client.latest("nobody").expect("an answer").is_none());
    }

    #[test]
    fn oversized_or_endless_schema_is_refused() {
        let refused = |client: &RegistryClient| {
            let error = client.schema(7).expect_err("no schema");
            assert!(matches!(error, RegistryError::Refused { .. }), "{error}");
            error.to_string()
        };
        let many = client_by_path(|path| {
            let next = path.bytes().filter(|byte| *byte == b'x').count() + 1;
            let next = "x".repeat(next);
            ("200 OK", with_references("text", &[(&next, &next)]))
        });
        assert!(refused(&many).contains("64 parts"));
        let long = client_by_path(|path| {
            let next = "x".repeat(path.bytes().filter(|byte| *byte == b'x').count() + 1);
            ("200 OK", with_references(&"t".repeat(1 << 19), &[(&next, &next)]))
        });
        assert!(refused(&long).contains("bytes"));
        for bytes in [(1 << 20) + 1, 5 << 20] {
            let huge = client_by_path(move |_| ("200 OK", with_references(&"t".repeat(bytes), &[])));
            assert!(refused(&huge).contains("bytes"), "{bytes}");
        }
    }

    #[test]
    fn subject_is_encoded_as_one_path_segment() {
        assert_eq!(encode_path_segment("a b/c:d-e.f_g~h"), "a%20b%2Fc%3Ad-e.f_g~h");
    }
}
