//! Asking a registry.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// The most that an answer may have: schemas are a few kilobytes.
const MOST_BYTES: u64 = 4 << 20;

/// Parts of one schema that are asked for, in all.
const MOST_PARTS: usize = 64;

/// How to reach a registry.
#[derive(Clone, Debug)]
pub struct Access<'a> {
    /// Its address, with `http://` or `https://`.
    pub url: &'a str,
    /// User and password.
    pub user: Option<(&'a str, &'a str)>,
    /// A PEM file of the authorities that vouch for it; the public ones without.
    pub authorities: Option<&'a Path>,
    /// How long one question may take.
    pub timeout: Duration,
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
    /// The texts of the schemas that it refers to, and those that they refer to.
    pub parts: Vec<String>,
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
    subject: String,
    version: i64,
}

#[derive(Deserialize)]
struct Registered {
    id: u32,
}

#[derive(Deserialize)]
struct Complaint {
    #[serde(default)]
    message: String,
}

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
            .timeout_global(Some(access.timeout))
            .http_status_as_error(false)
            .max_redirects(0)
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
        let found: Answer = self.get(&format!("/schemas/ids/{id}"), &what)?;
        let mut parts: Vec<String> = Vec::new();
        let mut open = found.references.clone();
        let mut seen: Vec<(String, i64)> = Vec::new();
        while let Some(Reference { subject, version }) = open.pop() {
            if seen.contains(&(subject.clone(), version)) {
                continue;
            }
            if seen.len() >= MOST_PARTS {
                return Err(self.refused(&what, 200, format!(": it has more than {MOST_PARTS} parts")));
            }
            let part: Answer =
                self.get(&format!("/subjects/{}/versions/{version}", escaped(&subject)), &format!("part of {what}"))?;
            seen.push((subject, version));
            open.extend(part.references);
            parts.push(part.schema);
        }
        Ok(WriterSchema { kind: found.kind.unwrap_or_else(|| "AVRO".to_owned()), text: found.schema, parts })
    }

    /// Registers the Avro schema `schema` under `subject` and gives its number. A registry refuses what its rule of
    /// compatibility forbids beside the schemas that are there, and gives the old number for a schema that it knows.
    ///
    /// # Errors
    /// [`RegistryError::Refused`] with the registry's own words.
    pub fn register(&self, subject: &str, schema: &str) -> Result<u32, RegistryError> {
        let what = format!("the schema of what leaves, under subject {subject:?}");
        let body = serde_json::json!({ "schema": schema, "schemaType": "AVRO" }).to_string();
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
        let body = body.map_err(|error| unreachable(&error))?;
        match status {
            200..=299 => Ok(body),
            404 => Err(RegistryError::Unknown { url: self.url.clone(), what: what.to_owned() }),
            // It is there and cannot answer now; the same question has an answer later.
            408 | 429 | 500..=599 => {
                Err(RegistryError::Unreachable { url: self.url.clone(), what: format!("status {status}") })
            }
            _ => {
                let said = serde_json::from_str(&body).map(|Complaint { message }| message).unwrap_or_default();
                let said = if said.is_empty() { said } else { format!(": {said}") };
                Err(self.refused(what, status, said))
            }
        }
    }

    fn read<T: serde::de::DeserializeOwned>(&self, text: &str, what: &str) -> Result<T, RegistryError> {
        serde_json::from_str(text).map_err(|_| self.refused(what, 200, ": not the answer of a schema registry".into()))
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
