//! Tables of all keys of a record schema, with their descriptions.

pub(super) type NamedChoice = (&'static str, &'static str);

/// Kind of value of a key.
pub(super) enum KeyShape {
    Text,
    Texts,
    Pointer,
    Origin,
    Boolean,
    Factor,
    OneOf(&'static [NamedChoice]),
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

pub(super) struct SchemaKey {
    pub(super) name: &'static str,
    pub(super) shape: KeyShape,
    pub(super) required: bool,
    /// Attribute types that may have the key; empty for all.
    pub(super) types: &'static [&'static str],
    pub(super) text: &'static str,
    pub(super) example: &'static str,
}

pub(super) struct HierarchyKind {
    pub(super) name: &'static str,
    pub(super) types: &'static [&'static str],
    pub(super) text: &'static str,
    pub(super) keys: &'static [SchemaKey],
}

pub(super) const TYPES: &[NamedChoice] = &[
    ("integer", "a whole number of 64 bits; `5.0` is 5"),
    ("float", "a finite number"),
    ("boolean", "true or false"),
    ("string", "a text"),
    ("date", "a day, in UTC"),
    ("timestamp", "a moment in UTC, to the millisecond"),
    ("coordinates", "latitude and longitude in degrees"),
];
const ROLES: &[NamedChoice] = &[
    ("identifier", "never leaves"),
    ("subject", "names the person, by whom crowds are counted; never leaves; at most one attribute"),
    ("quasi", "may single people out in combination: the default"),
    ("time", "a quasi attribute that is a point in time (a date or a timestamp)"),
    ("sensitive", "leaves beside the class, guarded by its own support and by `[[privacy.model]]`s"),
    ("insensitive", "an explicit opt-out: leaves as it is, for everybody to see"),
];
const CHANGES: &[NamedChoice] = &[
    ("never", "between at most 0.1 % of the records of a person"),
    ("slowly", "between at most 5 %"),
    ("always", "from record to record"),
];
const NORMALIZE: &[NamedChoice] = &[
    ("none", "every text is itself: the default but for subjects"),
    ("nfc", "composed and decomposed letters are one, so is white space, and what nobody sees is nothing"),
    (
        "nfkc",
        "the same, and letters of another width, ligatures and raised digits are the plain ones: the default of subjects",
    ),
];
const DECIMALS: &[NamedChoice] =
    &[(",", "a comma, as in `72,5`; a point is then refused, since it may separate thousands")];
const CASES: &[NamedChoice] = &[("fold", "upper and lower case are one")];
const EPOCHS: &[NamedChoice] = &[("s", "seconds"), ("ms", "milliseconds"), ("us", "microseconds")];
pub(super) const UNITS: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];

const NUMERIC: &[&str] = &["integer", "float"];
pub(super) const TEMPORAL: &[&str] = &["date", "timestamp"];
const STRINGS: &[&str] = &["string"];

const fn optional_key(name: &'static str, shape: KeyShape, text: &'static str, example: &'static str) -> SchemaKey {
    SchemaKey { name, shape, required: false, types: &[], text, example }
}

const fn required_key(name: &'static str, shape: KeyShape, text: &'static str, example: &'static str) -> SchemaKey {
    SchemaKey { name, shape, required: true, types: &[], text, example }
}

const fn typed_key(
    types: &'static [&'static str],
    name: &'static str,
    shape: KeyShape,
    text: &'static str,
    example: &'static str,
) -> SchemaKey {
    SchemaKey { name, shape, required: false, types, text, example }
}

