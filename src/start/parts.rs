//! One part of a message, its key or its value, as it is configured: what is looked for in it, and how it is decoded.

use super::reading::codec_limits;
use crate::codec::{AvroCodec, Decoder, Field, JsonCodec, ProtobufSchema, TextCodec, Unknown};
use crate::config::{Config, Format, KeyFormat, Problem};
use crate::io::message::{Part, Plain};
use crate::io::registry::{Access, Client, Framed, FramedAs, FramedJson, WantedFields};
use crate::records::canonical::Type;
use crate::telemetry::Telemetry;
use std::path::Path;
use std::sync::Arc;

/// How one part of a message is written down.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PartFormat {
    Text,
    Json,
    Avro,
    Protobuf,
}

impl PartFormat {
    pub fn of_values(format: Format) -> Self {
        match format {
            Format::Avro => Self::Avro,
            Format::Protobuf => Self::Protobuf,
            // Formats of whole files: refused where a topic is configured.
            Format::Json | Format::Csv | Format::Parquet => Self::Json,
        }
    }

    pub fn of_keys(format: KeyFormat) -> Self {
        match format {
            KeyFormat::Text => Self::Text,
            KeyFormat::Json => Self::Json,
            KeyFormat::Avro => Self::Avro,
            KeyFormat::Protobuf => Self::Protobuf,
        }
    }

    /// What the configuration's problems call it, where a record cannot be read without the schema of its writer.
    fn with_schema(self) -> Option<&'static str> {
        match self {
            Self::Text | Self::Json => None,
            Self::Avro => Some("Avro"),
            Self::Protobuf => Some("Protobuf"),
        }
    }

    fn framed_as(self) -> Option<FramedAs> {
        match self {
            Self::Text => None,
            Self::Json => Some(FramedAs::Json),
            Self::Avro => Some(FramedAs::Avro),
            Self::Protobuf => Some(FramedAs::Protobuf),
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
    /// The type that a writer's schema must have for it; none where any will do.
    pub kind: Option<Type>,
    /// A writer's schema may lack it.
    pub optional: bool,
}

impl Wanted {
    /// The part itself, as one cell.
    pub fn whole(at: usize) -> Self {
        Self { at, name: "the whole".to_owned(), field: Field::at(Vec::new()), kind: None, optional: false }
    }
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
    /// The Protobuf message of that schema.
    pub message: Option<&'a str>,
    /// The key of the configuration that names it.
    pub message_key: String,
    /// Values that are not looked for in are decoded all the same: what cannot be read is no record.
    pub is_value: bool,
    pub wanted: Vec<Wanted>,
    pub unknown: Unknown,
}

impl PartAsked<'_> {
    fn is_framed(&self, config: &Config) -> bool {
        self.framed.unwrap_or(self.format.with_schema().is_some() && config.registry.url.is_some())
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
        if self.message.is_some() && (self.format != PartFormat::Protobuf || framed || !used) {
            let message = "the message of plain Protobuf is named, and none is read";
            problem(&self.message_key, message.into(), "remove the key: a frame says which message it is");
        }
        let Some(name) = self.format.with_schema().filter(|_| used) else { return found };
        if framed && config.registry.url.is_none() {
            problem("registry.url", "framed records have their schemas in a registry".into(), "name it");
        }
        if framed && self.framed.is_none() && self.writer_schema.is_some() {
            let message =
                format!("a writer's schema is named for plain {name}, and with registry.url frames are expected");
            let remedy = format!("set it to false for plain {name}, or remove the writer's schema");
            problem(&self.framed_key, message, &remedy);
        }
        match self.writer_schema {
            _ if framed => {}
            None => {
                let remedy = "name the file of the schema, or a registry (registry.url)";
                let message = format!("plain {name} cannot be read without its writer's schema");
                problem(&self.schema_key, message, remedy);
            }
            Some(path) => match self.of_writer(path, config) {
                Err(what) => problem(&self.schema_key, what, "correct the file, or name another one"),
                Ok((_, missing)) => {
                    for wanted in self.wanted.iter().filter(|w| !w.optional && missing.contains(&w.at)) {
                        let place = wanted.field.pointer.join("/");
                        let message = format!("it has no field /{place}, where {} is", wanted.name);
                        let remedy = "correct its place (`pointer` of an attribute in the schema)";
                        problem(&self.schema_key, message, remedy);
                    }
                }
            },
        }
        found
    }

    /// The decoder of plain records of a writer's schema, and the cells to which nothing in it leads.
    fn of_writer(&self, path: &Path, config: &Config) -> Result<(Box<dyn Decoder>, Vec<usize>), String> {
        let (limits, unknown, fields) = (codec_limits(config).0, self.unknown, self.fields());
        let wrong = |error: &dyn std::fmt::Display| format!("{} is {error}", path.display());
        if self.format == PartFormat::Protobuf {
            let codec = ProtobufSchema::of_file(path)
                .and_then(|schema| schema.named(self.message))
                .and_then(|message| message.codec(&fields, limits, unknown))
                .map_err(|error| wrong(&error))?;
            let missing = codec.missing(&fields);
            return Ok((Box::new(codec), missing));
        }
        let text =
            std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read ({error})", path.display()))?;
        let codec = AvroCodec::new(&text, &fields, limits, unknown).map_err(|error| wrong(&error))?;
        let missing = codec.missing(&fields);
        Ok((Box::new(codec), missing))
    }

    /// Its decoder; schemas that are met are told to `telemetry`.
    ///
    /// # Errors
    /// What is wrong with the writer's schema that the configuration names.
    pub fn decoder(
        &self,
        config: &Config,
        client: Option<&Arc<Client>>,
        file: &str,
        telemetry: &Telemetry,
    ) -> Result<Box<dyn Part>, Problem> {
        let (limits, unknown, fields) = (codec_limits(config).0, self.unknown, self.fields());
        let json = |fields: &[(usize, Field)]| JsonCodec::of_part(fields, limits).with_unknown(unknown);
        let framed = self.is_framed(config);
        if let (true, Some(client), Some(format)) = (framed, client, self.format.framed_as()) {
            let types = self.wanted.iter().map(|wanted| wanted.kind).collect();
            let optional = self.wanted.iter().filter(|wanted| wanted.optional).map(|wanted| wanted.at).collect();
            let wanted = WantedFields { format, fields, types, optional, limits, unknown };
            return Ok(Box::new(Framed::new(Arc::clone(client), wanted, telemetry.clone())));
        }
        Ok(match self.format {
            PartFormat::Text => Box::new(Plain(Box::new(TextCodec::new(&fields, limits)))),
            PartFormat::Json if framed => Box::new(FramedJson(json(&fields))),
            PartFormat::Json => Box::new(Plain(Box::new(json(&fields)))),
            PartFormat::Avro | PartFormat::Protobuf => {
                let path = self.writer_schema.unwrap_or(Path::new(""));
                let found = self.of_writer(path, config);
                let (decoder, _) =
                    found.map_err(|what| Problem::new(file, &self.schema_key, what, "correct the file"))?;
                Box::new(Plain(decoder))
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
