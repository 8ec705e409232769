//! How the cells of records are found in the messages of topics.

use super::reading::codec_limits;
use crate::codec::{AvroCodec, Decoder, Field, JsonCodec, ProtobufSchema, TextCodec};
use crate::config::{Config, Format, KeyFormat, Problem, SourceKind};
use crate::io::message::{Messages, Part, Plain};
use crate::io::registry::{Access, Client, Framed, FramedAs, FramedJson, WantedFields};
use crate::io::topic_lines::{KEY, VALUE};
use crate::records::canonical::Type;
use crate::records::schema::{Attribute, Origin, Schema};
use crate::telemetry::Telemetry;
use std::path::Path;
use std::sync::Arc;

/// How one part of a message is written down.
#[derive(Clone, Copy, PartialEq)]
enum PartFormat {
    Text,
    Json,
    Avro,
    Protobuf,
}

impl PartFormat {
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

/// One part of a message, as it is configured.
struct PartAsked<'a> {
    format: PartFormat,
    framed: Option<bool>,
    /// The key of the configuration that says so.
    framed_key: &'static str,
    writer_schema: Option<&'a Path>,
    /// The Protobuf message of that schema.
    message: Option<&'a str>,
    message_key: &'static str,
    /// The key of the configuration that names it.
    schema_key: &'static str,
    /// Where in a message its attributes are.
    origin: Origin,
}

impl<'a> PartAsked<'a> {
    fn value(config: &'a Config) -> Self {
        let source = &config.source;
        let format = match source.format() {
            Format::Avro => PartFormat::Avro,
            Format::Protobuf => PartFormat::Protobuf,
            // Formats of whole files: refused where a topic is configured.
            Format::Json | Format::Csv | Format::Parquet => PartFormat::Json,
        };
        Self {
            format,
            framed: source.framed,
            framed_key: "source.framed",
            writer_schema: source.writer_schema.as_deref(),
            message: source.message.as_deref(),
            message_key: "source.message",
            schema_key: "source.writer_schema",
            origin: Origin::Value,
        }
    }

    fn key(config: &'a Config) -> Self {
        let source = &config.source;
        let format = match source.key_format {
            KeyFormat::Text => PartFormat::Text,
            KeyFormat::Json => PartFormat::Json,
            KeyFormat::Avro => PartFormat::Avro,
            KeyFormat::Protobuf => PartFormat::Protobuf,
        };
        Self {
            format,
            framed: source.key_framed,
            framed_key: "source.key_framed",
            writer_schema: source.key_writer_schema.as_deref(),
            message: source.key_message.as_deref(),
            message_key: "source.key_message",
            schema_key: "source.key_writer_schema",
            origin: Origin::Key,
        }
    }

    fn is_framed(&self, config: &Config) -> bool {
        self.framed.unwrap_or(self.format.with_schema().is_some() && config.registry.url.is_some())
    }

    fn attributes<'s>(&self, schema: &'s Schema) -> impl Iterator<Item = (usize, &'s Attribute)> {
        let attributes = schema.attributes.iter().enumerate().map(|(i, a)| (i, a.as_ref()));
        attributes.filter(|(_, attribute)| attribute.from == self.origin)
    }

    fn wanted(&self, schema: &Schema) -> Wanted {
        Wanted {
            fields: self.fields(schema),
            types: self.attributes(schema).map(|(_, a)| a.kind()).collect(),
            optional: self.attributes(schema).filter(|(_, a)| a.optional).map(|(i, _)| i).collect(),
        }
    }

    fn fields(&self, schema: &Schema) -> Vec<(usize, Field)> {
        self.attributes(schema).map(|(i, a)| (i, Field { pointer: a.segments() })).collect()
    }
}

/// What is wanted of one part of a message.
struct Wanted {
    fields: Vec<(usize, Field)>,
    /// By field; none where any type is.
    types: Vec<Type>,
    /// Attributes whose field a schema may lack.
    optional: Vec<usize>,
}

