//! Schema keys as one table for the JSON Schema and the reference page; a test compares it with the parser.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

mod keys;

use keys::{ATTRIBUTE, COMMON_KEYS, HIERARCHIES, HierarchyKind, KeyShape, NamedChoice, SchemaKey, TEMPORAL, UNITS};

impl KeyShape {
    fn description_and_schema(&self) -> (String, Json) {
        let list = |items: &Json| json!({"type": "array", "items": items, "minItems": 1});
        let (words, schema) = match self {
            Self::Text => ("text", json!({"type": "string", "minLength": 1})),
            Self::Texts => ("a list of texts", json!({"type": "array", "items": {"type": "string"}})),
            Self::Names => ("a list of texts", list(&json!({"type": "string"}))),
            Self::Pointers => {
                let pointer = json!({"type": "string", "pattern": "^(/([^~]|~[01])*)+$"});
                ("a table of JSON pointers by topic", json!({"type": "object", "additionalProperties": pointer}))
            }
            Self::Pointer => ("a JSON pointer", json!({"type": "string", "pattern": "^(/([^~]|~[01])*)?$"})),
            Self::Origin => {
                let pattern = "^(value|key|timestamp|topic|header:.+|join:.+)$";
                ("a message part", json!({"type": "string", "pattern": pattern}))
            }
            Self::Boolean => ("true or false", json!({"type": "boolean"})),
            Self::Factor => ("a number, not 0", json!({"type": "number", "not": {"const": 0}})),
            Self::OneOf(choices) => {
                let words = choices.iter().map(|(name, _)| format!("`\"{name}\"`")).collect::<Vec<_>>().join(", ");
                let choice = |(name, text): &NamedChoice| json!({"const": name, "description": text});
                return (words, json!({"oneOf": choices.iter().map(choice).collect::<Vec<_>>()}));
            }
            Self::Digits => ("1 to 17", json!({"type": "integer", "minimum": 1, "maximum": 17})),
            Self::Number => ("a number", json!({"type": "number"})),
            Self::Numbers => ("a list of numbers above 0", list(&json!({"type": "number", "exclusiveMinimum": 0}))),
            Self::NumberLists => ("a list of lists of numbers", list(&list(&json!({"type": "number"})))),
            Self::Counts => ("a list of whole numbers, at least 1", list(&json!({"type": "integer", "minimum": 1}))),
            Self::Count => ("a whole number", json!({"type": "integer", "minimum": 1})),
            Self::Units => ("a list of calendar units", list(&json!({"enum": UNITS}))),
            Self::Moment => ("a date or time", json!({"type": "string", "pattern": "^[0-9]"})),
            Self::Round => {
                let schema = json!({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"enum": UNITS}]});
                ("a number above 0 or a calendar unit", schema)
            }
            Self::Formats => {
                let schema = json!({"anyOf": [
                    {"type": "string", "pattern": "%"},
                    {"type": "array", "items": {"type": "string", "pattern": "%"}, "minItems": 1, "maxItems": 16},
                ]});
                ("text or a list of texts", schema)
            }
            Self::Letter => ("one character", json!({"type": "string", "pattern": "^[\u{1}-\u{7f}]$"})),
            Self::Tree => ("a table of tables or lists, or a list", json!({"$ref": "#/$defs/tree"})),
        };
        (words.to_owned(), schema)
    }
}

