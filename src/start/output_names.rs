//! What the schemas of a release call its attributes and groups.

use crate::config::{Config, Format, Problem, SinkKind};
use crate::io::registry::FramedAs;
use crate::records::canonical::Type;
use crate::records::schema::{Attribute, Schema};
use std::collections::BTreeMap;

/// The kind of the schemas under which lines leave; none where they have none.
#[must_use]
pub fn written_under(config: &Config) -> Option<FramedAs> {
    if config.sink.kind != SinkKind::Kafka {
        return None;
    }
    match config.sink.format() {
        Format::Avro => Some(FramedAs::Avro),
        Format::Protobuf => Some(FramedAs::Protobuf),
        Format::Json if config.sink.framed == Some(true) => Some(FramedAs::Json),
        Format::Json | Format::Csv | Format::Parquet => None,
    }
}

/// Whether lines have the number of their schema before them.
#[must_use]
pub fn is_framed(config: &Config) -> bool {
    written_under(config).is_some() && config.registry.url.is_some() && config.sink.framed != Some(false)
}

/// A name as schemas take it: letters, digits and underscores, no digit first.
#[must_use]
pub fn schema_name(name: &str) -> String {
    let mut out: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}

/// The field of an attribute's texts, where its exact values have one of their own.
#[must_use]
pub fn text_name(attribute: &Attribute) -> Option<String> {
    let typed = matches!(attribute.kind(), Type::Integer | Type::Float | Type::Boolean);
    typed.then(|| format!("{}_text", schema_name(&attribute.name)))
}

/// Attributes that a schema would call the same, and frames that cannot be.
#[must_use]
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    let mut found = Vec::new();
    let under = written_under(config);
    if config.sink.framed == Some(true) && config.sink.kind == SinkKind::File {
        let message = "only messages of a topic have frames";
        found.push(Problem::new(file, "sink.framed", message, "remove the key, or write a topic"));
    }
    if config.sink.framed == Some(true) && under.is_some() && config.registry.url.is_none() {
        let message = "framed records have their schemas in a registry";
        found.push(Problem::new(file, "registry.url", message, "name it, or remove sink.framed"));
    }
    let (kind, protobuf) = match under {
        Some(FramedAs::Avro) => ("Avro", false),
        Some(FramedAs::Protobuf) => ("Protobuf", true),
        Some(FramedAs::Json) | None => return found,
    };
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for index in schema.releasable() {
        let attribute = &schema.attributes[index];
        let own = [Some(schema_name(&attribute.name)), text_name(attribute).filter(|_| protobuf)];
        for field in own.into_iter().flatten() {
            // Names that differ in this alone have one name in Protobuf's JSON, which its compilers refuse.
            let spelled = if protobuf { field.replace('_', "").to_ascii_lowercase() } else { field.clone() };
            if let Some(other) = names.insert(spelled, &attribute.name) {
                let message = format!(
                    "attributes {other:?} and {:?} have one name in {kind}, or names too much alike: {field:?}",
                    attribute.name
                );
                found.push(Problem::new(file, "sink.format", message, "rename one of them in the record schema"));
            }
        }
    }
    found
}
