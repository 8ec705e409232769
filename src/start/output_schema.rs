//! What leaves, as JSON Schema (draft 2020-12): derived from the record schema, the groups and the treatments.

use super::checked::Checked;
use super::nested::{is_nested, way};
use crate::anonymity::planner::GroupShape;
use crate::config::{Config, Format, JOINED, Rows, Sink, SinkKind};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use throng_core::values::canonical::Type;
use throng_core::values::schema::{Attribute, Role};
use throng_formats::Step;

/// A JSON Schema for the lines of each group, by name, in the order in which groups leave; or one for their joined rows.
///
/// A cell is a raw value, a text that stands for several, `"*"` or null; a raw `"*"` is spelled `"\*"`. An absent cell is omitted, so
/// that no property is required, unless rows are joined. `x-throng-*` say where the lines go, what the levels of an attribute are, whether it stands in other groups too, and whether what leaves is
/// true of those it is said of.
#[must_use]
pub fn output_schemas(checked: &Checked) -> Value {
    if checked.config.sink.rows == Rows::Joined {
        return json!({JOINED: of_joined(checked)});
    }
    let group = |shape: &GroupShape| (shape.name.clone(), of_group(checked, shape));
    Value::Object(checked.shapes.iter().map(group).collect())
}

/// The JSON Schema under which the lines of `output` (a group, or joined rows) are registered as `title`. It is of draft 7, which
/// every registry and every reader of theirs knows.
#[must_use]
pub fn registered_json(checked: &Checked, output: &str, title: &str) -> Value {
    let mut schema = output_schemas(checked)[output].take();
    to_draft_7(&mut schema);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!(title);
    if let Some(schema) = schema.as_object_mut() {
        // It says where it leaves by being there.
        schema.remove("x-throng-destination");
    }
    schema
}

/// Says of arrays what draft 7 has other words for: `items` are the places, `additionalItems` what is behind them.
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

/// The schema of joined rows: every attribute is required, and those of `x-throng-groups` are shown together.
fn of_joined(checked: &Checked) -> Value {
    let names = |shape: &GroupShape| {
        let attributes = shape.without_ladder().attributes();
        attributes.into_iter().map(|a| checked.schema.attributes[a].name.clone()).collect::<Vec<_>>()
    };
    let together: Map<String, Value> =
        checked.shapes.iter().map(|shape| (shape.name.clone(), json!(names(shape)))).collect();
    let all = |of: fn(&GroupShape) -> &Vec<usize>| {
        // What several groups share stands in a row once.
        checked.shapes.iter().flat_map(of).copied().collect::<BTreeSet<usize>>().into_iter().collect()
    };
    let shape = GroupShape {
        name: JOINED.to_owned(),
        quasi: all(|shape| &shape.quasi),
        sensitive: all(|shape| &shape.sensitive),
        insensitive: all(|shape| &shape.insensitive),
        ranges: checked.shapes.iter().any(|shape| shape.ranges),
    };
    let mut joined = of_output(checked, &shape, true);
    joined["title"] = json!(format!("{}, rows of all groups", checked.schema.name));
    joined["required"] = json!(names(&shape));
    joined["x-throng-groups"] = Value::Object(together);
    joined
}

fn of_group(checked: &Checked, shape: &GroupShape) -> Value {
    of_output(checked, shape, checked.shapes.len() == 1)
}

fn of_output(checked: &Checked, shape: &GroupShape, alone: bool) -> Value {
    let Checked { config, schema, .. } = checked;
    let nested = is_nested(config);
    let mut properties = Map::new();
    for attribute in shape.without_ladder().attributes() {
        let attribute = &schema.attributes[attribute];
        let mut of = of_attribute(attribute, config.sink.format());
        if config.plan.shared.contains(&attribute.name) {
            // The same in every line of a record that shows it.
            of["x-throng-shared"] = json!(true);
        }
        if nested {
            put(&mut properties, &way(attribute), of);
        } else {
            properties.insert(attribute.name.clone(), of);
        }
    }
    properties.values_mut().for_each(settle);
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

/// Puts the schema of an attribute where the way to it leads.
fn put(properties: &mut Map<String, Value>, way: &[Step], of: Value) {
    let Some((Step::Key(key), rest)) = way.split_first() else { return };
    let inner = properties.entry(key.clone()).or_insert(Value::Null);
    put_below(inner, rest, of);
}

fn put_below(into: &mut Value, way: &[Step], of: Value) {
    match way.first() {
        None => *into = of,
        Some(Step::Key(_)) => {
            if into.is_null() {
                *into = json!({"type": ["object", "null"], "properties": {}, "additionalProperties": false});
            }
            if let Some(properties) = into["properties"].as_object_mut() {
                put(properties, way, of);
            }
        }
        Some(Step::Place(index)) => {
            if into.is_null() {
                // A place without anything in it is null, as long as one comes behind it.
                *into = json!({"type": "array", "prefixItems": [], "items": false});
            }
            if let Some(places) = into["prefixItems"].as_array_mut() {
                while places.len() <= *index {
                    places.push(Value::Null);
                }
                put_below(&mut places[*index], &way[1..], of);
            }
        }
    }
}

/// Places of arrays that no attribute stands at are null.
fn settle(schema: &mut Value) {
    if let Some(places) = schema.get_mut("prefixItems").and_then(Value::as_array_mut) {
        for place in places {
            if place.is_null() {
                *place = json!({"type": "null"});
            } else {
                settle(place);
            }
        }
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(settle);
    }
}

fn of_attribute(attribute: &Attribute, format: Format) -> Value {
    let raw = match attribute.kind() {
        // Their columns are texts: a cell may be a label.
        _ if !format.has_types() => "string",
        Type::Integer => "integer",
        Type::Float => "number",
        Type::Boolean => "boolean",
        Type::String | Type::Date | Type::Timestamp | Type::Coordinates => "string",
    };
    let mut types = vec![raw, "string", "null"];
    types.dedup();
    let top = attribute.hierarchy.levels() - 1;
    let may_leave_at = |level: usize| match attribute.role {
        Role::Insensitive => level == 0,
        // What identifies by itself is `*` whatever the treatment.
        Role::Quasi | Role::Time => level == top || attribute.treatment.allows(level, top),
        Role::Sensitive | Role::Identifier | Role::Subject => true,
    };
    let mut of = json!({
        "type": types,
        "x-throng-role": attribute.role.name(),
        "x-throng-levels": (0..=top).filter(|level| may_leave_at(*level)).map(|level| attribute.hierarchy.label(level)).collect::<Vec<_>>(),
    });
    if attribute.role == Role::Insensitive {
        // It leaves as it came.
        of["type"] = json!([raw, "null"]);
    }
    if let Some(unit) = &attribute.unit {
        of["x-throng-unit"] = json!(unit);
    }
    of
}

/// Where the lines of a group go; null where nothing leaves.
fn destination(config: &Config, group: &str, alone: bool) -> Value {
    match config.sink.kind {
        SinkKind::Kafka => json!({"topic": config.sink.topic_of(group)}),
        SinkKind::File => {
            let file = Sink::file_of(&config.sink.path, group, alone);
            json!({"file": file.display().to_string()})
        }
        SinkKind::None => Value::Null,
    }
}

#[cfg(test)]
#[path = "output_schema_tests.rs"]
mod tests;
