//! Looks up fields in a JSON Schema, to detect removed fields and changed types.
//!
//! Unspecified parts allow everything. A field is missing if the listed properties lack it, unless other properties are
//! mentioned.

use super::FieldPath;
use super::path_tree::index;
use serde_json::Value;
use std::collections::HashSet;
use throng_core::printable::printable;
use throng_core::values::canonical::AttributeType;

/// Beyond, the field is reported as missing.
const MAX_VISITED_SCHEMAS: usize = 10_000;

/// Error for a text that is not a JSON Schema. The message contains no data values.
#[derive(Clone, Debug, thiserror::Error)]
#[error("not a JSON Schema: {0}")]
pub struct JsonSchemaError(String);

/// JSON Schema of any draft, with the referenced schemas.
#[derive(Clone, Debug)]
pub struct JsonSchema {
    /// Addresses and documents; the first is the schema.
    documents: Vec<(String, Value)>,
}

/// Result of a field lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaFieldStatus {
    /// The schema has no such field.
    Missing,
    /// The field cannot have the requested type.
    OtherType,
    /// The field may have the requested type.
    Fits,
}

#[derive(Clone, Copy)]
struct SubschemaLocation<'s> {
    document: usize,
    schema: &'s Value,
}

impl JsonSchema {
    /// Parses the schema `text`, which refers to `parts` by name.
    ///
    /// # Errors
    /// Fails if one is not JSON, or neither an object nor a Boolean.
    pub fn new(text: &str, parts: &[(String, String)]) -> Result<Self, JsonSchemaError> {
        let parsed = |name: &str, text: &str| match serde_json::from_str(text) {
            Ok(schema @ (Value::Object(_) | Value::Bool(_))) => Ok((name.to_owned(), schema)),
            Ok(_) => Err(JsonSchemaError("it is neither an object nor a boolean".to_owned())),
            Err(error) => Err(JsonSchemaError(printable(&error.to_string()))),
        };
        let own = parsed("", text)?;
        let others = parts.iter().map(|(name, text)| parsed(name, text));
        Ok(Self { documents: [Ok(own)].into_iter().chain(others).collect::<Result<_, _>>()? })
    }

    /// Looks up `field` as a value of type `kind`.
    #[must_use]
    pub fn field_status(&self, field: &FieldPath, kind: AttributeType) -> SchemaFieldStatus {
        let mut looks = 0;
        let mut places =
            self.expand_references(vec![SubschemaLocation { document: 0, schema: &self.documents[0].1 }], &mut looks);
        for segment in field_segments(field) {
            let mut next = Vec::new();
            places.iter().for_each(|place| push_child_schemas(*place, segment, &mut next));
            places = self.expand_references(next, &mut looks);
        }
        if places.is_empty() || looks > MAX_VISITED_SCHEMAS {
            return SchemaFieldStatus::Missing;
        }
        places.retain(|place| !is_combination_only(place.schema));
        let fits = places.is_empty() || places.iter().any(|place| allows_type(place.schema, kind));
        if fits { SchemaFieldStatus::Fits } else { SchemaFieldStatus::OtherType }
    }

    fn expand_references<'s>(
        &'s self,
        mut open: Vec<SubschemaLocation<'s>>,
        looks: &mut usize,
    ) -> Vec<SubschemaLocation<'s>> {
        let mut found = Vec::new();
        let mut seen: HashSet<*const Value> = HashSet::new();
        while let Some(place) = open.pop() {
            if !seen.insert(std::ptr::from_ref(place.schema)) {
                continue;
            }
            *looks += 1;
            if *looks > MAX_VISITED_SCHEMAS {
                break;
            }
            found.push(place);
            if let Some(target) = place.schema.get("$ref").and_then(Value::as_str)
                && let Some(target) = self.target(place.document, target)
            {
                open.push(target);
            }
            for key in ["allOf", "anyOf", "oneOf"] {
                for schema in place.schema.get(key).and_then(Value::as_array).into_iter().flatten() {
                    open.push(SubschemaLocation { schema, ..place });
                }
            }
            for key in ["then", "else"] {
                if let Some(schema) = place.schema.get(key) {
                    open.push(SubschemaLocation { schema, ..place });
                }
            }
        }
        found
    }

    fn target(&self, document: usize, reference: &str) -> Option<SubschemaLocation<'_>> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let document = if address.is_empty() {
            document
        } else {
            let known = |(name, schema): &(String, Value)| {
                name == address || schema.get("$id").and_then(Value::as_str) == Some(address)
            };
            self.documents.iter().position(known)?
        };
        let schema = &self.documents[document].1;
        let schema = if fragment.is_empty() { schema } else { schema.pointer(fragment)? };
        Some(SubschemaLocation { document, schema })
    }
}

