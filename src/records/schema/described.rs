//! What a record schema may hold: one table for the JSON Schema and for the reference. A test keeps it to what is read.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

/// A choice and what it means.
type Choice = (&'static str, &'static str);

/// What may stand at a key.
enum Shape {
    Text,
    Texts,
    Pointer,
    Origin,
    Boolean,
    Factor,
    OneOf(&'static [Choice]),
    Digits,
    Number,
    Numbers,
    NumberLists,
    Counts,
    Count,
    Units,
    Moment,
    Round,
    Formats,
    Letter,
    Tree,
}

/// A key of a table.
struct Key {
    name: &'static str,
    shape: Shape,
    required: bool,
    /// The types of attributes that may have it; empty: all.
    types: &'static [&'static str],
    text: &'static str,
    example: &'static str,
}

/// A kind of hierarchy.
struct Kind {
    name: &'static str,
    types: &'static [&'static str],
    text: &'static str,
    keys: &'static [Key],
}

const TYPES: &[Choice] = &[
    ("integer", "a whole number of 64 bits; `5.0` is 5"),
    ("float", "a finite number"),
    ("boolean", "true or false"),
    ("string", "a text"),
    ("date", "a day, in UTC"),
    ("timestamp", "a moment in UTC, to the millisecond"),
    ("coordinates", "latitude and longitude in degrees"),
];
const ROLES: &[Choice] = &[
    ("identifier", "never leaves"),
    ("subject", "names the person, by whom crowds are counted; never leaves; at most one attribute"),
    ("quasi", "may single people out in combination: the default"),
    ("time", "a quasi attribute that is a point in time (a date or a timestamp)"),
    ("sensitive", "leaves beside the class, guarded by its own support and by `[[privacy.model]]`s"),
    ("insensitive", "an explicit opt-out: leaves as it is, for everybody to see"),
];
const CHANGES: &[Choice] = &[
    ("never", "between at most 0.1 % of the records of a person"),
    ("slowly", "between at most 5 %"),
    ("always", "from record to record"),
];
const NORMALIZE: &[Choice] = &[
    ("none", "every text is itself: the default but for subjects"),
    ("nfc", "composed and decomposed letters are one, so is white space, and what nobody sees is nothing"),
    (
        "nfkc",
        "the same, and letters of another width, ligatures and raised digits are the plain ones: the default of subjects",
    ),
];
const CASES: &[Choice] = &[("fold", "upper and lower case are one")];
const EPOCHS: &[Choice] = &[("s", "seconds"), ("ms", "milliseconds"), ("us", "microseconds")];
const UNITS: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];

const NUMERIC: &[&str] = &["integer", "float"];
const TEMPORAL: &[&str] = &["date", "timestamp"];
const STRINGS: &[&str] = &["string"];

const fn key(name: &'static str, shape: Shape, text: &'static str, example: &'static str) -> Key {
    Key { name, shape, required: false, types: &[], text, example }
}

const fn required(name: &'static str, shape: Shape, text: &'static str, example: &'static str) -> Key {
    Key { name, shape, required: true, types: &[], text, example }
}

const fn of(
    types: &'static [&'static str],
    name: &'static str,
    shape: Shape,
    text: &'static str,
    example: &'static str,
) -> Key {
    Key { name, shape, required: false, types, text, example }
}

