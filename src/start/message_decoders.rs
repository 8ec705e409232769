//! Decoders of the records in messages.

use super::message_parts::{MessagePartConfig, PartField, PartFormat, schema_lookup};
use super::record_formats::codec_limits;
use crate::config::{Config, ConfigProblem, SourceKind};
use crate::io::topic_lines::{KEY_CELL, VALUE_CELL};
use crate::telemetry::Telemetry;
use throng_core::values::schema::{Attribute, AttributeOrigin, Schema};
use throng_formats::FieldPath;
use throng_formats::message::MessageDecoder;

fn attributes<'s>(schema: &'s Schema, origin: &AttributeOrigin) -> impl Iterator<Item = (usize, &'s Attribute)> {
    let attributes = schema.attributes.iter().enumerate().map(|(i, a)| (i, a.as_ref()));
    attributes.filter(move |(_, attribute)| attribute.from == *origin)
}

fn wanted_fields(schema: &Schema, origin: &AttributeOrigin) -> Vec<PartField> {
    let of = |(at, a): (usize, &Attribute)| PartField {
        at,
        name: format!("attribute {:?}", a.name),
        field: FieldPath::for_attribute_path(a),
        kind: Some(a.kind()),
        optional: a.optional,
    };
    attributes(schema, origin).map(of).collect()
}

fn value(config: &Config, wanted: Vec<PartField>) -> MessagePartConfig<'_> {
    let source = &config.source;
    MessagePartConfig {
        format: PartFormat::of_values(source.format()),
        format_key: "source.format".into(),
        writer_schema: source.writer_schema.as_deref(),
        message: source.message.as_deref(),
        is_value: true,
        wanted,
        unknown: codec_limits(config).1,
    }
}

fn key(config: &Config, wanted: Vec<PartField>) -> MessagePartConfig<'_> {
    MessagePartConfig {
        format: PartFormat::of_keys(config.source.key_format),
        format_key: "source.key_format".into(),
        writer_schema: None,
        message: None,
        is_value: false,
        ..value(config, wanted)
    }
}

/// Builds the decoder of messages.
///
/// # Errors
/// Fails for problems of the configured files, and for attributes that do not fit the formats.
pub fn message_decoder(
    config: &Config,
    schema: &Schema,
    file: &str,
    telemetry: &Telemetry,
) -> Result<MessageDecoder, Vec<ConfigProblem>> {
    let problems = problems(config, schema, file);
    if !problems.is_empty() {
        return Err(problems);
    }
    let lookup = schema_lookup(config, file, telemetry).map_err(|problem| vec![problem])?;
    let decoder = |asked: &MessagePartConfig<'_>| {
        asked.decoder(config, lookup.as_ref(), file, telemetry).map_err(|problem| vec![problem])
    };
    let key = key(config, wanted_fields(schema, &AttributeOrigin::Key));
    let numbered = || schema.attributes.iter().enumerate();
    let headers = numbered().filter_map(|(i, a)| match &a.from {
        AttributeOrigin::Header(name) => Some((name.clone(), i)),
        _ => None,
    });
    let from = |origin: &AttributeOrigin| attributes(schema, origin).map(|(i, _)| i).collect();
    Ok(MessageDecoder {
        value: decoder(&value(config, wanted_fields(schema, &AttributeOrigin::Value)))?,
        key: (!key.wanted.is_empty()).then(|| decoder(&key)).transpose()?,
        headers: headers.collect(),
        max_header_bytes: codec_limits(config).0.max_record_bytes,
        timestamps: from(&AttributeOrigin::Timestamp),
        topics: from(&AttributeOrigin::Topic),
    })
}

/// Builds a decoder without a schema: value and key are one cell each.
///
/// # Errors
/// Fails for problems of the configured files.
pub fn whole_message_decoder(
    config: &Config,
    file: &str,
    telemetry: &Telemetry,
) -> Result<MessageDecoder, ConfigProblem> {
    let lookup = schema_lookup(config, file, telemetry)?;
    let decoder = |asked: &MessagePartConfig<'_>| asked.decoder(config, lookup.as_ref(), file, telemetry);
    Ok(MessageDecoder {
        value: decoder(&value(config, vec![PartField::whole(VALUE_CELL)]))?,
        key: Some(decoder(&key(config, vec![PartField::whole(KEY_CELL)]))?),
        headers: Vec::new(),
        max_header_bytes: 0,
        timestamps: Vec::new(),
        topics: Vec::new(),
    })
}

/// Returns problems of the attributes as parts of messages or files.
#[must_use]
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<ConfigProblem> {
    if config.source.kind == SourceKind::File {
        return file_problems(schema, file);
    }
    let (value, key) = (
        value(config, wanted_fields(schema, &AttributeOrigin::Value)),
        key(config, wanted_fields(schema, &AttributeOrigin::Key)),
    );
    let mut found = Vec::new();
    if key.format.is_one_value() && key.wanted.len() > 1 {
        let message = format!(
            "a text or number key is one value, but {} attributes of the schema are read from it",
            key.wanted.len()
        );
        found.push(ConfigProblem::new(
            file,
            "source.key_format",
            message,
            "set \"json\", \"avro\" or \"protobuf\", or keep one of them",
        ));
    }
    found.extend([value, key].iter().flat_map(|asked| asked.problems(config, file)));
    found
}

/// A file has only values; joined attributes come from profiles.
fn file_problems(schema: &Schema, file: &str) -> Vec<ConfigProblem> {
    let of_messages = |a: &&Attribute| a.from != AttributeOrigin::Value && a.from.join().is_none();
    let problem = |a: &Attribute| {
        let message =
            format!("attribute {:?} of the schema has from = {:?}, but a file has no messages", a.name, a.from.name());
        ConfigProblem::new(file, "source.kind", message, "read a topic, or set from = \"value\" in the schema")
    };
    schema.attributes.iter().map(AsRef::as_ref).filter(of_messages).map(problem).collect()
}