/// Does not follow references.
fn push_child_schemas<'s>(place: SubschemaLocation<'s>, segment: &str, out: &mut Vec<SubschemaLocation<'s>>) {
    let Some(schema) = place.schema.as_object() else {
        // `true` allows any value.
        if place.schema == &Value::Bool(true) {
            out.push(place);
        }
        return;
    };
    let mut push = |schema: &'s Value| {
        if schema != &Value::Bool(false) {
            out.push(SubschemaLocation { schema, ..place });
        }
    };
    let mut named = false;
    if let Some(schema) = schema.get("properties").and_then(|all| all.get(segment)) {
        named = true;
        push(schema);
    }
    // The segment may match any pattern.
    schema
        .get("patternProperties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .for_each(|(_, schema)| push(schema));
    if let Some(others @ (Value::Object(_) | Value::Bool(true))) = schema.get("additionalProperties").filter(|_| !named)
    {
        push(others);
    }
    if let Some(index) = index(segment) {
        match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(first)), rest) => first.get(index).or(rest).into_iter().for_each(&mut push),
            (_, Some(Value::Array(first))) => first.get(index).into_iter().for_each(&mut push),
            (_, Some(all)) => push(all),
            _ => {}
        }
    }
    const CONTENT_KEYWORDS: [&str; 12] = [
        "properties",
        "patternProperties",
        "additionalProperties",
        "items",
        "prefixItems",
        "enum",
        "const",
        "$ref",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
    ];
    if CONTENT_KEYWORDS.iter().any(|key| schema.contains_key(*key)) {
        return;
    }
    // Unspecified contents: an index selects an array element, any other segment a member.
    let allows = |name: &str| match schema.get("type") {
        None => true,
        Some(Value::String(only)) => only == name,
        Some(types) => types.as_array().is_some_and(|types| types.iter().any(|one| one == name)),
    };
    if allows("object") || allows("array") && index(segment).is_some() {
        push(&ALLOW_ALL_SCHEMA);
    }
}

static ALLOW_ALL_SCHEMA: Value = Value::Bool(true);

fn is_combination_only(schema: &Value) -> bool {
    let own = ["type", "enum", "const"].iter().any(|key| schema.get(*key).is_some());
    let others = ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|key| schema.get(*key).is_some());
    others && !own
}

fn allows_type(schema: &Value, kind: AttributeType) -> bool {
    if schema == &Value::Bool(false) {
        return false;
    }
    let of_value = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    match (schema.get("const"), schema.get("enum"), schema.get("type")) {
        (Some(value), ..) => is_readable_as(kind, of_value(value)),
        (_, Some(Value::Array(values)), _) => values.iter().any(|value| is_readable_as(kind, of_value(value))),
        (.., Some(Value::String(name))) => is_readable_as(kind, name),
        (.., Some(Value::Array(names))) => {
            names.iter().filter_map(Value::as_str).any(|name| is_readable_as(kind, name))
        }
        _ => true,
    }
}

/// Allows numbers in strings.
fn is_readable_as(kind: AttributeType, name: &str) -> bool {
    match (kind, name) {
        (_, "null") => false,
        (AttributeType::String, _) | (_, "string") => true,
        (AttributeType::Coordinates, name) => matches!(name, "array" | "object"),
        (AttributeType::Boolean, "boolean") => true,
        (
            AttributeType::Integer
            | AttributeType::Float
            | AttributeType::Boolean
            | AttributeType::Date
            | AttributeType::Timestamp,
            name,
        ) => {
            matches!(name, "number" | "integer")
        }
    }
}