/// The keys of `[[attribute]]`, its hierarchy left out.
const ATTRIBUTE: &[Key] = &[
    required(
        "name",
        Shape::Text,
        "Its name, in the release as well. No two attributes have one name.",
        "\"heart_rate\"",
    ),
    required("type", Shape::OneOf(TYPES), "What its values are.", "\"integer\""),
    key("role", Shape::OneOf(ROLES), "What it may tell of people.", "\"subject\""),
    key(
        "column",
        Shape::Text,
        "The column of CSV and Parquet, or the key of a JSON object, where that is not the name.",
        "\"HR\"",
    ),
    key(
        "pointer",
        Shape::Pointer,
        "Where it is in a nested record: a JSON pointer (RFC 6901); `\"\"` is all of a key. Not beside `column`.",
        "\"/user/age\"",
    ),
    key(
        "from",
        Shape::Origin,
        "The part of a message that has it: `value` where nothing is said, `key`, `header:NAME`, `timestamp`, `topic`; or `join:NAME`, \
         the profile that the `[[join]]` of this name keeps of the record's subject, in which `column` and `pointer` are then looked for. Files have values alone, and joins. \
         A header, a timestamp and a topic are taken as a whole, without `column` and `pointer`; a timestamp is a time by itself, without `format` and `epoch`.",
        "\"key\"",
    ),
    key(
        "optional",
        Shape::Boolean,
        "The schema under which a record was written (Avro, Protobuf, JSON Schema) may have no field of it; without this such a record is refused.",
        "true",
    ),
    key("unit", Shape::Text, "Its unit, for readers of the release; beside `to` the one in which it comes.", "\"bpm\""),
    of(
        NUMERIC,
        "to",
        Shape::Text,
        "The unit in which it is rounded, generalized and leaves, converted from `unit`. Known are K °C °F, m km cm mm mi yd ft in, kg g lb oz st, s ms min h d, \
         m/s km/h mph, J kJ cal kcal, Pa hPa kPa mmHg, % and 1, and what UCUM calls them.",
        "\"°C\"",
    ),
    of(
        NUMERIC,
        "scale",
        Shape::Factor,
        "What a raw number is multiplied by before it is rounded; not 0. Not beside `to`.",
        "0.1",
    ),
    of(NUMERIC, "offset", Shape::Number, "What is then added. Not beside `to`.", "-40.0"),
    of(
        &["integer", "float", "coordinates", "date", "timestamp"],
        "round",
        Shape::Round,
        "To what values are rounded when they are read, so that spellings of one measurement are one: a step of numbers and coordinates, with at \
         most nine decimals (of integers a whole one), or a calendar unit of dates (from a day on) and timestamps.",
        "0.5",
    ),
    of(
        NUMERIC,
        "digits",
        Shape::Digits,
        "Significant digits to which numbers are rounded, 1 to 17. Not beside `round`.",
        "3",
    ),
    key("missing", Shape::Texts, "Spellings that say that there is no value.", "[\"\", \"NA\", \"-1\"]"),
    of(STRINGS, "normalize", Shape::OneOf(NORMALIZE), "Which Unicode spellings of a text are one.", "\"nfc\""),
    of(STRINGS, "case", Shape::OneOf(CASES), "Whether capitals are joined.", "\"fold\""),
    of(
        TEMPORAL,
        "format",
        Shape::Formats,
        "How dates and times are spelled where that is not ISO 8601: one format in chrono's letters or up to sixteen, of which the first that fits \
         is taken; no two may read one text as different times. Without a time zone (`%z`) UTC is assumed.",
        "\"%d.%m.%Y %H:%M\"",
    ),
    of(
        TEMPORAL,
        "epoch",
        Shape::OneOf(EPOCHS),
        "Values are numbers that count from 1970 in this unit. Not beside `format`.",
        "\"ms\"",
    ),
    key(
        "changes",
        Shape::OneOf(CHANGES),
        "How often it changes from one record of a person to the next; measured where it is not said. Not for what is released as it comes or never.",
        "\"never\"",
    ),
];

const UNCOVERED: &[Choice] =
    &[("refuse", "the data set is refused: the hierarchy may be wrong"), ("suppress", "they leave as `*`")];

/// Keys of every kind of hierarchy.
const OF_ALL_KINDS: &[Key] = &[key(
    "uncovered",
    Shape::OneOf(UNCOVERED),
    "What becomes of values that it does not cover where `throng anonymize` releases a data set at once; `\"refuse\"` where nothing is said. In a stream they leave as `*`.",
    "\"suppress\"",
)];

