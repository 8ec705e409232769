//! Decoders of the records in messages.

use super::message_parts::{MessagePartConfig, PartField, PartFormat, schema_lookup};
use super::record_formats::codec_limits;
use crate::config::{Config, ConfigProblem, SourceKind};
use crate::io::topic_lines::{KEY_CELL, VALUE_CELL};
use crate::telemetry::Telemetry;
use std::sync::Arc;
use throng_core::values::row_filter::RowFilter;
use throng_core::values::schema::{Attribute, AttributeOrigin, Schema};
use throng_formats::FieldPath;
use throng_formats::message::MessageDecoder;

/// Attributes in the messages of one topic, with their positions in a record.
struct TopicAttributes(Vec<(usize, Attribute)>);

impl TopicAttributes {
    fn of(schema: &Schema, topic: &str) -> Self {
        let attributes = schema.attributes.iter().enumerate();
        Self(attributes.filter_map(|(at, attribute)| Some((at, attribute.in_topic(topic)?))).collect())
    }

    fn from(&self, origin: &AttributeOrigin) -> impl Iterator<Item = (usize, &Attribute)> {
        self.0.iter().filter(move |(_, attribute)| attribute.from == *origin).map(|(at, attribute)| (*at, attribute))
    }

    fn wanted_fields(&self, origin: &AttributeOrigin) -> Vec<PartField> {
        let of = |(at, a): (usize, &Attribute)| PartField {
            at,
            name: format!("attribute {:?}", a.name),
            field: FieldPath::for_attribute_path(a),
            kind: Some(a.kind()),
            optional: a.optional,
        };
        self.from(origin).map(of).collect()
    }
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

/// Decoder of the messages of one topic, and the filter of their records.
pub type TopicDecoder = (Arc<MessageDecoder>, RowFilter);

/// Builds the decoders of messages, one per source topic.
///
/// # Errors
/// Fails for problems of the configured files, and for attributes that do not fit the formats.
pub fn message_decoders(
    config: &Config,
    schema: &Schema,
    file: &str,
    telemetry: &Telemetry,
) -> Result<Vec<TopicDecoder>, Vec<ConfigProblem>> {
    let problems = problems(config, schema, file);
    if !problems.is_empty() {
        return Err(problems);
    }
    let lookup = schema_lookup(config, file, telemetry).map_err(|problem| vec![problem])?;
    let topic_decoder = |topic: &String| -> Result<TopicDecoder, Vec<ConfigProblem>> {
        let attributes = TopicAttributes::of(schema, topic);
        let decoder = |asked: &MessagePartConfig<'_>| {
            asked.decoder(config, lookup.as_ref(), file, telemetry).map_err(|problem| vec![problem])
        };
        let key = key(config, attributes.wanted_fields(&AttributeOrigin::Key));
        let headers = attributes.0.iter().filter_map(|(at, a)| match &a.from {
            AttributeOrigin::Header(name) => Some((name.clone(), *at)),
            _ => None,
        });
        let from = |origin: &AttributeOrigin| attributes.from(origin).map(|(at, _)| at).collect();
        let messages = MessageDecoder {
            value: decoder(&value(config, attributes.wanted_fields(&AttributeOrigin::Value)))?,
            key: (!key.wanted.is_empty()).then(|| decoder(&key)).transpose()?,
            headers: headers.collect(),
            max_header_bytes: codec_limits(config).0.max_record_bytes,
            timestamps: from(&AttributeOrigin::Timestamp),
            topics: from(&AttributeOrigin::Topic),
        };
        let filter = RowFilter::of(attributes.0.iter().map(|(at, attribute)| (*at, attribute)));
        Ok((Arc::new(messages), filter))
    };
    if schema.differs_by_topic() {
        return config.source.topics.iter().map(topic_decoder).collect();
    }
    // A decoder caches writer schemas: topics share it.
    let shared = config.source.topics.first().map(topic_decoder).transpose()?;
    Ok(config.source.topics.iter().filter_map(|_| shared.clone()).collect())
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
    let mut found: Vec<ConfigProblem> = schema
        .named_topics()
        .filter(|(_, topic)| config.source.topics.iter().all(|read| read != topic))
        .map(|(attribute, topic)| {
            let message = format!("attribute {attribute:?} of the schema names topic {topic:?}, which is not read");
            ConfigProblem::new(file, "source.topics", message, "add the topic, or correct its name in the schema")
        })
        .collect();
    let topics = if schema.differs_by_topic() {
        &config.source.topics[..]
    } else {
        config.source.topics.get(..1).unwrap_or_default()
    };
    for topic in topics {
        let attributes = TopicAttributes::of(schema, topic);
        let (value, key) = (
            value(config, attributes.wanted_fields(&AttributeOrigin::Value)),
            key(config, attributes.wanted_fields(&AttributeOrigin::Key)),
        );
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
    }
    found
}

/// A file has only values of one topic; joined attributes come from profiles.
fn file_problems(schema: &Schema, file: &str) -> Vec<ConfigProblem> {
    let by_topic = schema.attributes.iter().filter(|a| a.selection.differs_by_topic()).map(|a| {
        let message = format!("attribute {:?} of the schema differs by topic, but a file has no topics", a.name);
        ConfigProblem::new(file, "source.kind", message, "read topics, or remove `topics` and `pointers` in the schema")
    });
    let of_messages = |a: &&Attribute| a.from != AttributeOrigin::Value && a.from.join().is_none();
    let problem = |a: &Attribute| {
        let message =
            format!("attribute {:?} of the schema has from = {:?}, but a file has no messages", a.name, a.from.name());
        ConfigProblem::new(file, "source.kind", message, "read a topic, or set from = \"value\" in the schema")
    };
    by_topic.chain(schema.attributes.iter().map(AsRef::as_ref).filter(of_messages).map(problem)).collect()
}
