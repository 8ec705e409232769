//! Avro schemas of the output.

use super::output_names::schema_name;
use crate::config::Config;
use serde_json::{Value, json};
use throng_core::values::canonical::AttributeType;
use throng_core::values::schema::Attribute;
use throng_formats::CellKind;

/// Returns the schema of lines; every column is a union with null (missing) and string (several values, or `"*"`).
#[must_use]
pub fn avro_schema(config: &Config, attributes: &[&Attribute], record: &str, namespace: &str) -> Value {
    let field = |attribute: &&Attribute| {
        let mut field = json!({
            "name": schema_name(&attribute.name),
            "type": cell_kind_of(attribute).avro_union_branches(),
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
        "doc": output_description(config),
        "fields": attributes.iter().map(field).collect::<Vec<_>>(),
    })
}

/// Returns the description of the output.
#[must_use]
pub fn output_description(config: &Config) -> String {
    let truth =
        if config.treatment.may_be_untruthful() { "numbers may be those of others or means" } else { "truthful" };
    format!("Fragments released by throng, k = {}; {truth}; \"*\" is suppressed", config.privacy.k)
}

/// Returns the type of an attribute's exact values.
#[must_use]
pub fn cell_kind_of(attribute: &Attribute) -> CellKind {
    match attribute.kind() {
        AttributeType::Integer => CellKind::Integer,
        AttributeType::Float => CellKind::Float,
        AttributeType::Boolean => CellKind::Boolean,
        AttributeType::String | AttributeType::Date | AttributeType::Timestamp | AttributeType::Coordinates => {
            CellKind::Text
        }
    }
}