/// The kinds of `[attribute.hierarchy]`. Its first level is the value, its last `*`.
const HIERARCHIES: &[Kind] = &[
    Kind {
        name: "intervals",
        types: NUMERIC,
        text: "Intervals of growing widths, fine to coarse; a width is a multiple of the one before.",
        keys: &[
            required("min", Shape::Number, "The least value; what is below is not covered.", "0"),
            required("max", Shape::Number, "The greatest value.", "120"),
            required("widths", Shape::Numbers, "The width of each level.", "[5, 10, 20]"),
            key("origin", Shape::Number, "Where an interval begins; 0 if nothing is said.", "0"),
        ],
    },
    Kind {
        name: "bounds",
        types: NUMERIC,
        text: "Intervals between listed cut points, a list a level, fine to coarse; a coarser list is part of the finer one.",
        keys: &[
            required("min", Shape::Number, "The least value.", "10"),
            required("max", Shape::Number, "The greatest value.", "60"),
            required("levels", Shape::NumberLists, "The cut points of each level.", "[[18.5, 25, 30], [25]]"),
        ],
    },
    Kind {
        name: "prefix",
        types: STRINGS,
        text: "The first characters of a text, fewer from level to level; the others are `*`.",
        keys: &[
            required("keep", Shape::Counts, "Characters that are kept, falling.", "[4, 3, 2, 1]"),
            key("length", Shape::Count, "The only length of a text that is covered; any if nothing is said.", "5"),
        ],
    },
    Kind {
        name: "truncate",
        types: TEMPORAL,
        text: "Calendar units, fine to coarse.",
        keys: &[
            required("levels", Shape::Units, "The unit of each level, from second to year.", "[\"month\", \"year\"]"),
            key("min", Shape::Moment, "The first moment that is covered; with `max`, or neither.", "\"1900-01-01\""),
            key("max", Shape::Moment, "The last one.", "\"2020-12-31\""),
        ],
    },
    Kind {
        name: "grid",
        types: &["coordinates"],
        text: "Cells of a grid of growing size, aligned to 0°, 0°; a size is a multiple of the one before.",
        keys: &[required(
            "cells",
            Shape::Numbers,
            "The edge of the cells of each level in degrees, at most 90.",
            "[0.1, 1, 10]",
        )],
    },
    Kind {
        name: "tree",
        types: &["integer", "float", "boolean", "string", "date", "timestamp"],
        text: "Groups of listed values: tables of tables, with lists of values at last, all equally deep.",
        keys: &[required("tree", Shape::Tree, "The groups.", "{ young = [\"child\", \"teen\"], grown = [\"adult\"] }")],
    },
    Kind {
        name: "file",
        types: &["integer", "float", "boolean", "string", "date", "timestamp"],
        text: "A row of a file for each value: the value, then what it becomes level by level, at last `*`.",
        keys: &[
            required(
                "path",
                Shape::Text,
                "The file, relative to the schema's folder.",
                "\"hierarchies/occupation.csv\"",
            ),
            key("separator", Shape::Letter, "One ASCII character; `;` if nothing is said.", "\",\""),
        ],
    },
];

