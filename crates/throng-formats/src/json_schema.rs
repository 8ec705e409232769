//! What a JSON Schema says of the fields of records: whether it knows them, and what they may be.
//!
//! Records are not validated: decoding judges them value by value. A schema is asked what no record can tell: that a field is
//! gone, or is of another type now. What it leaves open counts as allowed: an object or an array of which it says nothing further,
//! and what `additionalProperties = true` adds. Where it lists properties and says nothing of others, a field that it does not list
//! is gone: the standard would allow it still, and no schema could ever lose a field.

use super::Field;
use super::path_tree::index;
use serde_json::Value;
use std::collections::HashSet;
use throng_core::printable::printable;
use throng_core::values::canonical::Type;

/// Schemas that are looked at for one field. A schema that has more is not known to have the field.
const MOST_LOOKS: usize = 10_000;

/// A text that is no JSON Schema. It says what is wrong with it; a schema has no values of records.
#[derive(Clone, Debug, thiserror::Error)]
#[error("not a JSON Schema: {0}")]
pub struct BadJsonSchema(String);

/// A JSON Schema (of any draft), with those that it refers to.
#[derive(Clone, Debug)]
pub struct JsonSchema {
    /// Addresses and documents; the first is the schema itself.
    documents: Vec<(String, Value)>,
}

/// What a schema says of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing in it leads there.
    Missing,
    /// It cannot be a value of the type that is asked for.
    OtherType,
    /// It may be.
    Fits,
}

/// A schema in one of the documents.
#[derive(Clone, Copy)]
struct Place<'s> {
    document: usize,
    schema: &'s Value,
}

impl JsonSchema {
    /// The schema `text`, which refers to `parts` by their names.
    ///
    /// # Errors
    /// When one of them is not JSON, or neither an object nor a truth value.
    pub fn new(text: &str, parts: &[(String, String)]) -> Result<Self, BadJsonSchema> {
        let parsed = |name: &str, text: &str| match serde_json::from_str(text) {
            Ok(schema @ (Value::Object(_) | Value::Bool(_))) => Ok((name.to_owned(), schema)),
            Ok(_) => Err(BadJsonSchema("it is neither an object nor a truth value".to_owned())),
            Err(error) => Err(BadJsonSchema(printable(&error.to_string()))),
        };
        let own = parsed("", text)?;
        let others = parts.iter().map(|(name, text)| parsed(name, text));
        Ok(Self { documents: [Ok(own)].into_iter().chain(others).collect::<Result<_, _>>()? })
    }

    /// What it says of `field` as a value of type `kind`; within elements, as one of them.
    #[must_use]
    pub fn says(&self, field: &Field, kind: Type) -> Said {
        let mut looks = 0;
        let mut places = self.opened(vec![Place { document: 0, schema: &self.documents[0].1 }], &mut looks);
        for segment in segments(field) {
            let mut next = Vec::new();
            places.iter().for_each(|place| step(*place, segment, &mut next));
            places = self.opened(next, &mut looks);
        }
        if places.is_empty() || looks > MOST_LOOKS {
            return Said::Missing;
        }
        places.retain(|place| !only_combines(place.schema));
        let fits = places.is_empty() || places.iter().any(|place| may_be(place.schema, kind));
        if fits { Said::Fits } else { Said::OtherType }
    }

    /// Some schemas and all that their references and combinations lead to, each once.
    fn opened<'s>(&'s self, mut open: Vec<Place<'s>>, looks: &mut usize) -> Vec<Place<'s>> {
        let mut found = Vec::new();
        let mut seen: HashSet<*const Value> = HashSet::new();
        while let Some(place) = open.pop() {
            if !seen.insert(std::ptr::from_ref(place.schema)) {
                continue;
            }
            *looks += 1;
            if *looks > MOST_LOOKS {
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
                    open.push(Place { schema, ..place });
                }
            }
            for key in ["then", "else"] {
                if let Some(schema) = place.schema.get(key) {
                    open.push(Place { schema, ..place });
                }
            }
        }
        found
    }

    /// What a reference in a document leads to.
    fn target(&self, document: usize, reference: &str) -> Option<Place<'_>> {
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
        Some(Place { document, schema })
    }
}

/// Adds what a schema, without its references, says of the value behind `segment`.
fn step<'s>(place: Place<'s>, segment: &str, out: &mut Vec<Place<'s>>) {
    let Some(schema) = place.schema.as_object() else {
        // `true` allows everything, and knows nothing that it could not be.
        if place.schema == &Value::Bool(true) {
            out.push(place);
        }
        return;
    };
    let mut push = |schema: &'s Value| {
        if schema != &Value::Bool(false) {
            out.push(Place { schema, ..place });
        }
    };
    let mut named = false;
    if let Some(schema) = schema.get("properties").and_then(|all| all.get(segment)) {
        named = true;
        push(schema);
    }
    // A pattern may be meant: it is not tried.
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
    const TELLING: [&str; 12] = [
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
    if TELLING.iter().any(|key| schema.contains_key(*key)) {
        return;
    }
    // It says nothing of what is inside, if anything may be: an element where the segment is an index, or else a member.
    let allows = |name: &str| match schema.get("type") {
        None => true,
        Some(Value::String(only)) => only == name,
        Some(types) => types.as_array().is_some_and(|types| types.iter().any(|one| one == name)),
    };
    if allows("object") || allows("array") && index(segment).is_some() {
        push(&ANYTHING);
    }
}

/// The schema of everything.
static ANYTHING: Value = Value::Bool(true);