fn table_schema(keys: &[SchemaKey]) -> Json {
    let described = |key: &SchemaKey| {
        let (_, mut schema) = key.shape.description_and_schema();
        schema["description"] = key.text.into();
        (key.name.to_owned(), schema)
    };
    let properties: serde_json::Map<String, Json> = keys.iter().map(described).collect();
    let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn hierarchy_schema(kind: &HierarchyKind) -> Json {
    let mut schema = table_schema(kind.keys);
    if let (Some(keys), Json::Object(common)) =
        (schema["properties"].as_object_mut(), &table_schema(COMMON_KEYS)["properties"])
    {
        keys.extend(common.clone());
    }
    schema["description"] = kind.text.into();
    schema["properties"]["kind"] = json!({"const": kind.name});
    if let Some(required) = schema["required"].as_array_mut() {
        required.insert(0, "kind".into());
    }
    schema
}

fn key_rules() -> Vec<Json> {
    let has = |keys: &[&str]| json!({"required": keys});
    let of_types = |types: &[&str]| json!({"properties": {"type": {"enum": types}}});
    let mut rules: Vec<Json> = [
        ["column", "pointer"],
        ["round", "digits"],
        ["format", "epoch"],
        ["to", "scale"],
        ["to", "offset"],
        ["unit_from", "to"],
        ["unit_from", "scale"],
        ["unit_from", "offset"],
        ["zone", "epoch"],
        ["zone", "base"],
        ["first_year", "base"],
    ]
    .iter()
    .map(|pair| json!({"not": has(pair)}))
    .collect();
    let where_from = |pattern: &str| json!({"required": ["from"], "properties": {"from": {"pattern": pattern}}});
    let neither = |keys: &[&str]| json!({"not": {"anyOf": keys.iter().map(|key| has(&[*key])).collect::<Vec<_>>()}});
    rules.push(json!({"if": has(&["to"]), "then": has(&["unit"])}));
    rules.push(json!({
        "if": has(&["unit_from"]),
        "then": {"allOf": [has(&["unit"]), {"not": where_from("^join:")}]},
    }));
    rules.push(json!({"if": has(&["first_year"]), "then": has(&["format"])}));
    rules.push(json!({
        "if": has(&["base"]),
        "then": {"allOf": [
            {"anyOf": [has(&["epoch"]), {"required": ["format"], "properties": {"format": {"type": "string"}}}]},
            {"not": where_from("^(timestamp|join:)")},
        ]},
    }));
    rules.push(json!({
        "if": {"required": ["pointer"], "properties": {"pointer": {"const": ""}}},
        "then": where_from("^key$"),
    }));
    rules.push(json!({"if": where_from("^(timestamp|topic|header:)"), "then": neither(&["column", "pointer"])}));
    rules.push(json!({"if": where_from("^(timestamp|topic|header:)"), "then": neither(&["pointers"])}));
    rules.push(json!({"if": where_from("^join:"), "then": neither(&["topics", "pointers", "only"])}));
    rules.push(json!({
        "if": where_from("^timestamp$"),
        "then": {"allOf": [of_types(TEMPORAL), neither(&["format", "epoch", "zone"])]},
    }));
    rules.push(json!({
        "if": {"required": ["role"], "properties": {"role": {"const": "subject"}}},
        "then": {"allOf": [
            neither(&["to", "scale", "offset", "unit_from", "topics"]),
            {"properties": {"optional": {"const": false}, "from": {"not": {"pattern": "^join:"}}}},
        ]},
    }));
    for key in ATTRIBUTE.iter().filter(|key| !key.types.is_empty()) {
        rules.push(json!({"if": has(&[key.name]), "then": of_types(key.types)}));
    }
    for kind in HIERARCHIES {
        let of_kind = json!({"required": ["hierarchy"], "properties": {"hierarchy": {"properties": {"kind": {"const": kind.name}}, "required": ["kind"]}}});
        rules.push(json!({"if": of_kind, "then": of_types(kind.types)}));
    }
    rules.push(json!({
        "if": {"required": ["round"], "properties": {"type": {"enum": TEMPORAL}}},
        "then": {"properties": {"round": {"type": "string"}}},
        "else": {"properties": {"round": {"type": "number"}}},
    }));
    rules.push(json!({
        "if": {"required": ["round"], "properties": {"type": {"const": "date"}}},
        "then": {"properties": {"round": {"enum": UNITS[3..]}}},
    }));
    rules.push(
        json!({"if": {"required": ["role"], "properties": {"role": {"const": "time"}}}, "then": of_types(TEMPORAL)}),
    );
    rules.push(json!({
        "if": {"required": ["role"], "properties": {"role": {"enum": ["identifier", "subject", "insensitive"]}}},
        "then": {"not": {"anyOf": [has(&["hierarchy"]), has(&["changes"])]}},
    }));
    rules
}

/// Returns the JSON Schema in `schemas/schema.schema.json`.
pub fn json_schema() -> String {
    let mut attribute = table_schema(ATTRIBUTE);
    attribute["description"] = "An attribute of the records.".into();
    attribute["properties"]["hierarchy"] =
        json!({"oneOf": HIERARCHIES.iter().map(hierarchy_schema).collect::<Vec<_>>()});
    attribute["allOf"] = key_rules().into();
    let (_, mut exploded) = KeyShape::Pointer.description_and_schema();
    exploded["description"] = EXPLODE.into();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Record schema of throng",
        "description": DESCRIPTION,
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": NAME},
            "explode": exploded,
            "subject": {"const": "record", "description": SUBJECT},
            "attribute": {"type": "array", "items": attribute, "description": "Attributes, in the order of the \
             release."},
        },
        "required": ["name", "attribute"],
        "additionalProperties": false,
        "$defs": {
            "tree": {"anyOf": [
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}},
                {"type": "array", "items": {"type": ["string", "number", "boolean"]}},
            ]},
        },
    });
    format!("{schema:#}\n")
}

const DESCRIPTION: &str = "A record schema defines the attributes of the records: location, type, role and \
 generalization.";
const NAME: &str = "Name of the schema in messages.";
const EXPLODE: &str = "Array whose elements are the records, as a JSON pointer (RFC 6901) into the value of a \
 message; `\"\"` if the value itself is the array.";

const SUBJECT: &str = "`\"record\"`: every record is of a different person. Without this key and without an attribute \
 of role subject, `throng` counts records as people and warns about it.";

