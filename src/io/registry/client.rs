//! Asking a registry.

use crate::telemetry::printable;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// Longest wait for one answer. A registry that does not answer holds up the records whose schema it has to give.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The most bytes of an answer: a schema of [`MOST_BYTES_IN_ALL`] with every second byte escaped.
const MOST_BYTES: u64 = 2 << 20;

/// Parts of one schema that are asked for, in all.
const MOST_PARTS: usize = 64;

/// The most bytes of a schema with all its parts. Schemas have a few kilobytes; compiling one of this size takes a third of a second.
const MOST_BYTES_IN_ALL: usize = 1 << 20;

/// How to reach a registry.
#[derive(Clone, Debug)]
pub struct Access<'a> {
    /// Its address, with `http://` or `https://`.
    pub url: &'a str,
    /// User and password.
    pub user: Option<(&'a str, &'a str)>,
    /// A PEM file of the authorities that vouch for it; the public ones without.
    pub authorities: Option<&'a Path>,
}

/// What can go wrong with a question. Nothing of a record is in it.
#[derive(Clone, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum RegistryError {
    #[error("the schema registry at {url} does not answer: {what} (is it up, and is registry.url right?)")]
    Unreachable { url: String, what: String },
    #[error("the schema registry at {url} knows no {what}")]
    Unknown { url: String, what: String },
    #[error("the schema registry at {url} refuses {what}: status {status}{said}")]
    Refused { url: String, what: String, status: u16, said: String },
    #[error("the authorities of registry.ca_file cannot be read: {0}")]
    Authorities(String),
}

/// A schema as a registry keeps it.
#[derive(Clone, Debug)]
pub struct WriterSchema {
    /// `AVRO`, `JSON` or `PROTOBUF`.
    pub kind: String,
    /// Its text.
    pub text: String,
    /// The schemas that it refers to, and those that they refer to: what they are called there (of Protobuf the path of an import, of JSON
    /// Schema an address), and their texts.
    pub parts: Vec<(String, String)>,
}

impl WriterSchema {
    /// Bytes of its texts.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.parts.iter().map(|(_, text)| text.len()).sum::<usize>()
    }
}

/// A registry that is asked one question after the other.
#[derive(Debug)]
pub struct Client {
    agent: ureq::Agent,
    url: String,
    authorization: Option<zeroize::Zeroizing<String>>,
}

#[derive(Deserialize)]
struct Answer {
    schema: String,
    #[serde(rename = "schemaType", default)]
    kind: Option<String>,
    #[serde(default)]
    references: Vec<Reference>,
}

#[derive(Clone, Deserialize)]
struct Reference {
    #[serde(default)]
    name: String,
    subject: String,
    version: i64,
}

#[derive(Deserialize)]
struct Registered {
    id: u32,
}

#[derive(Default, Deserialize)]
struct Complaint {
    #[serde(default)]
    message: String,
    #[serde(default)]
    error_code: u32,
}

/// What a registry's own "there is none" says: no subject, no version, no schema.
const NONE_SUCH: std::ops::RangeInclusive<u32> = 40_401..=40_403;

