//! Names in the schemas of a release.

use crate::config::{Config, ConfigProblem, JOINED_OUTPUT, RecordFormat, RowContent, SinkKind};
use crate::io::registry::FrameEncoding;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::plan::GroupShape;
use throng_core::values::canonical::AttributeType;
use throng_core::values::schema::{Attribute, Schema};

/// Returns the schema type of the output lines, if any.
pub fn output_schema_kind(config: &Config) -> Option<FrameEncoding> {
    if config.sink.kind != SinkKind::Kafka {
        return None;
    }
    match config.sink.format() {
        RecordFormat::Avro => Some(FrameEncoding::Avro),
        RecordFormat::Protobuf => Some(FrameEncoding::Protobuf),
        RecordFormat::JsonSchema => Some(FrameEncoding::Json),
        RecordFormat::Json | RecordFormat::Csv | RecordFormat::Parquet | RecordFormat::AppleHealth => None,
    }
}

/// Returns true if lines start with their schema number.
pub fn is_framed(config: &Config) -> bool {
    output_schema_kind(config).is_some() && config.registry.url.is_some()
}

/// Converts to letters, digits and underscores, without a leading digit.
pub fn schema_name(name: &str) -> String {
    let mut out: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}

/// Returns the field of an attribute's texts, if separate from its exact values.
pub fn text_name(attribute: &Attribute) -> Option<String> {
    let typed = matches!(attribute.kind(), AttributeType::Integer | AttributeType::Float | AttributeType::Boolean);
    typed.then(|| format!("{}_text", schema_name(&attribute.name)))
}

/// Returns the `oneof` of these two fields.
pub fn choice_name(attribute: &Attribute) -> String {
    format!("{}_cell", schema_name(&attribute.name))
}

/// Reports equal names in a schema, and a missing registry.
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<ConfigProblem> {
    let mut found = Vec::new();
    let under = output_schema_kind(config);
    if under == Some(FrameEncoding::Json) && config.registry.url.is_none() {
        let message = "lines with a JSON Schema contain its number in a registry, but no registry is set";
        found.push(ConfigProblem::new(file, "registry.url", message, "set it, or sink.format = \"json\""));
    }
    let (kind, protobuf) = match under {
        Some(FrameEncoding::Avro) => ("Avro", false),
        Some(FrameEncoding::Protobuf) => ("Protobuf", true),
        Some(FrameEncoding::Json) | None => return found,
    };
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for index in schema.releasable() {
        let attribute = &schema.attributes[index];
        let text = text_name(attribute).filter(|_| protobuf);
        // A `oneof` shares the namespace of the fields.
        let choice = text.as_ref().map(|_| choice_name(attribute));
        for field in [Some(schema_name(&attribute.name)), text, choice].into_iter().flatten() {
            // Protobuf compilers reject names that differ only in case or underscores.
            let spelled = if protobuf { field.replace('_', "").to_ascii_lowercase() } else { field.clone() };
            if let Some(other) = names.insert(spelled, &attribute.name) {
                let message = format!(
                    "attributes {other:?} and {:?} have the same or too similar names in {kind}: {field:?}",
                    attribute.name
                );
                found.push(ConfigProblem::new(file, "sink.format", message, "rename one of them in the record schema"));
            }
        }
    }
    found
}

/// Output line and its schema registration.
#[derive(Debug)]
pub struct OutputRecord {
    /// Name of the group, or of the joined rows.
    pub name: String,
    /// Attributes in line order.
    pub attributes: Vec<usize>,
    /// Record name in the schema.
    pub record: String,
    /// Subject name in the registry.
    pub subject: String,
}