/// Whether what a schema allows is said by those that it refers to.
fn only_combines(schema: &Value) -> bool {
    let own = ["type", "enum", "const"].iter().any(|key| schema.get(*key).is_some());
    let others = ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|key| schema.get(*key).is_some());
    others && !own
}

/// Whether a value under the schema may be read as one of type `kind`.
fn may_be(schema: &Value, kind: Type) -> bool {
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
        (Some(value), ..) => reads(kind, of_value(value)),
        (_, Some(Value::Array(values)), _) => values.iter().any(|value| reads(kind, of_value(value))),
        (.., Some(Value::String(name))) => reads(kind, name),
        (.., Some(Value::Array(names))) => names.iter().filter_map(Value::as_str).any(|name| reads(kind, name)),
        _ => true,
    }
}

/// Whether some JSON value of the type `name` is read as a value of type `kind`: a text may spell a number.
fn reads(kind: Type, name: &str) -> bool {
    match (kind, name) {
        (_, "null") => false,
        (Type::String, _) | (_, "string") => true,
        (Type::Coordinates, name) => matches!(name, "array" | "object"),
        (Type::Boolean, "boolean") => true,
        (Type::Integer | Type::Float | Type::Boolean | Type::Date | Type::Timestamp, name) => {
            matches!(name, "number" | "integer")
        }
    }
}

/// The way to a field. Where it is in every element of an array, in the first one.
fn segments(field: &Field) -> impl Iterator<Item = &str> {
    let (to_array, within) = field.pointer.split_at(field.elements.unwrap_or(field.pointer.len()));
    let element = field.elements.map(|_| "0");
    to_array.iter().map(String::as_str).chain(element).chain(within.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(schema: &str, pointer: &str, kind: Type) -> Said {
        let field = Field::at(pointer.split('/').skip(1).map(str::to_owned).collect());
        JsonSchema::new(schema, &[]).expect("a schema").says(&field, kind)
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
    fn known_fields_of_a_fitting_type_fit() {
        for (pointer, kind) in [
            ("/age", Type::Integer),
            ("/age", Type::String),
            ("/name", Type::Date),
            ("/heart/rate", Type::Float),
            ("/tags/x", Type::Float),
            ("/list/3", Type::Boolean),
            ("/any/x/y", Type::Float),
            ("/all/x", Type::Date),
            ("/kind", Type::String),
            ("/one/x", Type::Integer),
            ("/self/self/age", Type::Integer),
            ("/loop", Type::Float),
            ("/map/x", Type::Float),
            ("/map/x/y", Type::String),
            ("/map/1", Type::Date),
            ("/row/1", Type::Integer),
            ("/row/0/x", Type::Integer),
            ("/more/b/c", Type::Boolean),
        ] {
            assert_eq!(said(SCHEMA, pointer, kind), Said::Fits, "{pointer}");
        }
        assert_eq!(said("true", "/a/b", Type::Float), Said::Fits);
        assert_eq!(said("{}", "/a/b", Type::Float), Said::Fits);
    }

    #[test]
    fn fields_that_are_gone_are_missing() {
        for pointer in ["/other", "/gone", "/heart/beat", "/age/x", "/list/x", "/one/y", "/loop/x", "/row/x", "/row/01"]
        {
            assert_eq!(said(SCHEMA, pointer, Type::String), Said::Missing, "{pointer}");
        }
    }

    #[test]
    fn fields_of_another_type_are_named() {
        for (pointer, kind) in [
            ("/flag", Type::Integer),
            ("/list", Type::Float),
            ("/heart", Type::Integer),
            ("/tags", Type::Boolean),
            ("/nothing", Type::String),
            ("/age", Type::Coordinates),
            ("/flag", Type::Timestamp),
            ("/map", Type::Integer),
            ("/row", Type::Date),
        ] {
            let expected = if pointer == "/heart" { Said::Fits } else { Said::OtherType };
            assert_eq!(said(SCHEMA, pointer, kind), expected, "{pointer}");
        }
    }

    #[test]
    fn parts_are_found_by_name_and_by_address() {
        let parts = [(
            "heart.json".to_owned(),
            r#"{"$id": "http://example.org/h", "properties": {"rate": {"type": "boolean"}}}"#.to_owned(),
        )];
        for name in ["heart.json", "http://example.org/h"] {
            let schema = format!(
                r#"{{"properties": {{"heart": {{"$ref": "{name}#"}}, "r": {{"$ref": "{name}#/properties/rate"}}}}}}"#
            );
            let schema = JsonSchema::new(&schema, &parts).expect("a schema");
            let field = |pointer: &[&str]| Field::at(pointer.iter().map(|s| (*s).to_owned()).collect());
            assert_eq!(schema.says(&field(&["heart", "rate"]), Type::Boolean), Said::Fits);
            assert_eq!(schema.says(&field(&["r"]), Type::Float), Said::OtherType);
        }
    }

    #[test]
    fn schemas_that_lead_everywhere_end() {
        // Every step doubles what is looked at.
        let schema = r##"{"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}"##;
        assert_eq!(said(schema, &"/a".repeat(50), Type::String), Said::Fits);
        let branch = r#"{"type": "object"},"#;
        let wide = format!("{{\"anyOf\": [{}{{\"properties\": {{\"a\": {{}}}}}}]}}", branch.repeat(MOST_LOOKS));
        assert_eq!(said(&wide, "/a", Type::String), Said::Missing);
        assert!(JsonSchema::new("[", &[]).is_err() && JsonSchema::new("[]", &[]).is_err());
        assert!(JsonSchema::new(&"[".repeat(100_000), &[]).is_err());
    }
}
