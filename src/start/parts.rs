//! One part of a message, its key or its value, as it is configured: what is looked for in it, and how it is decoded.

use super::reading::codec_limits;
use crate::config::{Config, Format, KeyFormat, Problem};
use crate::io::message::Part;
use crate::io::registry::{Access, Client, Framed, FramedAs, FramedJson, SchemaLookup, WantedFields};
use crate::telemetry::Telemetry;
use std::path::Path;
use std::sync::Arc;
use throng_core::values::canonical::Type;
use throng_formats::{AvroCodec, Field, JsonCodec, NumberCodec, ProtobufSchema, TextCodec, Unknown};

/// How one part of a message is written down.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PartFormat {
    Text,
    /// One number of so many bytes.
    Number(usize),
    Json,
    JsonSchema,
    Avro,
    Protobuf,
}

impl PartFormat {
    pub fn of_values(format: Format) -> Self {
        match format {
            Format::Avro => Self::Avro,
            Format::Protobuf => Self::Protobuf,
            Format::JsonSchema => Self::JsonSchema,
            // Formats of whole files: refused where a topic is configured.
            Format::Json | Format::Csv | Format::Parquet => Self::Json,
        }
    }

    pub fn of_keys(format: KeyFormat) -> Self {
        match format {
            KeyFormat::Text => Self::Text,
            KeyFormat::Int16 => Self::Number(2),
            KeyFormat::Int32 => Self::Number(4),
            KeyFormat::Int64 => Self::Number(8),
            KeyFormat::Json => Self::Json,
            KeyFormat::JsonSchema => Self::JsonSchema,
            KeyFormat::Avro => Self::Avro,
            KeyFormat::Protobuf => Self::Protobuf,
        }
    }

    /// Whether it is one value, in which no field is looked for.
    pub fn is_one_value(self) -> bool {
        matches!(self, Self::Text | Self::Number(_))
    }

