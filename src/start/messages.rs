//! How the cells of records are found in the messages of topics.

use super::reading::codec_limits;
use crate::codec::{AvroCodec, Decoder, Field, JsonCodec, Limits, TextCodec, Unknown};
use crate::config::{Config, Format, KeyFormat, Problem, SourceKind};
use crate::io::message::{Messages, Part, Plain};
use crate::io::registry::{Access, Client, Framed, FramedJson};
use crate::records::schema::{Attribute, Origin, Schema};
use std::path::Path;
use std::sync::Arc;

/// How one part of a message is written down.
#[derive(Clone, Copy, PartialEq)]
enum PartFormat {
    Text,
    Json,
    Avro,
}

/// One part of a message, as it is configured.
struct PartAsked<'a> {
    format: PartFormat,
    framed: Option<bool>,
    /// The key of the configuration that says so.
    framed_key: &'static str,
    writer_schema: Option<&'a Path>,
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
            // Formats of whole files: refused where a topic is configured.
            Format::Json | Format::Csv | Format::Parquet => PartFormat::Json,
        };
        Self {
            format,
            framed: source.framed,
            framed_key: "source.framed",
            writer_schema: source.writer_schema.as_deref(),
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
        };
        Self {
            format,
            framed: source.key_framed,
            framed_key: "source.key_framed",
            writer_schema: source.key_writer_schema.as_deref(),
            schema_key: "source.key_writer_schema",
            origin: Origin::Key,
        }
    }

    fn is_framed(&self, config: &Config) -> bool {
        self.framed.unwrap_or(self.format == PartFormat::Avro && config.registry.url.is_some())
    }

    fn attributes<'s>(&self, schema: &'s Schema) -> impl Iterator<Item = (usize, &'s Attribute)> {
        let attributes = schema.attributes.iter().enumerate().map(|(i, a)| (i, a.as_ref()));
        attributes.filter(|(_, attribute)| attribute.from == self.origin)
    }

    fn fields(&self, schema: &Schema) -> Vec<(usize, Field)> {
        self.attributes(schema).map(|(i, a)| (i, Field::of(a))).collect()
    }
}

/// The decoder of messages.
///
/// # Errors
/// What is wrong with the files that the configuration names, and with the records' attributes in the light of the formats.
pub fn messages(config: &Config, schema: &Schema, file: &str) -> Result<Messages, Vec<Problem>> {
    let problems = problems(config, schema, file);
    if !problems.is_empty() {
        return Err(problems);
    }
    let client = client(config, file).map_err(|problem| vec![problem])?;
    let part = |asked: &PartAsked<'_>| part(asked, config, schema, client.as_ref(), file);
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
        problem("source.key_format", message, "set \"json\" or \"avro\", or keep one of them");
    }
    for asked in [value, key] {
        let used = asked.origin == Origin::Value || !keyed.is_empty();
        let framed = asked.is_framed(config);
        if used && framed && asked.format == PartFormat::Text {
            problem(asked.framed_key, "a text has no frame".into(), "set another format, or remove the key");
        }
        if !used || asked.format != PartFormat::Avro {
            continue;
        }
        if framed && config.registry.url.is_none() {
            problem("registry.url", "framed records have their schemas in a registry".into(), "name it");
        }
        if framed && asked.framed.is_none() && asked.writer_schema.is_some() {
            let message = "a writer's schema is named for plain Avro, and with registry.url frames are expected".into();
            problem(asked.framed_key, message, "set it to false for plain Avro, or remove the writer's schema");
        }
        match asked.writer_schema {
            _ if framed => {}
            None => {
                let remedy = "name the file of the schema, or a registry (registry.url)";
                problem(asked.schema_key, "plain Avro cannot be read without its writer's schema".into(), remedy);
            }
            Some(path) => match plain_avro(&asked, schema, path, config) {
                Err(what) => problem(asked.schema_key, what, "correct the file, or name another one"),
                Ok(codec) => {
                    for attribute in codec.missing(&asked.fields(schema)) {
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

fn plain_avro(asked: &PartAsked<'_>, schema: &Schema, path: &Path, config: &Config) -> Result<AvroCodec, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read ({error})", path.display()))?;
    let (limits, unknown) = codec_limits(config);
    AvroCodec::new(&text, &asked.fields(schema), limits, unknown)
        .map_err(|error| format!("{} is {error}", path.display()))
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

fn part(
    asked: &PartAsked<'_>,
    config: &Config,
    schema: &Schema,
    client: Option<&Arc<Client>>,
    file: &str,
) -> Result<Box<dyn Part>, Problem> {
    let (limits, unknown) = codec_limits(config);
    let fields = asked.fields(schema);
    let json = |fields: &[(usize, Field)]| json(asked, fields, limits, unknown);
    let plain = |decoder: Box<dyn Decoder>| -> Box<dyn Part> { Box::new(Plain(decoder)) };
    Ok(match (asked.format, asked.is_framed(config), client) {
        (PartFormat::Text, ..) => plain(Box::new(TextCodec::new(&fields, limits))),
        (PartFormat::Json, true, _) => Box::new(FramedJson(json(&fields))),
        (PartFormat::Json, false, _) => plain(Box::new(json(&fields))),
        (PartFormat::Avro, true, Some(client)) => {
            let optional = asked.attributes(schema).filter(|(_, a)| a.optional).map(|(i, _)| i).collect();
            Box::new(Framed::new(Arc::clone(client), fields, optional, limits, unknown))
        }
        (PartFormat::Avro, ..) => {
            let path = asked.writer_schema.unwrap_or(Path::new(""));
            let codec = plain_avro(asked, schema, path, config);
            plain(Box::new(codec.map_err(|what| Problem::new(file, asked.schema_key, what, "correct the file"))?))
        }
    })
}

/// A key may be one value; a value that is no object is no record.
fn json(asked: &PartAsked<'_>, fields: &[(usize, Field)], limits: Limits, unknown: Unknown) -> JsonCodec {
    debug_assert!(asked.origin == Origin::Key || fields.iter().all(|(_, field)| !field.pointer.is_empty()));
    JsonCodec::of_part(fields, limits).with_unknown(unknown)
}
