//! JSON Schema (draft 2020-12) of the output.

use super::checked_config::CheckedConfig;
use super::nested_output::{attribute_path, is_nested};
use crate::config::{Config, JOINED_OUTPUT, RecordFormat, RowContent, SinkConfig, SinkKind};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use throng_core::plan::GroupShape;
use throng_core::values::canonical::AttributeType;
use throng_core::values::schema::{Attribute, Role};
use throng_formats::NestingStep;

/// Returns a JSON Schema for the lines of each group, by name, in group order; or one for joined rows.
///
/// A cell is a raw value, a text for several values, `"*"` or null; a raw `"*"` is `"\*"`. Absent cells are omitted, so
/// only joined rows require properties. `x-throng-*` give destination, levels, sharing and truthfulness.
#[must_use]
pub fn output_schemas(checked: &CheckedConfig) -> Value {
    if checked.config.sink.rows == RowContent::Joined {
        return json!({JOINED_OUTPUT: joined_rows_schema(checked)});
    }
    let group = |shape: &GroupShape| (shape.name.clone(), group_schema(checked, shape));
    Value::Object(checked.shapes.iter().map(group).collect())
}

/// Returns the JSON Schema of `output` (a group or joined rows) for registration as `title`, in draft 7, which every
/// registry supports.
#[must_use]
pub fn registered_json(checked: &CheckedConfig, output: &str, title: &str) -> Value {
    let mut schema = output_schemas(checked)[output].take();
    to_draft_7(&mut schema);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!(title);
    if let Some(schema) = schema.as_object_mut() {
        // The registry subject identifies it.
        schema.remove("x-throng-destination");
    }
    schema
}

/// In draft 7 `items` lists the positions, and `additionalItems` applies after them.
fn to_draft_7(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    if let Some(places) = schema.remove("prefixItems") {
        let rest = schema.insert("items".to_owned(), places);
        schema.extend(rest.map(|rest| ("additionalItems".to_owned(), rest)));
    }
    for place in schema.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        to_draft_7(place);
    }
    schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .for_each(|of| of.values_mut().for_each(to_draft_7));
}

/// Every attribute is required; `x-throng-groups` lists those released together.
fn joined_rows_schema(checked: &CheckedConfig) -> Value {
    let names = |shape: &GroupShape| {
        let attributes = shape.without_ladder().attributes();
        attributes.into_iter().map(|a| checked.schema.attributes[a].name.clone()).collect::<Vec<_>>()
    };
    let together: Map<String, Value> =
        checked.shapes.iter().map(|shape| (shape.name.clone(), json!(names(shape)))).collect();
    let all = |of: fn(&GroupShape) -> &Vec<usize>| {
        // A shared attribute appears once.
        checked.shapes.iter().flat_map(of).copied().collect::<BTreeSet<usize>>().into_iter().collect()
    };
    let shape = GroupShape {
        name: JOINED_OUTPUT.to_owned(),
        quasi: all(|shape| &shape.quasi),
        sensitive: all(|shape| &shape.sensitive),
        insensitive: all(|shape| &shape.insensitive),
        ranges: checked.shapes.iter().any(|shape| shape.ranges),
    };
    let mut joined = line_schema(checked, &shape, true);
    joined["title"] = json!(format!("{}, rows of all groups", checked.schema.name));
    joined["required"] = json!(names(&shape));
    joined["x-throng-groups"] = Value::Object(together);
    joined
}

fn group_schema(checked: &CheckedConfig, shape: &GroupShape) -> Value {
    line_schema(checked, shape, checked.shapes.len() == 1)
}