/// Keys of `[[attribute]]`, without its hierarchy.
pub(super) const ATTRIBUTE: &[SchemaKey] = &[
    required_key(
        "name",
        KeyShape::Text,
        "Its name, in the release as well. No two attributes have one name.",
        "\"heart_rate\"",
    ),
    required_key("type", KeyShape::OneOf(TYPES), "What its values are.", "\"integer\""),
    optional_key("role", KeyShape::OneOf(ROLES), "What it may tell of people.", "\"subject\""),
    optional_key(
        "column",
        KeyShape::Text,
        "The column of CSV and Parquet, or the key of a JSON object, where that is not the name.",
        "\"HR\"",
    ),
    optional_key(
        "pointer",
        KeyShape::Pointer,
        "Where it is in a nested record: a JSON pointer (RFC 6901); `\"\"` is all of a key. Not beside `column`.",
        "\"/user/age\"",
    ),
    optional_key(
        "from",
        KeyShape::Origin,
        "The part of a message that has it: `value` where nothing is said, `key`, `header:NAME`, `timestamp`, `topic`; or `join:NAME`, \
         the profile that the `[[join]]` of this name keeps of the record's subject, in which `column` and `pointer` are then looked for. Files have values alone, and joins. \
         A header, a timestamp and a topic are taken as a whole, without `column` and `pointer`; a timestamp is a time by itself, without `format` and `epoch`.",
        "\"key\"",
    ),
    optional_key(
        "optional",
        KeyShape::Boolean,
        "The schema under which a record was written (Avro, Protobuf, JSON Schema) may have no field of it; without this such a record is refused.",
        "true",
    ),
    optional_key(
        "unit",
        KeyShape::Text,
        "Its unit, for readers of the release; beside `to` the one in which it comes.",
        "\"bpm\"",
    ),
    typed_key(
        NUMERIC,
        "to",
        KeyShape::Text,
        "The unit in which it is rounded, generalized and leaves, converted from `unit`. Known are K °C °F, m km cm mm mi yd ft in, kg g lb oz st, s ms min h d, \
         m/s km/h mph, J kJ cal kcal, Pa hPa kPa mmHg, % and 1, and what UCUM calls them.",
        "\"°C\"",
    ),
    typed_key(
        NUMERIC,
        "scale",
        KeyShape::Factor,
        "What a raw number is multiplied by before it is rounded; not 0. Not beside `to`.",
        "0.1",
    ),
    typed_key(NUMERIC, "offset", KeyShape::Number, "What is then added. Not beside `to`.", "-40.0"),
    typed_key(
        &["integer", "float", "coordinates", "date", "timestamp"],
        "round",
        KeyShape::Round,
        "To what values are rounded when they are read, so that spellings of one measurement are one: a step of numbers and coordinates, with at \
         most nine decimals (of integers a whole one), or a calendar unit of dates (from a day on) and timestamps. Partial dates (`2024-05`, `2024`, as FHIR has them) are read where dates are rounded to that unit or a longer one.",
        "0.5",
    ),
    typed_key(
        NUMERIC,
        "digits",
        KeyShape::Digits,
        "Significant digits to which numbers are rounded, 1 to 17. Not beside `round`.",
        "3",
    ),
    typed_key(
        NUMERIC,
        "decimal",
        KeyShape::OneOf(DECIMALS),
        "The decimal separator of numbers that are texts (CSV, JSON strings); a point where nothing is said. Numbers leave with a point.",
        "\",\"",
    ),
    optional_key("missing", KeyShape::Texts, "Spellings that say that there is no value.", "[\"\", \"NA\", \"-1\"]"),
    typed_key(
        STRINGS,
        "normalize",
        KeyShape::OneOf(NORMALIZE),
        "Which Unicode spellings of a text are one.",
        "\"nfc\"",
    ),
    typed_key(STRINGS, "case", KeyShape::OneOf(CASES), "Whether capitals are joined.", "\"fold\""),
    typed_key(
        TEMPORAL,
        "format",
        KeyShape::Formats,
        "How dates and times are spelled where that is not ISO 8601: one format in chrono's letters or up to sixteen, of which the first that fits \
         is taken; no two may read one text as different times. Without an offset (`%z`) a time is that of `zone`, or UTC.",
        "\"%d.%m.%Y %H:%M\"",
    ),
    typed_key(
        TEMPORAL,
        "first_year",
        KeyShape::Count,
        "The first of the hundred years that a year of two digits (`%y` in a `format`) means one of; required with one, since nothing is guessed.",
        "1950",
    ),
    typed_key(
        &["timestamp"],
        "zone",
        KeyShape::Text,
        "The time zone of times that are spelled without an offset, by its name in the IANA database; UTC where nothing is said. Daylight saving is \
         heeded: of a time that a clock shows twice, when it is set back, the first is taken, and one that it skips is read by the offset before (02:30 is then 03:30). \
         Times leave in UTC. Not beside `epoch` and `base`.",
        "\"Europe/Zurich\"",
    ),
    typed_key(
        TEMPORAL,
        "epoch",
        KeyShape::OneOf(EPOCHS),
        "Values are numbers that count from 1970, or from the `base`, in this unit. Not beside `format`.",
        "\"ms\"",
    ),
    typed_key(
        TEMPORAL,
        "base",
        KeyShape::Text,
        "The attribute, a date or a timestamp of the same record, from which its times count: beside `epoch` a cell is how much later in this unit, beside \
         `format` a time of day (`%H:%M:%S`) on that date. The sum is what is rounded, generalized and leaves; the base may be an identifier.",
        "\"start\"",
    ),
    optional_key(
        "changes",
        KeyShape::OneOf(CHANGES),
        "How often it changes from one record of a person to the next; measured where it is not said. Not for what is released as it comes or never.",
        "\"never\"",
    ),
];

