//! What the schemas of a release call its attributes and groups.

use crate::anonymity::planner::GroupShape;
use crate::config::{Config, Format, JOINED, Problem, Rows, SinkKind};
use crate::io::registry::FramedAs;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::canonical::Type;
use throng_core::values::schema::{Attribute, Schema};

/// The kind of the schemas under which lines leave; none where they have none.
pub fn written_under(config: &Config) -> Option<FramedAs> {
    if config.sink.kind != SinkKind::Kafka {
        return None;
    }
    match config.sink.format() {
        Format::Avro => Some(FramedAs::Avro),
        Format::Protobuf => Some(FramedAs::Protobuf),
        Format::JsonSchema => Some(FramedAs::Json),
        Format::Json | Format::Csv | Format::Parquet => None,
    }
}

/// Whether lines have the number of their schema before them.
pub fn is_framed(config: &Config) -> bool {
    written_under(config).is_some() && config.registry.url.is_some()
}

/// A name as schemas take it: letters, digits and underscores, no digit first.
pub fn schema_name(name: &str) -> String {
    let mut out: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}

/// The field of an attribute's texts, where its exact values have one of their own.
pub fn text_name(attribute: &Attribute) -> Option<String> {
    let typed = matches!(attribute.kind(), Type::Integer | Type::Float | Type::Boolean);
    typed.then(|| format!("{}_text", schema_name(&attribute.name)))
}

/// The choice between the two fields of such an attribute.
pub fn choice_name(attribute: &Attribute) -> String {
    format!("{}_cell", schema_name(&attribute.name))
}

/// Attributes that a schema would call the same, and a registry that is not there.
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    let mut found = Vec::new();
    let under = written_under(config);
    if under == Some(FramedAs::Json) && config.registry.url.is_none() {
        let message = "lines under a JSON Schema have its number in a registry";
        found.push(Problem::new(file, "registry.url", message, "name it, or set sink.format = \"json\""));
    }
    let (kind, protobuf) = match under {
        Some(FramedAs::Avro) => ("Avro", false),
        Some(FramedAs::Protobuf) => ("Protobuf", true),
        Some(FramedAs::Json) | None => return found,
    };
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for index in schema.releasable() {
        let attribute = &schema.attributes[index];
        let text = text_name(attribute).filter(|_| protobuf);
        // A `oneof` has a name among those of the fields.
        let choice = text.as_ref().map(|_| choice_name(attribute));
        for field in [Some(schema_name(&attribute.name)), text, choice].into_iter().flatten() {
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
pub fn namespace(schema: &Schema) -> String {
    format!("throng.{}", schema_name(&schema.name))
}

/// Groups whose lines would have one schema in a topic: readers could not tell them apart.
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
    fn names_that_one_message_cannot_have_are_refused() {
        for (other, kind) in
            [("pulse_text", "string"), ("pulse_cell", "string"), ("Pulse-Cell", "integer"), ("pul se", "string")]
        {
            let names = [("pulse", "integer"), (other, kind)];
            let said = found(&names, "protobuf");
            assert!(said.iter().any(|said| said.contains("\"pulse\"") && said.contains(other)), "{other}: {said:?}");
        }
        // Texts have one field and no choice; Avro has neither.
        assert_eq!(found(&[("pulse", "string"), ("pulse_cell", "string")], "protobuf"), Vec::<String>::new());
        assert_eq!(found(&[("pulse", "integer"), ("pulse_cell", "string")], "avro"), Vec::<String>::new());
    }
}