impl Shape {
    fn words(&self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Texts => "a list of texts".into(),
            Self::Pointer => "a JSON pointer".into(),
            Self::Origin => "a part of a message".into(),
            Self::Boolean => "true or false".into(),
            Self::Factor => "a number, not 0".into(),
            Self::OneOf(choices) => {
                choices.iter().map(|(name, _)| format!("`\"{name}\"`")).collect::<Vec<_>>().join(", ")
            }
            Self::Digits => "1 to 17".into(),
            Self::Number => "a number".into(),
            Self::Numbers => "a list of numbers above 0".into(),
            Self::NumberLists => "a list of lists of numbers".into(),
            Self::Counts => "a list of whole numbers from 1 on".into(),
            Self::Count => "a whole number".into(),
            Self::Units => "a list of calendar units".into(),
            Self::Moment => "a date or time".into(),
            Self::Round => "a number above 0, or a calendar unit".into(),
            Self::Formats => "text, or a list of texts".into(),
            Self::Letter => "one character".into(),
            Self::Tree => "a table of tables or lists, or a list".into(),
        }
    }

    fn schema(&self) -> Json {
        let list = |items: &Json| json!({"type": "array", "items": items, "minItems": 1});
        match self {
            Self::Text => json!({"type": "string", "minLength": 1}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::Pointer => json!({"type": "string", "pattern": "^(/([^~]|~[01])*)?$"}),
            Self::Origin => json!({"type": "string", "pattern": "^(value|key|timestamp|topic|header:.+|join:.+)$"}),
            Self::Boolean => json!({"type": "boolean"}),
            Self::Factor => json!({"type": "number", "not": {"const": 0}}),
            Self::OneOf(choices) => {
                json!({"oneOf": choices.iter().map(|(name, text)| json!({"const": name, "description": text})).collect::<Vec<_>>()})
            }
            Self::Digits => json!({"type": "integer", "minimum": 1, "maximum": 17}),
            Self::Number => json!({"type": "number"}),
            Self::Numbers => list(&json!({"type": "number", "exclusiveMinimum": 0})),
            Self::NumberLists => list(&list(&json!({"type": "number"}))),
            Self::Counts => list(&json!({"type": "integer", "minimum": 1})),
            Self::Count => json!({"type": "integer", "minimum": 1}),
            Self::Units => list(&json!({"enum": UNITS})),
            Self::Moment => json!({"type": "string", "pattern": "^[0-9]"}),
            Self::Round => json!({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"enum": UNITS}]}),
            Self::Formats => json!({"anyOf": [
                {"type": "string", "pattern": "%"},
                {"type": "array", "items": {"type": "string", "pattern": "%"}, "minItems": 1, "maxItems": 16},
            ]}),
            Self::Letter => json!({"type": "string", "pattern": "^[\u{1}-\u{7f}]$"}),
            Self::Tree => json!({"$ref": "#/$defs/tree"}),
        }
    }
}