const UNCOVERED: &[NamedChoice] =
    &[("refuse", "the data set is refused: the hierarchy may be wrong"), ("suppress", "they leave as `*`")];

/// Keys of every kind of hierarchy.
pub(super) const COMMON_KEYS: &[SchemaKey] = &[optional_key(
    "uncovered",
    KeyShape::OneOf(UNCOVERED),
    "What becomes of values that it does not cover where `throng anonymize` releases a data set at once; `\"refuse\"` where nothing is said. In a stream they leave as `*`.",
    "\"suppress\"",
)];

/// Kinds of `[attribute.hierarchy]`. The first level is the value, the last is `*`.
pub(super) const HIERARCHIES: &[HierarchyKind] = &[
    HierarchyKind {
        name: "intervals",
        types: NUMERIC,
        text: "Intervals of growing widths, fine to coarse; a width is a multiple of the one before.",
        keys: &[
            required_key("min", KeyShape::Number, "The least value; what is below is not covered.", "0"),
            required_key("max", KeyShape::Number, "The greatest value.", "120"),
            required_key("widths", KeyShape::Numbers, "The width of each level.", "[5, 10, 20]"),
            optional_key("origin", KeyShape::Number, "Where an interval begins; 0 if nothing is said.", "0"),
        ],
    },
    HierarchyKind {
        name: "bounds",
        types: NUMERIC,
        text: "Intervals between listed cut points, a list a level, fine to coarse; a coarser list is part of the finer one.",
        keys: &[
            required_key("min", KeyShape::Number, "The least value.", "10"),
            required_key("max", KeyShape::Number, "The greatest value.", "60"),
            required_key("levels", KeyShape::NumberLists, "The cut points of each level.", "[[18.5, 25, 30], [25]]"),
        ],
    },
    HierarchyKind {
        name: "prefix",
        types: STRINGS,
        text: "The first characters of a text, fewer from level to level; the others are `*`.",
        keys: &[
            required_key("keep", KeyShape::Counts, "Characters that are kept, falling.", "[4, 3, 2, 1]"),
            optional_key(
                "length",
                KeyShape::Count,
                "The only length of a text that is covered; any if nothing is said.",
                "5",
            ),
        ],
    },
    HierarchyKind {
        name: "truncate",
        types: TEMPORAL,
        text: "Calendar units, fine to coarse.",
        keys: &[
            required_key(
                "levels",
                KeyShape::Units,
                "The unit of each level, from second to year.",
                "[\"month\", \"year\"]",
            ),
            optional_key(
                "min",
                KeyShape::Moment,
                "The first moment that is covered; with `max`, or neither.",
                "\"1900-01-01\"",
            ),
            optional_key("max", KeyShape::Moment, "The last one.", "\"2020-12-31\""),
        ],
    },
    HierarchyKind {
        name: "grid",
        types: &["coordinates"],
        text: "Cells of a grid of growing size, aligned to 0°, 0°; a size is a multiple of the one before.",
        keys: &[required_key(
            "cells",
            KeyShape::Numbers,
            "The edge of the cells of each level in degrees, at most 90.",
            "[0.1, 1, 10]",
        )],
    },
    HierarchyKind {
        name: "tree",
        types: &["integer", "float", "boolean", "string", "date", "timestamp"],
        text: "Groups of listed values: tables of tables, with lists of values at last, all equally deep.",
        keys: &[required_key(
            "tree",
            KeyShape::Tree,
            "The groups.",
            "{ young = [\"child\", \"teen\"], grown = [\"adult\"] }",
        )],
    },
    HierarchyKind {
        name: "file",
        types: &["integer", "float", "boolean", "string", "date", "timestamp"],
        text: "A row of a file for each value: the value, then what it becomes level by level, at last `*`.",
        keys: &[
            required_key(
                "path",
                KeyShape::Text,
                "The file, relative to the schema's folder.",
                "\"hierarchies/occupation.csv\"",
            ),
            optional_key("separator", KeyShape::Letter, "One ASCII character; `;` if nothing is said.", "\",\""),
        ],
    },
];