/// Returns the outputs in group order; one if rows are joined.
///
/// The subject is `TOPIC-value`, or `TOPIC-NAMESPACE.RECORD` if several groups share a topic.
pub fn outputs(config: &Config, schema: &Schema, shapes: &[GroupShape]) -> Vec<OutputRecord> {
    if config.sink.rows == RowContent::Joined {
        let all: BTreeSet<usize> = shapes.iter().flat_map(|shape| shape.without_ladder().attributes()).collect();
        let subject = format!("{}-value", config.sink.topic_of(JOINED_OUTPUT));
        let (name, record) = (JOINED_OUTPUT.to_owned(), JOINED_OUTPUT.to_owned());
        return vec![OutputRecord { name, attributes: all.into_iter().collect(), record, subject }];
    }
    let topics: Vec<String> = shapes.iter().map(|shape| config.sink.topic_of(&shape.name)).collect();
    let alone = |topic: &String| topics.iter().filter(|other| *other == topic).count() == 1;
    let namespace = namespace(schema);
    let output = |(shape, topic): (&GroupShape, &String)| {
        let record = schema_name(&shape.name);
        let subject = if alone(topic) { format!("{topic}-value") } else { format!("{topic}-{namespace}.{record}") };
        OutputRecord { name: shape.name.clone(), attributes: shape.without_ladder().attributes(), record, subject }
    };
    shapes.iter().zip(&topics).map(output).collect()
}

/// Returns the namespace of record names.
pub fn namespace(schema: &Schema) -> String {
    format!("throng.{}", schema_name(&schema.name))
}

/// Reports groups of one topic with equal schema names.
pub fn collisions(config: &Config, schema: &Schema, shapes: &[GroupShape], file: &str) -> Vec<ConfigProblem> {
    if output_schema_kind(config).is_none() {
        return Vec::new();
    }
    let mut subjects: BTreeMap<String, String> = BTreeMap::new();
    let mut found = Vec::new();
    for OutputRecord { name, subject, .. } in outputs(config, schema, shapes) {
        if let Some(other) = subjects.insert(subject.clone(), name.clone()) {
            let message =
                format!("groups {other:?} and {name:?} have the same name in the output schemas, {subject:?}");
            let remedy = "rename one of the groups, or give each its own topic ({group} in sink.topic)";
            found.push(ConfigProblem::new(file, "group", message, remedy));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;
    use std::path::Path;

    fn found(names: &[(&str, &str)], format: &str) -> Vec<String> {
        let each = |(name, kind): &(&str, &str)| format!("[[attribute]]\nname = {name:?}\ntype = {kind:?}\n");
        let text = format!("name = \"s\"\n{}", names.iter().map(each).collect::<String>());
        let schema = Schema::parse(&text, "schema.toml", Path::new("")).expect("a sound schema");
        let folder = tempfile::tempdir().expect("a temporary directory");
        let place = folder.path().display();
        crate::config::Secret::create(&folder.path().join("key")).expect("the secret");
        let config = format!(
            "[source]\ntopics = [\"raw\"]\n[sink]\ntopic = \"out\"\nformat = \"{format}\"\n[schema]\nfile = \"s.toml\"\n\
             [state]\npath = \"{place}/state\"\nsecret_file = \"{place}/key\"\n"
        );
        let config = parse(&config, "throng.toml", std::iter::empty()).expect("a configuration");
        problems(&config, &schema, "throng.toml").into_iter().map(|problem| problem.to_string()).collect()
    }

    #[test]
    fn conflicting_field_names_are_refused() {
        for (other, kind) in
            [("pulse_text", "string"), ("pulse_cell", "string"), ("Pulse-Cell", "integer"), ("pul se", "string")]
        {
            let names = [("pulse", "integer"), (other, kind)];
            let said = found(&names, "protobuf");
            assert!(said.iter().any(|said| said.contains("\"pulse\"") && said.contains(other)), "{other}: {said:?}");
        }
        assert_eq!(found(&[("pulse", "string"), ("pulse_cell", "string")], "protobuf"), Vec::<String>::new());
        assert_eq!(found(&[("pulse", "integer"), ("pulse_cell", "string")], "avro"), Vec::<String>::new());
    }
}
