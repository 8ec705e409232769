//! How the cells of records are found in the messages of topics.

use super::parts::{PartAsked, PartFormat, Wanted, lookup};
use super::reading::codec_limits;
use crate::config::{Config, Problem, SourceKind};
use crate::io::message::Messages;
use crate::io::topic_lines::{KEY, VALUE};
use crate::telemetry::Telemetry;
use throng_core::values::schema::{Attribute, Origin, Schema};
use throng_formats::Field;

fn attributes<'s>(schema: &'s Schema, origin: &Origin) -> impl Iterator<Item = (usize, &'s Attribute)> {
    let attributes = schema.attributes.iter().enumerate().map(|(i, a)| (i, a.as_ref()));
    attributes.filter(move |(_, attribute)| attribute.from == *origin)
}

fn wanted(schema: &Schema, origin: &Origin) -> Vec<Wanted> {
    let of = |(at, a): (usize, &Attribute)| Wanted {
        at,
        name: format!("attribute {:?}", a.name),
        field: Field::of(a),
        kind: Some(a.kind()),
        optional: a.optional,
    };
    attributes(schema, origin).map(of).collect()
}

fn value(config: &Config, wanted: Vec<Wanted>) -> PartAsked<'_> {
    let source = &config.source;
    PartAsked {
        format: PartFormat::of_values(source.format()),
        format_key: "source.format".into(),
        writer_schema: source.writer_schema.as_deref(),
        message: source.message.as_deref(),
        is_value: true,
        wanted,
        unknown: codec_limits(config).1,
    }
}

fn key(config: &Config, wanted: Vec<Wanted>) -> PartAsked<'_> {
    PartAsked {
        format: PartFormat::of_keys(config.source.key_format),
        format_key: "source.key_format".into(),
        writer_schema: None,
        message: None,
        is_value: false,
        ..value(config, wanted)
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
    let lookup = lookup(config, file, telemetry).map_err(|problem| vec![problem])?;
    let decoder = |asked: &PartAsked<'_>| {
        asked.decoder(config, lookup.as_ref(), file, telemetry).map_err(|problem| vec![problem])
    };
    let key = key(config, wanted(schema, &Origin::Key));
    let numbered = || schema.attributes.iter().enumerate();
    let headers = numbered().filter_map(|(i, a)| match &a.from {
        Origin::Header(name) => Some((name.clone(), i)),
        _ => None,
    });
    let from = |origin: &Origin| attributes(schema, origin).map(|(i, _)| i).collect();
    Ok(Messages {
        value: decoder(&value(config, wanted(schema, &Origin::Value)))?,
        key: (!key.wanted.is_empty()).then(|| decoder(&key)).transpose()?,
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
    let lookup = lookup(config, file, telemetry)?;
    let decoder = |asked: &PartAsked<'_>| asked.decoder(config, lookup.as_ref(), file, telemetry);
    Ok(Messages {
        value: decoder(&value(config, vec![Wanted::whole(VALUE)]))?,
        key: Some(decoder(&key(config, vec![Wanted::whole(KEY)]))?),
        headers: Vec::new(),
        max_header_bytes: 0,
        timestamps: Vec::new(),
        topics: Vec::new(),
    })
}

/// What is wrong with the attributes of `schema` as parts of the messages, or of the file, that `config` reads.
#[must_use]
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    if config.source.kind == SourceKind::File {
        return in_file(schema, file);
    }
    let (value, key) = (value(config, wanted(schema, &Origin::Value)), key(config, wanted(schema, &Origin::Key)));
    let mut found = Vec::new();
    if key.format.is_one_value() && key.wanted.len() > 1 {
        let message = format!(
            "a key of text or a number is one value, and {} attributes of the schema are in it",
            key.wanted.len()
        );
        found.push(Problem::new(
            file,
            "source.key_format",
            message,
            "set \"json\", \"avro\" or \"protobuf\", or keep one of them",
        ));
    }
    found.extend([value, key].iter().flat_map(|asked| asked.problems(config, file)));
    found
}

/// A file has values alone; what is joined to its records comes from elsewhere.
fn in_file(schema: &Schema, file: &str) -> Vec<Problem> {
    let of_messages = |a: &&Attribute| a.from != Origin::Value && a.from.join().is_none();
    let problem = |a: &Attribute| {
        let message =
            format!("attribute {:?} of the schema is from = {:?}, and a file has no messages", a.name, a.from.name());
        Problem::new(file, "source.kind", message, "read a topic, or take the records' own value in the schema")
    };
    schema.attributes.iter().map(AsRef::as_ref).filter(of_messages).map(problem).collect()
}
