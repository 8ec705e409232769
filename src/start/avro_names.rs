//! What Avro calls the attributes and groups of a release.

use crate::config::{Config, Format, Problem, SinkKind};
use crate::records::schema::Schema;
use std::collections::BTreeMap;

/// Whether lines leave as Avro.
#[must_use]
pub fn is_avro(config: &Config) -> bool {
    config.sink.kind == SinkKind::Kafka && config.sink.format() == Format::Avro
}

/// A name as Avro takes it: letters, digits and underscores, no digit first.
#[must_use]
pub fn avro_name(name: &str) -> String {
    let mut out: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}

/// Attributes that Avro would call the same.
#[must_use]
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    if !is_avro(config) {
        return Vec::new();
    }
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    let mut found = Vec::new();
    for index in schema.releasable() {
        let name = &schema.attributes[index].name;
        if let Some(other) = names.insert(avro_name(name), name) {
            let message = format!("attributes {other:?} and {name:?} have one name in Avro, {:?}", avro_name(name));
            found.push(Problem::new(file, "sink.format", message, "rename one of them in the record schema"));
        }
    }
    found
}