/// Enters the first element of an array.
fn field_segments(field: &FieldPath) -> impl Iterator<Item = &str> {
    let (to_array, within) = field.pointer.split_at(field.elements.unwrap_or(field.pointer.len()));
    let element = field.elements.map(|_| "0");
    to_array.iter().map(String::as_str).chain(element).chain(within.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_of(schema: &str, pointer: &str, kind: AttributeType) -> SchemaFieldStatus {
        let field = FieldPath::from_segments(pointer.split('/').skip(1).map(str::to_owned).collect());
        JsonSchema::new(schema, &[]).expect("a schema").field_status(&field, kind)
    }

    const SCHEMA: &str = r##"{"type": "object", "properties": {
        "age": {"type": "integer"}, "name": {"type": ["string", "null"]}, "gone": false,
        "heart": {"$ref": "#/definitions/heart"}, "tags": {"type": "object", "additionalProperties": {"type": "number"}},
        "list": {"type": "array", "items": {"type": "boolean"}}, "any": {}, "all": true,
        "kind": {"enum": ["a", "b"]}, "one": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"x": {"type": "number"}}}]},
        "map": {"type": "object"}, "row": {"type": ["array", "null"]}, "more": {"properties": {"a": {"type": "string"}}, "additionalProperties": true},
        "self": {"$ref": "#"}, "loop": {"$ref": "#/properties/loop"}, "flag": {"type": "boolean"}, "nothing": {"type": "null"}},
        "definitions": {"heart": {"allOf": [{"properties": {"rate": {"type": "number"}}}]}}}"##;

    #[test]
    fn known_fields_of_matching_type_fit() {
        for (pointer, kind) in [
            ("/age", AttributeType::Integer),
            ("/age", AttributeType::String),
            ("/name", AttributeType::Date),
            ("/heart/rate", AttributeType::Float),
            ("/tags/x", AttributeType::Float),
            ("/list/3", AttributeType::Boolean),
            ("/any/x/y", AttributeType::Float),
            ("/all/x", AttributeType::Date),
            ("/kind", AttributeType::String),
            ("/one/x", AttributeType::Integer),
            ("/self/self/age", AttributeType::Integer),
            ("/loop", AttributeType::Float),
            ("/map/x", AttributeType::Float),
            ("/map/x/y", AttributeType::String),
            ("/map/1", AttributeType::Date),
            ("/row/1", AttributeType::Integer),
            ("/row/0/x", AttributeType::Integer),
            ("/more/b/c", AttributeType::Boolean),
        ] {
            assert_eq!(status_of(SCHEMA, pointer, kind), SchemaFieldStatus::Fits, "{pointer}");
        }
        assert_eq!(status_of("true", "/a/b", AttributeType::Float), SchemaFieldStatus::Fits);
        assert_eq!(status_of("{}", "/a/b", AttributeType::Float), SchemaFieldStatus::Fits);
    }

    #[test]
    fn removed_fields_are_missing() {
        for pointer in ["/other", "/gone", "/heart/beat", "/age/x", "/list/x", "/one/y", "/loop/x", "/row/x", "/row/01"]
        {
            assert_eq!(status_of(SCHEMA, pointer, AttributeType::String), SchemaFieldStatus::Missing, "{pointer}");
        }
    }

    #[test]
    fn fields_with_changed_type_are_detected() {
        for (pointer, kind) in [
            ("/flag", AttributeType::Integer),
            ("/list", AttributeType::Float),
            ("/heart", AttributeType::Integer),
            ("/tags", AttributeType::Boolean),
            ("/nothing", AttributeType::String),
            ("/age", AttributeType::Coordinates),
            ("/flag", AttributeType::Timestamp),
            ("/map", AttributeType::Integer),
            ("/row", AttributeType::Date),
        ] {
            let expected = if pointer == "/heart" { SchemaFieldStatus::Fits } else { SchemaFieldStatus::OtherType };
            assert_eq!(status_of(SCHEMA, pointer, kind), expected, "{pointer}");
        }
    }

    #[test]
    fn references_resolve_by_name_and_id() {
        let parts = [(
            "heart.json".to_owned(),
            r#"{"$id": "http://example.org/h", "properties": {"rate": {"type": "boolean"}}}"#.to_owned(),
        )];
        for name in ["heart.json", "http://example.org/h"] {
            let schema = format!(
                r#"{{"properties": {{"heart": {{"$ref": "{name}#"}}, "r": {{"$ref": "{name}#/properties/rate"}}}}}}"#
            );
            let schema = JsonSchema::new(&schema, &parts).expect("a schema");
            let field = |pointer: &[&str]| FieldPath::from_segments(pointer.iter().map(|s| (*s).to_owned()).collect());
            assert_eq!(
                schema.field_status(&field(&["heart", "rate"]), AttributeType::Boolean),
                SchemaFieldStatus::Fits
            );
            assert_eq!(schema.field_status(&field(&["r"]), AttributeType::Float), SchemaFieldStatus::OtherType);
        }
    }

    #[test]
    fn recursive_and_wide_schemas_terminate() {
        // Each step doubles the number of schemas to visit.
        let schema = r##"{"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}"##;
        assert_eq!(status_of(schema, &"/a".repeat(50), AttributeType::String), SchemaFieldStatus::Fits);
        let branch = r#"{"type": "object"},"#;
        let wide =
            format!("{{\"anyOf\": [{}{{\"properties\": {{\"a\": {{}}}}}}]}}", branch.repeat(MAX_VISITED_SCHEMAS));
        assert_eq!(status_of(&wide, "/a", AttributeType::String), SchemaFieldStatus::Missing);
        assert!(JsonSchema::new("[", &[]).is_err() && JsonSchema::new("[]", &[]).is_err());
        assert!(JsonSchema::new(&"[".repeat(100_000), &[]).is_err());
    }
}