fn line_schema(checked: &CheckedConfig, shape: &GroupShape, alone: bool) -> Value {
    let CheckedConfig { config, schema, .. } = checked;
    let nested = is_nested(config);
    let mut properties = Map::new();
    for attribute in shape.without_ladder().attributes() {
        let attribute = &schema.attributes[attribute];
        let mut of = attribute_schema(attribute, config.sink.format());
        if config.plan.shared.contains(&attribute.name) {
            // Equal in every line of a record.
            of["x-throng-shared"] = json!(true);
        }
        if nested {
            insert_property(&mut properties, &attribute_path(attribute), of);
        } else {
            properties.insert(attribute.name.clone(), of);
        }
    }
    properties.values_mut().for_each(fill_null_positions);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("{}, group {}", schema.name, shape.name),
        "description": format!("Fragments released by throng, k = {}", config.privacy.k),
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "x-throng-truthful": !config.treatment.may_be_untruthful(),
        "x-throng-destination": destination(config, &shape.name, alone),
    })
}

fn insert_property(properties: &mut Map<String, Value>, way: &[NestingStep], of: Value) {
    let Some((NestingStep::Key(key), rest)) = way.split_first() else { return };
    let inner = properties.entry(key.clone()).or_insert(Value::Null);
    insert_below(inner, rest, of);
}

fn insert_below(into: &mut Value, way: &[NestingStep], of: Value) {
    match way.first() {
        None => *into = of,
        Some(NestingStep::Key(_)) => {
            if into.is_null() {
                *into = json!({"type": ["object", "null"], "properties": {}, "additionalProperties": false});
            }
            if let Some(properties) = into["properties"].as_object_mut() {
                insert_property(properties, way, of);
            }
        }
        Some(NestingStep::ArrayIndex(index)) => {
            if into.is_null() {
                // An unused position is null before a used one.
                *into = json!({"type": "array", "prefixItems": [], "items": false});
            }
            if let Some(places) = into["prefixItems"].as_array_mut() {
                while places.len() <= *index {
                    places.push(Value::Null);
                }
                insert_below(&mut places[*index], &way[1..], of);
            }
        }
    }
}

fn fill_null_positions(schema: &mut Value) {
    if let Some(places) = schema.get_mut("prefixItems").and_then(Value::as_array_mut) {
        for place in places {
            if place.is_null() {
                *place = json!({"type": "null"});
            } else {
                fill_null_positions(place);
            }
        }
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(fill_null_positions);
    }
}

fn attribute_schema(attribute: &Attribute, format: RecordFormat) -> Value {
    let raw = match attribute.kind() {
        // A cell may be a label.
        _ if !format.has_typed_cells() => "string",
        AttributeType::Integer => "integer",
        AttributeType::Float => "number",
        AttributeType::Boolean => "boolean",
        AttributeType::String | AttributeType::Date | AttributeType::Timestamp | AttributeType::Coordinates => "string",
    };
    let mut types = vec![raw, "string", "null"];
    types.dedup();
    let top = attribute.hierarchy.levels() - 1;
    let may_leave_at = |level: usize| match attribute.role {
        Role::Insensitive => level == 0,
        // A standalone identifier is `*` under any treatment.
        Role::Quasi | Role::Time => level == top || attribute.treatment.allows(level, top),
        Role::Sensitive | Role::Identifier | Role::Subject => true,
    };
    let mut of = json!({
        "type": types,
        "x-throng-role": attribute.role.name(),
        "x-throng-levels": (0..=top).filter(|level| may_leave_at(*level)).map(|level| attribute.hierarchy.label(level)).collect::<Vec<_>>(),
    });
    if attribute.role == Role::Insensitive {
        of["type"] = json!([raw, "null"]);
    }
    if let Some(unit) = &attribute.unit {
        of["x-throng-unit"] = json!(unit);
    }
    of
}

/// Null without a sink.
fn destination(config: &Config, group: &str, alone: bool) -> Value {
    match config.sink.kind {
        SinkKind::Kafka => json!({"topic": config.sink.topic_of(group)}),
        SinkKind::File => {
            let file = SinkConfig::file_of(&config.sink.path, group, alone);
            json!({"file": file.display().to_string()})
        }
        SinkKind::None => Value::Null,
    }
}

#[cfg(test)]
#[path = "output_schema_tests.rs"]
mod tests;