impl Wanted {
    /// The part itself, as one cell.
    fn whole(cell: usize) -> Self {
        Self { fields: vec![(cell, Field { pointer: Vec::new() })], types: Vec::new(), optional: Vec::new() }
    }
}

/// The decoder of messages.
///
/// # Errors
/// What is wrong with the files that the configuration names, and with the records' attributes in the light of the formats.
pub fn messages(config: &Config, schema: &Schema, file: &str, telemetry: &Telemetry) -> Result<Messages, Vec<Problem>> {
    let problems = problems(config, schema, file);
    if !problems.is_empty() {
        return Err(problems);
    }
    let client = client(config, file).map_err(|problem| vec![problem])?;
    let reading = Reading { config, file, telemetry };
    let part = |asked: &PartAsked<'_>| reading.part(asked, asked.wanted(schema), client.as_ref());
    let key = PartAsked::key(config);
    let has_keys = key.attributes(schema).next().is_some();
    let numbered = || schema.attributes.iter().enumerate();
    let headers = numbered().filter_map(|(i, a)| match &a.from {
        Origin::Header(name) => Some((name.clone(), i)),
        _ => None,
    });
    let from = |origin: &Origin| numbered().filter(|(_, a)| a.from == *origin).map(|(i, _)| i).collect();
    Ok(Messages {
        value: part(&PartAsked::value(config)).map_err(|problem| vec![problem])?,
        key: has_keys.then(|| part(&key)).transpose().map_err(|problem| vec![problem])?,
        headers: headers.collect(),
        max_header_bytes: codec_limits(config).0.max_record_bytes,
        timestamps: from(&Origin::Timestamp),
        topics: from(&Origin::Topic),
    })
}

/// The decoder of messages that no schema describes: the whole value is one cell and the whole key another.
///
/// # Errors
/// What is wrong with what the configuration names.
pub fn whole_messages(config: &Config, file: &str, telemetry: &Telemetry) -> Result<Messages, Problem> {
    let client = client(config, file)?;
    let reading = Reading { config, file, telemetry };
    let part = |asked: &PartAsked<'_>, cell: usize| reading.part(asked, Wanted::whole(cell), client.as_ref());
    Ok(Messages {
        value: part(&PartAsked::value(config), VALUE)?,
        key: Some(part(&PartAsked::key(config), KEY)?),
        headers: Vec::new(),
        max_header_bytes: 0,
        timestamps: Vec::new(),
        topics: Vec::new(),
    })
}

/// What is wrong with the attributes of `schema` as parts of the messages, or of the file, that `config` reads.
#[must_use]
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut problem = |key: &str, message: String, remedy: &str| found.push(Problem::new(file, key, message, remedy));
    if config.source.kind == SourceKind::File {
        for attribute in schema.attributes.iter().filter(|a| a.from != Origin::Value) {
            let message = format!(
                "attribute {:?} of the schema is from = {:?}, and a file has no messages",
                attribute.name,
                attribute.from.name()
            );
            problem("source.kind", message, "read a topic, or take the records' own value in the schema");
        }
        return found;
    }
    let (value, key) = (PartAsked::value(config), PartAsked::key(config));
    let keyed: Vec<&Attribute> = key.attributes(schema).map(|(_, attribute)| attribute).collect();
    if key.format == PartFormat::Text && keyed.len() > 1 {
        let message = format!("a text key is one value, and {} attributes of the schema are in it", keyed.len());
        problem("source.key_format", message, "set \"json\", \"avro\" or \"protobuf\", or keep one of them");
    }
    for asked in [value, key] {
        let used = asked.origin == Origin::Value || !keyed.is_empty();
        let framed = asked.is_framed(config);
        if used && framed && asked.format == PartFormat::Text {
            problem(asked.framed_key, "a text has no frame".into(), "set another format, or remove the key");
        }
        let needless = asked.message.is_some() && (asked.format != PartFormat::Protobuf || framed || !used);
        if needless {
            let message = "the message of plain Protobuf is named, and none is read";
            problem(asked.message_key, message.into(), "remove the key: a frame says which message it is");
        }
        let Some(name) = asked.format.with_schema().filter(|_| used) else { continue };
        if framed && config.registry.url.is_none() {
            problem("registry.url", "framed records have their schemas in a registry".into(), "name it");
        }
        if framed && asked.framed.is_none() && asked.writer_schema.is_some() {
            let message =
                format!("a writer's schema is named for plain {name}, and with registry.url frames are expected");
            let remedy = format!("set it to false for plain {name}, or remove the writer's schema");
            problem(asked.framed_key, message, &remedy);
        }
        match asked.writer_schema {
            _ if framed => {}
            None => {
                let remedy = "name the file of the schema, or a registry (registry.url)";
                let message = format!("plain {name} cannot be read without its writer's schema");
                problem(asked.schema_key, message, remedy);
            }
            Some(path) => match of_writer(&asked, &asked.fields(schema), path, config) {
                Err(what) => problem(asked.schema_key, what, "correct the file, or name another one"),
                Ok((_, missing)) => {
                    for attribute in missing {
                        let attribute = &schema.attributes[attribute];
                        if !attribute.optional {
                            let place = attribute.segments().join("/");
                            let message = format!("it has no field /{place}, where attribute {:?} is", attribute.name);
                            problem(asked.schema_key, message, "correct `pointer` of the attribute in the schema");
                        }
                    }
                }
            },
        }
    }
    found
}