/// A table of these keys and no others.
fn table(keys: &[Key]) -> Json {
    let described = |key: &Key| {
        let mut schema = key.shape.schema();
        schema["description"] = key.text.into();
        (key.name.to_owned(), schema)
    };
    let properties: serde_json::Map<String, Json> = keys.iter().map(described).collect();
    let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn hierarchy(kind: &Kind) -> Json {
    let mut schema = table(kind.keys);
    if let (Some(keys), Json::Object(common)) =
        (schema["properties"].as_object_mut(), &table(OF_ALL_KINDS)["properties"])
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

/// What the keys of one attribute ask of each other.
fn together() -> Vec<Json> {
    let has = |keys: &[&str]| json!({"required": keys});
    let of_types = |types: &[&str]| json!({"properties": {"type": {"enum": types}}});
    let mut rules: Vec<Json> =
        [["column", "pointer"], ["round", "digits"], ["format", "epoch"], ["to", "scale"], ["to", "offset"]]
            .iter()
            .map(|pair| json!({"not": has(pair)}))
            .collect();
    let where_from = |pattern: &str| json!({"required": ["from"], "properties": {"from": {"pattern": pattern}}});
    let neither = |keys: &[&str]| json!({"not": {"anyOf": keys.iter().map(|key| has(&[*key])).collect::<Vec<_>>()}});
    rules.push(json!({"if": has(&["to"]), "then": has(&["unit"])}));
    rules.push(json!({
        "if": {"required": ["pointer"], "properties": {"pointer": {"const": ""}}},
        "then": where_from("^key$"),
    }));
    rules.push(json!({"if": where_from("^(timestamp|topic|header:)"), "then": neither(&["column", "pointer"])}));
    rules.push(json!({
        "if": where_from("^timestamp$"),
        "then": {"allOf": [of_types(TEMPORAL), neither(&["format", "epoch"])]},
    }));
    rules.push(json!({
        "if": {"required": ["role"], "properties": {"role": {"const": "subject"}}},
        "then": {"allOf": [
            neither(&["to", "scale", "offset"]),
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

/// The JSON Schema (draft 2020-12) of a record schema, as checked in at `schemas/schema.schema.json`.
#[must_use]
pub fn json_schema() -> String {
    let mut attribute = table(ATTRIBUTE);
    attribute["description"] = "An attribute of the records.".into();
    attribute["properties"]["hierarchy"] = json!({"oneOf": HIERARCHIES.iter().map(hierarchy).collect::<Vec<_>>()});
    attribute["allOf"] = together().into();
    let mut exploded = Shape::Pointer.schema();
    exploded["description"] = EXPLODE.into();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Record schema of throng",
        "description": DESCRIPTION,
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": NAME},
            "explode": exploded,
            "attribute": {"type": "array", "items": attribute, "description": "The attributes, in the order of the release."},
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

const DESCRIPTION: &str = "Which attributes a record has, where they are, what they mean and how they generalize.";
const NAME: &str = "The name of the schema, in messages.";
const EXPLODE: &str = "The array whose elements are the records: a JSON pointer (RFC 6901) in the value of a message, `\"\"` where that is the array.";

/// The reference of every key, as checked in at `docs/schema.md`.
#[must_use]
pub fn reference_markdown() -> String {
    let mut page = String::from(
        "# Record schemas\n\n<!-- Generated from src/records/schema/described.rs; do not edit. \
         `THRONG_BLESS=1 cargo test --lib drift` writes it anew. -->\n\n",
    );
    page.push_str(DESCRIPTION);
    page.push_str(INTRODUCTION);
    let choices = |page: &mut String, shape: &Shape| {
        if let Shape::OneOf(choices) = shape {
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
            key.shape.words(),
            key.example
        );
    }
    page.push_str(HIERARCHY);
    for kind in HIERARCHIES {
        _ = writeln!(page, "### `kind = \"{}\"`\n\n{} For {}.\n", kind.name, kind.text, kind.types.join(", "));
        page.push_str("| key | value | example | what it says |\n|---|---|---|---|\n");
        for key in kind.keys.iter().chain(OF_ALL_KINDS) {
            let need = if key.required { " Required." } else { "" };
            _ = writeln!(page, "| `{}` | {} | `{}` | {}{need} |", key.name, key.shape.words(), key.example, key.text);
        }
        page.push('\n');
    }
    page.push_str(DATES);
    page
}

const INTRODUCTION: &str = "

A schema is a TOML file with a `name` and an `[[attribute]]` for each attribute. `throng check` reports every problem of it at once;
`schemas/schema.schema.json` says the same to editors, as far as a JSON Schema can.

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

The elements of an array may be the records: `explode = \"/entry\"` names it by a JSON pointer into the value of a message, and in the pointers of
attributes `/entry/*` stands for each element, which may be a scalar (`/entry/*` itself). All other attributes are those of the message, and
each of its records has them. JSON and Avro are taken apart, CSV and Parquet are not; one attribute must be the subject, since the
elements of one message are of one person.

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

## `[[attribute]]`

";

const HIERARCHY: &str = "\
## `[attribute.hierarchy]`

What a value may become on its way to `*`: the first level is the value itself, the last is `*`, and `kind` says what lies between. Without a
hierarchy there is nothing between. What a hierarchy does not cover leaves as `*`.

";

const DATES: &str = "\
## Dates and times

Without `format` and `epoch` a date is `2021-05-24`, and a timestamp that, or `2021-05-24T10:00:00Z`, with fractions of a second and other
offsets. Nothing is guessed: `20240512` is no date. A `format` is made of chrono's letters, among them:

| letters | stand for |
|---|---|
| `%Y` `%m` `%d` | year, month and day in digits |
| `%b` `%B` | the name of a month, short and long, in English |
| `%H` `%I` `%p` `%M` `%S` | hour of 24, hour of 12, AM or PM, minute, second |
| `%.f` | a fraction of a second with its point |
| `%z` `%:z` | an offset from UTC, `+0200` and `+02:00` |

A format must read back what it writes: one that lacks the year, or the half of a day beside `%I`, is refused.
";

#[cfg(test)]
#[path = "described_tests.rs"]
mod tests;
