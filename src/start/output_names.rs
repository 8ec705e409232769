//! What the schemas of a release call its attributes and groups.

use crate::anonymity::planner::GroupShape;
use crate::config::{Config, Format, JOINED, Problem, Rows, SinkKind};
use crate::io::registry::FramedAs;
use crate::records::canonical::Type;
use crate::records::schema::{Attribute, Schema};
use std::collections::{BTreeMap, BTreeSet};

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

/// What leaves in one line, and where its schema is registered.
#[derive(Debug)]
pub struct Output {
    /// The group, or what stands for all of them.
    pub name: String,
    /// Its attributes, in the order of a line.
    pub attributes: Vec<usize>,
    /// What the schema calls it.
    pub record: String,
    /// The subject in the registry.
    pub subject: String,
}

/// What each line carries, in the order in which groups leave; one for all of them where rows are joined.
///
/// A topic of one group has the subject `TOPIC-value`; where several groups share a topic, each has `TOPIC-NAMESPACE.RECORD`.
#[must_use]
pub fn outputs(config: &Config, schema: &Schema, shapes: &[GroupShape]) -> Vec<Output> {
    if config.sink.rows == Rows::Joined {
        let all: BTreeSet<usize> = shapes.iter().flat_map(|shape| shape.without_ladder().attributes()).collect();
        let subject = format!("{}-value", config.sink.topic_of(JOINED));
        let (name, record) = (JOINED.to_owned(), JOINED.to_owned());
        return vec![Output { name, attributes: all.into_iter().collect(), record, subject }];
    }
    let topics: Vec<String> = shapes.iter().map(|shape| config.sink.topic_of(&shape.name)).collect();
    let alone = |topic: &String| topics.iter().filter(|other| *other == topic).count() == 1;
    let namespace = namespace(schema);
    let output = |(shape, topic): (&GroupShape, &String)| {
        let record = schema_name(&shape.name);
        let subject = if alone(topic) { format!("{topic}-value") } else { format!("{topic}-{namespace}.{record}") };
        Output { name: shape.name.clone(), attributes: shape.without_ladder().attributes(), record, subject }
    };
    shapes.iter().zip(&topics).map(output).collect()
}

/// What the names of records stand in.
#[must_use]
pub fn namespace(schema: &Schema) -> String {
    format!("throng.{}", schema_name(&schema.name))
}

/// Groups whose lines would have one schema in a topic: readers could not tell them apart.
#[must_use]
pub fn collisions(config: &Config, schema: &Schema, shapes: &[GroupShape], file: &str) -> Vec<Problem> {
    if written_under(config).is_none() {
        return Vec::new();
    }
    let mut subjects: BTreeMap<String, String> = BTreeMap::new();
    let mut found = Vec::new();
    for Output { name, subject, .. } in outputs(config, schema, shapes) {
        if let Some(other) = subjects.insert(subject.clone(), name.clone()) {
            let message =
                format!("groups {other:?} and {name:?} have one name in the schemas of what leaves, {subject:?}");
            let remedy = "rename one of the groups, or give each a topic of its own ({group} in sink.topic)";
            found.push(Problem::new(file, "group", message, remedy));
        }
    }
    found
}