/// The decoder of plain records of a writer's schema, and the attributes to which nothing in it leads.
fn of_writer(
    asked: &PartAsked<'_>,
    fields: &[(usize, Field)],
    path: &Path,
    config: &Config,
) -> Result<(Box<dyn Decoder>, Vec<usize>), String> {
    let (limits, unknown) = codec_limits(config);
    let wrong = |error: &dyn std::fmt::Display| format!("{} is {error}", path.display());
    if asked.format == PartFormat::Protobuf {
        let codec = ProtobufSchema::of_file(path)
            .and_then(|schema| schema.named(asked.message))
            .and_then(|message| message.codec(fields, limits, unknown))
            .map_err(|error| wrong(&error))?;
        let missing = codec.missing(fields);
        return Ok((Box::new(codec), missing));
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read ({error})", path.display()))?;
    let codec = AvroCodec::new(&text, fields, limits, unknown).map_err(|error| wrong(&error))?;
    let missing = codec.missing(fields);
    Ok((Box::new(codec), missing))
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

/// What the parts of messages are read by.
struct Reading<'a> {
    config: &'a Config,
    file: &'a str,
    telemetry: &'a Telemetry,
}

impl Reading<'_> {
    fn part(
        &self,
        asked: &PartAsked<'_>,
        wanted: Wanted,
        client: Option<&Arc<Client>>,
    ) -> Result<Box<dyn Part>, Problem> {
        let Self { config, file, telemetry } = *self;
        let (limits, unknown) = codec_limits(config);
        let Wanted { fields, types, optional } = wanted;
        let json = |fields: &[(usize, Field)]| JsonCodec::of_part(fields, limits).with_unknown(unknown);
        let framed = asked.is_framed(config);
        if let (true, Some(client), Some(format)) = (framed, client, asked.format.framed_as()) {
            let wanted = WantedFields { format, fields, types, optional, limits, unknown };
            return Ok(Box::new(Framed::new(Arc::clone(client), wanted, telemetry.clone())));
        }
        Ok(match asked.format {
            PartFormat::Text => Box::new(Plain(Box::new(TextCodec::new(&fields, limits)))),
            PartFormat::Json if framed => Box::new(FramedJson(json(&fields))),
            PartFormat::Json => Box::new(Plain(Box::new(json(&fields)))),
            PartFormat::Avro | PartFormat::Protobuf => {
                let path = asked.writer_schema.unwrap_or(Path::new(""));
                let found = of_writer(asked, &fields, path, config);
                let (decoder, _) =
                    found.map_err(|what| Problem::new(file, asked.schema_key, what, "correct the file"))?;
                Box::new(Plain(decoder))
            }
        })
    }
}
