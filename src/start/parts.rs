//! One part of a message, its key or its value, as it is configured: what is looked for in it, and how it is decoded.

use super::reading::codec_limits;
use crate::codec::{AvroCodec, Decoder, Field, JsonCodec, TextCodec, Unknown};
use crate::config::{Config, Format, KeyFormat, Problem};
use crate::io::message::{Part, Plain};
use crate::io::registry::{Access, Client, Framed, FramedJson};
use std::path::Path;
use std::sync::Arc;

/// How one part of a message is written down.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PartFormat {
    Text,
    Json,
    Avro,
}

impl PartFormat {
    pub fn of_values(format: Format) -> Self {
        match format {
            Format::Avro => Self::Avro,
            // Formats of whole files: refused where a topic is configured.
            Format::Json | Format::Csv | Format::Parquet => Self::Json,
        }
    }

    pub fn of_keys(format: KeyFormat) -> Self {
        match format {
            KeyFormat::Text => Self::Text,
            KeyFormat::Json => Self::Json,
            KeyFormat::Avro => Self::Avro,
        }
    }
}

/// What is looked for in a part.
#[derive(Clone)]
pub(super) struct Wanted {
    /// Its place in a row.
    pub at: usize,
    /// Its name in messages.
    pub name: String,
    pub field: Field,
    /// A writer's schema may lack it.
    pub optional: bool,
}

/// One part of a message, as it is configured.
pub(super) struct PartAsked<'a> {
    pub format: PartFormat,
    pub framed: Option<bool>,
    /// The key of the configuration that says so.
    pub framed_key: String,
    pub writer_schema: Option<&'a Path>,
    /// The key of the configuration that names it.
    pub schema_key: String,
    /// Values that are not looked for in are decoded all the same: what cannot be read is no record.
    pub is_value: bool,
    pub wanted: Vec<Wanted>,
    pub unknown: Unknown,
}

impl PartAsked<'_> {
    fn is_framed(&self, config: &Config) -> bool {
        self.framed.unwrap_or(self.format == PartFormat::Avro && config.registry.url.is_some())
    }

    fn fields(&self) -> Vec<(usize, Field)> {
        self.wanted.iter().map(|wanted| (wanted.at, wanted.field.clone())).collect()
    }

    /// What is wrong with it in the light of its format and of the files that the configuration names.
    pub fn problems(&self, config: &Config, file: &str) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut problem = |key: &str, message: String, remedy: &str| {
            found.push(Problem::new(file, key, message, remedy));
        };
        let used = self.is_value || !self.wanted.is_empty();
        let framed = self.is_framed(config);
        if used && framed && self.format == PartFormat::Text {
            problem(&self.framed_key, "a text has no frame".into(), "set another format, or remove the key");
        }
        if !used || self.format != PartFormat::Avro {
            return found;
        }
        if framed && config.registry.url.is_none() {
            problem("registry.url", "framed records have their schemas in a registry".into(), "name it");
        }
        if framed && self.framed.is_none() && self.writer_schema.is_some() {
            let message = "a writer's schema is named for plain Avro, and with registry.url frames are expected".into();
            problem(&self.framed_key, message, "set it to false for plain Avro, or remove the writer's schema");
        }
        match self.writer_schema {
            _ if framed => {}
            None => {
                let remedy = "name the file of the schema, or a registry (registry.url)";
                problem(&self.schema_key, "plain Avro cannot be read without its writer's schema".into(), remedy);
            }
            Some(path) => match self.plain_avro(path, config) {
                Err(what) => problem(&self.schema_key, what, "correct the file, or name another one"),
                Ok(codec) => {
                    let missing = codec.missing(&self.fields());
                    for wanted in self.wanted.iter().filter(|w| !w.optional && missing.contains(&w.at)) {
                        let place = wanted.field.pointer.join("/");
                        let message = format!("it has no field /{place}, where {} is", wanted.name);
                        problem(
                            &self.schema_key,
                            message,
                            "correct its place (`pointer` of an attribute in the schema)",
                        );
                    }
                }
            },
        }
        found
    }

    fn plain_avro(&self, path: &Path, config: &Config) -> Result<AvroCodec, String> {
        let text =
            std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read ({error})", path.display()))?;
        AvroCodec::new(&text, &self.fields(), codec_limits(config).0, self.unknown)
            .map_err(|error| format!("{} is {error}", path.display()))
    }

    /// Its decoder.
    ///
    /// # Errors
    /// What is wrong with the writer's schema that the configuration names.
    pub fn decoder(&self, config: &Config, client: Option<&Arc<Client>>, file: &str) -> Result<Box<dyn Part>, Problem> {
        let (limits, unknown) = (codec_limits(config).0, self.unknown);
        let fields = self.fields();
        // A key may be one value; a value that is no object is no record.
        debug_assert!(!self.is_value || fields.iter().all(|(_, field)| !field.pointer.is_empty()));
        let json = || JsonCodec::of_part(&fields, limits).with_unknown(unknown);
        let plain = |decoder: Box<dyn Decoder>| -> Box<dyn Part> { Box::new(Plain(decoder)) };
        Ok(match (self.format, self.is_framed(config), client) {
            (PartFormat::Text, ..) => plain(Box::new(TextCodec::new(&fields, limits))),
            (PartFormat::Json, true, _) => Box::new(FramedJson(json())),
            (PartFormat::Json, false, _) => plain(Box::new(json())),
            (PartFormat::Avro, true, Some(client)) => {
                let optional = self.wanted.iter().filter(|wanted| wanted.optional).map(|wanted| wanted.at).collect();
                Box::new(Framed::new(Arc::clone(client), fields, optional, limits, unknown))
            }
            (PartFormat::Avro, ..) => {
                let path = self.writer_schema.unwrap_or(Path::new(""));
                let codec = self.plain_avro(path, config);
                plain(Box::new(codec.map_err(|what| Problem::new(file, &self.schema_key, what, "correct the file"))?))
            }
        })
    }
}

/// The registry that is configured, if one is.
///
/// # Errors
/// When the password or the authorities cannot be read.
pub fn client(config: &Config, file: &str) -> Result<Option<Arc<Client>>, Problem> {
    let registry = &config.registry;
    let Some(url) = &registry.url else { return Ok(None) };
    let password = registry.password().map_err(|error| {
        Problem::new(file, "registry.password_file", error.to_string(), "correct the path, or chmod 600 the file")
    })?;
    let password = password.as_deref().map_or("", String::as_str);
    let access = Access {
        url,
        user: registry.user.as_deref().map(|user| (user, password)),
        authorities: registry.ca_file.as_deref(),
        timeout: registry.timeout,
    };
    let client = Client::new(&access).map_err(|error| {
        Problem::new(file, "registry.ca_file", error.to_string(), "name a PEM file of certificates")
    })?;
    Ok(Some(Arc::new(client)))
}