/// Returns the reference page `docs/schema.md`.
pub fn reference_markdown() -> String {
    let mut page = String::from(
        "# Record schemas\n\n<!-- Generated from crates/throng-core/src/values/schema/described/keys.rs; do not edit. \
         `THRONG_BLESS=1 cargo test -p throng-core drift` regenerates it. -->\n\n",
    );
    page.push_str(DESCRIPTION);
    page.push_str(INTRODUCTION);
    let choices = |page: &mut String, shape: &KeyShape| {
        if let KeyShape::OneOf(choices) = shape {
            choices.iter().for_each(|(name, text)| page.push_str(&format!("- `\"{name}\"`: {text}\n")));
            page.push('\n');
        }
    };
    for key in ATTRIBUTE {
        _ = writeln!(page, "### `{}`\n\n{}\n", key.name, key.text); // a String takes everything
        choices(&mut page, &key.shape);
        let of = if key.types.is_empty() { "all types".to_owned() } else { key.types.join(", ") };
        let need = if key.required { "required" } else { "" };
        _ = writeln!(
            page,
            "| value | of | example | |\n|---|---|---|---|\n| {} | {of} | `{}` | {need} |\n",
            key.shape.description_and_schema().0,
            key.example
        );
    }
    page.push_str(HIERARCHY);
    for kind in HIERARCHIES {
        _ = writeln!(page, "### `kind = \"{}\"`\n\n{} For {}.\n", kind.name, kind.text, kind.types.join(", "));
        page.push_str("| key | value | example | meaning |\n|---|---|---|---|\n");
        for key in kind.keys.iter().chain(COMMON_KEYS) {
            let need = if key.required { " Required." } else { "" };
            _ = writeln!(
                page,
                "| `{}` | {} | `{}` | {}{need} |",
                key.name,
                key.shape.description_and_schema().0,
                key.example,
                key.text
            );
        }
        page.push('\n');
    }
    page.push_str(DATES);
    page
}

const INTRODUCTION: &str = "

A schema is a TOML file with a `name` and one `[[attribute]]` table per attribute. `throng check` reports all problems of a schema in one run.
For editors, `schemas/schema.schema.json` has the same rules as far as a JSON Schema can express them.

```toml
name = \"wards\"

[[attribute]]
name = \"person\"
type = \"string\"
role = \"subject\"

[[attribute]]
name = \"age\"
type = \"integer\"
changes = \"never\"
[attribute.hierarchy]
kind = \"intervals\"
min = 0
max = 120
widths = [5, 10, 20, 40]
```

## `explode`

The records may be the elements of an array in a message. `explode = \"/entry\"` is the JSON pointer of the array in the value of the message. In the
pointers of attributes, `/entry/*` means each element; for an array of scalars, the pointer is `/entry/*` itself. All other attributes belong to
the message and apply to each of its records. `explode` works for JSON, Avro and repeated fields of Protobuf, not for CSV and Parquet. One attribute must
have the role subject, because all elements of a message are of one person.

```toml
name = \"series\"
explode = \"/samples\"

[[attribute]]
name = \"person\"
type = \"string\"
role = \"subject\"

[[attribute]]
name = \"bpm\"
pointer = \"/samples/*/value\"
type = \"integer\"
```

## `subject`

`subject = \"record\"` declares that no two records are of one person, as in a census. Records are then counted, without the warning about a missing subject.
In all other cases, set `role = \"subject\"` on the attribute that identifies the person.

## `[[attribute]]`

";

const HIERARCHY: &str = "\
## `[attribute.hierarchy]`

A hierarchy defines the levels of generalization of a value. The first level is the value itself, the last level is `*`, and `kind` defines the
levels in between. Without a hierarchy, there are no levels in between. Values that a hierarchy does not cover are released as `*` (see `uncovered`).

";

const DATES: &str = "\
## Dates and times

Without `format` and `epoch`, a date is written as `2021-05-24`. A timestamp is written as a date or as `2021-05-24T10:00:00Z`, also with fractions
of a second, other offsets (`+02:00`, `+0200`, `+02`) or ` UTC`. Other spellings are rejected, not guessed: `20240512` is not a date. A `format`
uses the syntax of chrono, for example:

| letters | meaning |
|---|---|
| `%Y` `%m` `%d` | year, month and day in digits |
| `%y` | the last two digits of a year; requires `first_year` |
| `%b` `%B` | the short or long name of a month, in English |
| `%H` `%I` `%p` `%M` `%S` | hour (24-hour clock), hour (12-hour clock), AM or PM, minute, second |
| `%.f` | a fraction of a second, with the decimal point |
| `%z` `%:z` | an offset from UTC, `+0200` or `+02:00` |

A format must be able to read its own output: a format without a year, or with `%I` but without `%p`, is refused.
";

#[cfg(test)]
#[path = "described_tests.rs"]
mod tests;