impl Client {
    /// A client; nothing is asked yet.
    ///
    /// # Errors
    /// When the authorities cannot be read.
    pub fn new(access: &Access<'_>) -> Result<Self, RegistryError> {
        let mut tls = TlsConfig::builder();
        if let Some(path) = access.authorities {
            tls = tls.root_certs(RootCerts::Specific(Arc::new(authorities(path)?)));
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            // Without TLS a proxy would be told the password.
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

    /// The schema of this number, with all that it refers to.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] where there is none.
    pub fn schema(&self, id: u32) -> Result<WriterSchema, RegistryError> {
        let what = format!("schema number {id}");
        let until = Instant::now() + 2 * TIMEOUT;
        let found: Answer = self.get(&format!("/schemas/ids/{id}"), &what)?;
        self.with_parts(found, &what, until)
    }

    /// The latest schema under `subject`, with all that it refers to; none where nothing is registered there.
    ///
    /// # Errors
    /// Anything else than an answer.
    pub fn latest(&self, subject: &str) -> Result<Option<WriterSchema>, RegistryError> {
        let what = format!("the latest schema under subject {subject:?}");
        let until = Instant::now() + 2 * TIMEOUT;
        match self.get(&format!("/subjects/{}/versions/latest", escaped(subject)), &what) {
            Ok(found) => self.with_parts(found, &what, until).map(Some),
            Err(RegistryError::Unknown { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn with_parts(&self, found: Answer, what: &str, until: Instant) -> Result<WriterSchema, RegistryError> {
        let mut parts = Vec::new();
        let mut bytes = found.schema.len();
        let mut open = found.references.clone();
        // A circle comes to an end at what has been seen.
        let mut seen: Vec<(String, String, i64)> = Vec::new();
        if bytes > MOST_BYTES_IN_ALL {
            return Err(self.too_long(what));
        }
        while let Some(Reference { name, subject, version }) = open.pop() {
            let key = (name.clone(), subject.clone(), version);
            if seen.contains(&key) {
                continue;
            }
            if Instant::now() > until {
                let what = format!("{what} has many parts, and they come slowly");
                return Err(RegistryError::Unreachable { url: self.url.clone(), what });
            }
            if seen.len() >= MOST_PARTS {
                return Err(self.refused(what, 200, format!(": it has more than {MOST_PARTS} parts")));
            }
            let part: Answer =
                self.get(&format!("/subjects/{}/versions/{version}", escaped(&subject)), &format!("part of {what}"))?;
            bytes += part.schema.len();
            if bytes > MOST_BYTES_IN_ALL {
                return Err(self.too_long(what));
            }
            seen.push(key);
            open.extend(part.references);
            parts.push((name, part.schema));
        }
        Ok(WriterSchema { kind: found.kind.unwrap_or_else(|| "AVRO".to_owned()), text: found.schema, parts })
    }

    /// Registers `schema` of the kind `kind` (`AVRO`, `PROTOBUF`, `JSON`) under `subject` and gives its number. A registry refuses what its rule of
    /// compatibility forbids beside the schemas that are there, and gives the old number for a schema that it knows.
    ///
    /// # Errors
    /// [`RegistryError::Refused`] with the registry's own words.
    pub fn register(&self, subject: &str, kind: &str, schema: &str) -> Result<u32, RegistryError> {
        let what = format!("the schema of what leaves, under subject {subject:?}");
        let body = serde_json::json!({ "schema": schema, "schemaType": kind }).to_string();
        let path = format!("/subjects/{}/versions", escaped(subject));
        let request = self.authorized(self.agent.post(format!("{}{path}", self.url)));
        let request = request.header("Content-Type", "application/vnd.schemaregistry.v1+json");
        let text = self.answer(request.send(body.as_str()), &what)?;
        let read: Registered = self.read(&text, &what)?;
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

    /// The body of an answer that is none of an error.
    fn answer(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
        what: &str,
    ) -> Result<String, RegistryError> {
        let unreachable =
            |error: &ureq::Error| RegistryError::Unreachable { url: self.url.clone(), what: error.to_string() };
        let mut answer = answer.map_err(|error| unreachable(&error))?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MOST_BYTES).read_to_string();
        let body = match body {
            Err(ureq::Error::BodyExceedsLimit(_)) => {
                return Err(self.refused(what, status, format!(": more than {MOST_BYTES} bytes")));
            }
            body => body.map_err(|error| unreachable(&error))?,
        };
        let complaint: Complaint = serde_json::from_str(&body).unwrap_or_default();
        match status {
            200..=299 => Ok(body),
            // Anybody on the way may say 404; only the registry has decided.
            404 if !NONE_SUCH.contains(&complaint.error_code) => {
                let what = "status 404, and not in the words of a registry".to_owned();
                Err(RegistryError::Unreachable { url: self.url.clone(), what })
            }
            404 => Err(RegistryError::Unknown { url: self.url.clone(), what: what.to_owned() }),
            // It is there and cannot answer now; the same question has an answer later.
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
        serde_json::from_str(text).map_err(|_| self.refused(what, 200, ": not the answer of a schema registry".into()))
    }

    fn too_long(&self, what: &str) -> RegistryError {
        self.refused(what, 200, format!(": it has more than {MOST_BYTES_IN_ALL} bytes with its parts"))
    }

    fn refused(&self, what: &str, status: u16, said: String) -> RegistryError {
        RegistryError::Refused { url: self.url.clone(), what: what.to_owned(), status, said }
    }
}

fn authorities(path: &Path) -> Result<Vec<Certificate<'static>>, RegistryError> {
    let failed = |what: String| RegistryError::Authorities(format!("{}: {what}", path.display()));
    let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let mut found = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| failed(error.to_string()))? {
            found.push(certificate);
        }
    }
    if found.is_empty() { Err(failed("no certificate in it".to_owned())) } else { Ok(found) }
}

/// A subject as one segment of a path.
fn escaped(subject: &str) -> String {
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

    /// A client of somebody who answers every question with this status and body.
    fn client_of(status: &'static str, body: &'static str) -> Client {
        client_by(move |_| (status, body.to_owned()))
    }

    /// A client of somebody who answers by the path that is asked for.
    pub(in crate::io::registry) fn client_by(
        answer: impl Fn(&str) -> (&'static str, String) + Send + 'static,
    ) -> Client {
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
                    // It has read as much as it wants.
                }
            }
        });
        let access = Access { url: &url, user: None, authorities: None };
        Client::new(&access).expect("a client")
    }

    #[test]
    fn who_has_decided() {
        let asked = |status, body| client_of(status, body).schema(7).expect_err("no schema");
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
    fn a_schema_and_its_kind() {
        let found = client_of("200 OK", r#"{"schema": "\"int\"", "id": 7}"#).schema(7).expect("a schema");
        assert_eq!((found.kind.as_str(), found.text.as_str(), found.parts.len()), ("AVRO", "\"int\"", 0));
    }

    fn with_references(schema: &str, references: &[(&str, &str)]) -> String {
        let named =
            |(name, subject): &(&str, &str)| serde_json::json!({"name": name, "subject": subject, "version": 1});
        let references: Vec<_> = references.iter().map(named).collect();
        serde_json::json!({"schema": schema, "schemaType": "PROTOBUF", "references": references}).to_string()
    }

    #[test]
    fn references_in_a_circle_come_to_an_end() {
        let client = client_by(|path| {
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
    fn schemas_without_an_end_are_refused() {
        let refused = |client: &Client| {
            let error = client.schema(7).expect_err("no schema");
            assert!(matches!(error, RegistryError::Refused { .. }), "{error}");
            error.to_string()
        };
        // Each part has another one.
        let many = client_by(|path| {
            let next = path.bytes().filter(|byte| *byte == b'x').count() + 1;
            let next = "x".repeat(next);
            ("200 OK", with_references("text", &[(&next, &next)]))
        });
        assert!(refused(&many).contains("64 parts"));
        let long = client_by(|path| {
            let next = "x".repeat(path.bytes().filter(|byte| *byte == b'x').count() + 1);
            ("200 OK", with_references(&"t".repeat(1 << 19), &[(&next, &next)]))
        });
        assert!(refused(&long).contains("bytes"));
        for bytes in [(1 << 20) + 1, 5 << 20] {
            let huge = client_by(move |_| ("200 OK", with_references(&"t".repeat(bytes), &[])));
            assert!(refused(&huge).contains("bytes"), "{bytes}");
        }
    }

    #[test]
    fn subjects_are_one_segment() {
        assert_eq!(escaped("a b/c:d-e.f_g~h"), "a%20b%2Fc%3Ad-e.f_g~h");
    }
}
