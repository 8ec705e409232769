//! What leaves as Avro: a schema for each group, derived from the record schema.

use super::output_names::schema_name;
use crate::config::Config;
use serde_json::{Value, json};
use throng_core::values::canonical::Type;
use throng_core::values::schema::Attribute;
use throng_formats::CellKind;

/// The Avro schema of lines with one cell for each of `attributes`: every column is a union with null (what is missing) and string
/// (a text that stands for several values, or `"*"`).
#[must_use]
pub fn avro_schema(config: &Config, attributes: &[&Attribute], record: &str, namespace: &str) -> Value {
    let field = |attribute: &&Attribute| {
        let mut field = json!({
            "name": schema_name(&attribute.name),
            "type": kind_of(attribute).branches(),
            "default": null,
        });
        if schema_name(&attribute.name) != attribute.name {
            field["doc"] = json!(attribute.name);
        }
        field
    };
    json!({
        "type": "record",
        "name": record,
        "namespace": namespace,
        "doc": about(config),
        "fields": attributes.iter().map(field).collect::<Vec<_>>(),
    })
}

/// What a schema says of what leaves under it.
#[must_use]
pub fn about(config: &Config) -> String {
    let truth =
        if config.treatment.may_be_untruthful() { "numbers may be those of others or means" } else { "truthful" };
    format!("Fragments released by throng, k = {}; {truth}; \"*\" is suppressed", config.privacy.k)
}

/// The type of an attribute's exact values in a line.
#[must_use]
pub fn kind_of(attribute: &Attribute) -> CellKind {
    match attribute.kind() {
        Type::Integer => CellKind::Integer,
        Type::Float => CellKind::Float,
        Type::Boolean => CellKind::Boolean,
        Type::String | Type::Date | Type::Timestamp | Type::Coordinates => CellKind::Text,
    }
}