    /// What the configuration's problems call it, where a record cannot be read without the schema of its writer.
    fn with_schema(self) -> Option<&'static str> {
        match self {
            Self::Text | Self::Number(_) | Self::Json | Self::JsonSchema => None,
            Self::Avro => Some("Avro"),
            Self::Protobuf => Some("Protobuf"),
        }
    }

    fn framed_as(self) -> Option<FramedAs> {
        match self {
            Self::Text | Self::Number(_) | Self::Json => None,
            Self::JsonSchema => Some(FramedAs::Json),
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

/// The key that names the schema of plain values.
const SCHEMA_KEY: &str = "source.writer_schema";

/// One part of a message, as it is configured.
pub(super) struct PartAsked<'a> {
    pub format: PartFormat,
    /// The key of the configuration that says so.
    pub format_key: String,
    /// The schema under which it was written, where it is plain.
    pub writer_schema: Option<&'a Path>,
    /// The Protobuf message of that schema.
    pub message: Option<&'a str>,
    /// Values that are not looked for in are decoded all the same: what cannot be read is no record.
    pub is_value: bool,
    pub wanted: Vec<Wanted>,
    pub unknown: Unknown,
}

impl PartAsked<'_> {
    /// Whether the number of its schema in a registry comes first.
    fn is_framed(&self) -> bool {
        self.format.framed_as().is_some() && self.writer_schema.is_none()
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
        if self.message.is_some() && (self.format != PartFormat::Protobuf || self.is_framed()) {
            let message = "the message of plain Protobuf is named, and none is read";
            problem("source.message", message.into(), "name its schema in source.writer_schema, or remove the key");
        }
        let Some(name) = self.format.with_schema().filter(|_| used) else {
            if self.writer_schema.is_some() {
                let message = "JSON is read without its writer's schema";
                problem(SCHEMA_KEY, message.into(), "remove the key, or set source.format");
            }
            return found;
        };
        if self.is_framed() && config.registry.url.is_none() {
            let message = format!("{name} cannot be read without its writer's schema");
            let remedy = if self.format_key == "source.format" {
                "name a registry (registry.url), or the file of the schema in source.writer_schema"
            } else {
                "name a registry (registry.url)"
            };
            problem(&self.format_key, message, remedy);
        }
        let Some(path) = self.writer_schema else { return found };
        match self.of_writer(path, config) {
            Err(what) => problem(SCHEMA_KEY, what, "correct the file, or name another one"),
            Ok((_, missing)) => {
                for wanted in self.wanted.iter().filter(|w| !w.optional && missing.contains(&w.at)) {
                    let place = wanted.field.pointer.join("/");
                    let message = format!("it has no field /{place}, where {} is", wanted.name);
                    let remedy = "correct its place (`pointer` of an attribute in the schema)";
                    problem(SCHEMA_KEY, message, remedy);
                }
            }
        }
        found
    }

    /// The decoder of plain records of a writer's schema, and the cells to which nothing in it leads.
    fn of_writer(&self, path: &Path, config: &Config) -> Result<(Box<dyn Part>, Vec<usize>), String> {
        let (limits, unknown, fields) = (codec_limits(config).0, self.unknown, self.fields());
        let wrong = |error: &dyn std::fmt::Display| format!("{} is {error}", path.display());
        if self.format == PartFormat::Protobuf {
            let codec = ProtobufSchema::of_file(path)
                .and_then(|schema| schema.named(self.message))
                .and_then(|message| message.codec(&fields, limits, unknown))
                .map_err(|error| wrong(&error))?;
            let missing = codec.missing().to_vec();
            return Ok((Box::new(codec), missing));
        }
        let text =
            std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read ({error})", path.display()))?;
        let codec = AvroCodec::new(&text, &fields, limits, unknown).map_err(|error| wrong(&error))?;
        let missing = codec.missing().to_vec();
        Ok((Box::new(codec), missing))
    }

    /// Its decoder; schemas that are met are told to `telemetry`.
    ///
    /// # Errors
    /// What is wrong with the writer's schema that the configuration names.
    pub fn decoder(
        &self,
        config: &Config,
        lookup: Option<&Arc<SchemaLookup>>,
        file: &str,
        telemetry: &Telemetry,
    ) -> Result<Box<dyn Part>, Problem> {
        let (limits, unknown, fields) = (codec_limits(config).0, self.unknown, self.fields());
        let json = |fields: &[(usize, Field)]| JsonCodec::of_part(fields, limits).with_unknown(unknown);
        if let (true, Some(lookup), Some(format)) = (self.is_framed(), lookup, self.format.framed_as()) {
            let types = self.wanted.iter().map(|wanted| wanted.kind).collect();
            let optional = self.wanted.iter().filter(|wanted| wanted.optional).map(|wanted| wanted.at).collect();
            let wanted = WantedFields { format, fields, types, optional, limits, unknown };
            return Ok(Box::new(Framed::new(Arc::clone(lookup), wanted, telemetry.clone())));
        }
        Ok(match self.format {
            PartFormat::Text => Box::new(TextCodec::new(&fields, limits)),
            PartFormat::Number(bytes) => Box::new(NumberCodec::new(&fields, bytes)),
            PartFormat::JsonSchema => Box::new(FramedJson(json(&fields))),
            PartFormat::Json => Box::new(json(&fields)),
            PartFormat::Avro | PartFormat::Protobuf => {
                let path = self.writer_schema.unwrap_or(Path::new(""));
                let found = self.of_writer(path, config);
                found.map_err(|what| Problem::new(file, SCHEMA_KEY, what, "correct the file"))?.0
            }
        })
    }
}

/// The registry that is configured, if one is.
pub fn client(config: &Config, file: &str) -> Result<Option<Client>, Problem> {
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
    };
    let client = Client::new(&access).map_err(|error| {
        Problem::new(file, "registry.ca_file", error.to_string(), "name a PEM file of certificates")
    })?;
    Ok(Some(client))
}

/// Lookups of schemas in the registry that is configured, to be shared by all decoders of one source.
pub fn lookup(config: &Config, file: &str, telemetry: &Telemetry) -> Result<Option<Arc<SchemaLookup>>, Problem> {
    Ok(client(config, file)?.map(|client| Arc::new(SchemaLookup::new(client, telemetry.clone()))))
}
