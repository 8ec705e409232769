//! What leaves, as JSON Schema (draft 2020-12): derived from the record schema, the groups and the treatments.

use super::checked::Checked;
use crate::anonymity::planner::GroupShape;
use crate::config::{Config, Format, Sink, SinkKind};
use crate::records::canonical::Type;
use crate::records::schema::{Attribute, Role};
use serde_json::{Map, Value, json};

/// A JSON Schema for the lines of each group, by name, in the order in which groups leave.
///
/// A cell is a raw value, a text that stands for several, `"*"` or null; a raw `"*"` is spelled `"\*"`. An absent cell is omitted, so
/// that no property is required. `x-throng-*` say where the lines go, what the levels of an attribute are, and whether what leaves is
/// true of those it is said of.
#[must_use]
pub fn output_schemas(checked: &Checked) -> Value {
    let group = |shape: &GroupShape| (shape.name.clone(), of_group(checked, shape));
    Value::Object(checked.shapes.iter().map(group).collect())
}

fn of_group(checked: &Checked, shape: &GroupShape) -> Value {
    let Checked { config, schema, .. } = checked;
    let mut properties = Map::new();
    for attribute in shape.without_ladder().attributes() {
        let attribute = &schema.attributes[attribute];
        properties.insert(attribute.name.clone(), of_attribute(attribute, config.sink.format()));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("{}, group {}", schema.name, shape.name),
        "description": format!("Fragments released by throng, k = {}", config.privacy.k),
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "x-throng-truthful": !config.treatment.may_be_untruthful(),
        "x-throng-destination": destination(config, &shape.name, checked.shapes.len() == 1),
    })
}

fn of_attribute(attribute: &Attribute, format: Format) -> Value {
    let raw = match attribute.kind() {
        // Their columns are texts: a cell may be a label.
        _ if format != Format::Json => "string",
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
            let file = Sink::file_of(&config.sink.path, config.sink.format(), group, alone);
            let rotated = config.sink.rotate.is_on();
            let file = if rotated { Sink::file_of(&file, config.sink.format(), "{number}", false) } else { file };
            json!({"file": file.display().to_string()})
        }
        SinkKind::None => Value::Null,
    }
}
