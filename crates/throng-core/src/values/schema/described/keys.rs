//! The tables: every key of a record schema, with its words.

/// A choice and what it means.
pub(super) type Choice = (&'static str, &'static str);

/// What may stand at a key.
pub(super) enum Shape {
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
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) required: bool,
    /// The types of attributes that may have it; empty: all.
    pub(super) types: &'static [&'static str],
    pub(super) text: &'static str,
    pub(super) example: &'static str,
}

/// A kind of hierarchy.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) types: &'static [&'static str],
    pub(super) text: &'static str,
    pub(super) keys: &'static [Key],
}

pub(super) const TYPES: &[Choice] = &[
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
const DECIMALS: &[Choice] = &[(",", "a comma, as in `72,5`; a point is then refused, since it may separate thousands")];
const CASES: &[Choice] = &[("fold", "upper and lower case are one")];
const EPOCHS: &[Choice] = &[("s", "seconds"), ("ms", "milliseconds"), ("us", "microseconds")];
pub(super) const UNITS: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];

const NUMERIC: &[&str] = &["integer", "float"];
pub(super) const TEMPORAL: &[&str] = &["date", "timestamp"];
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
pub(super) const ATTRIBUTE: &[Key] = &[
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
         most nine decimals (of integers a whole one), or a calendar unit of dates (from a day on) and timestamps. Partial dates (`2024-05`, `2024`, as FHIR has them) are read where dates are rounded to that unit or a longer one.",
        "0.5",
    ),
    of(
        NUMERIC,
        "digits",
        Shape::Digits,
        "Significant digits to which numbers are rounded, 1 to 17. Not beside `round`.",
        "3",
    ),
    of(
        NUMERIC,
        "decimal",
        Shape::OneOf(DECIMALS),
        "The decimal separator of numbers that are texts (CSV, JSON strings); a point where nothing is said. Numbers leave with a point.",
        "\",\"",
    ),
    key("missing", Shape::Texts, "Spellings that say that there is no value.", "[\"\", \"NA\", \"-1\"]"),
    of(STRINGS, "normalize", Shape::OneOf(NORMALIZE), "Which Unicode spellings of a text are one.", "\"nfc\""),
    of(STRINGS, "case", Shape::OneOf(CASES), "Whether capitals are joined.", "\"fold\""),
    of(
        TEMPORAL,
        "format",
        Shape::Formats,
        "How dates and times are spelled where that is not ISO 8601: one format in chrono's letters or up to sixteen, of which the first that fits \
         is taken; no two may read one text as different times. Without an offset (`%z`) a time is that of `zone`, or UTC.",
        "\"%d.%m.%Y %H:%M\"",
    ),
    of(
        TEMPORAL,
        "first_year",
        Shape::Count,
        "The first of the hundred years that a year of two digits (`%y` in a `format`) means one of; required with one, since nothing is guessed.",
        "1950",
    ),
    of(
        &["timestamp"],
        "zone",
        Shape::Text,
        "The time zone of times that are spelled without an offset, by its name in the IANA database; UTC where nothing is said. Daylight saving is \
         heeded: of a time that a clock shows twice, when it is set back, the first is taken, and one that it skips is read by the offset before (02:30 is then 03:30). \
         Times leave in UTC. Not beside `epoch` and `base`.",
        "\"Europe/Zurich\"",
    ),
    of(
        TEMPORAL,
        "epoch",
        Shape::OneOf(EPOCHS),
        "Values are numbers that count from 1970, or from the `base`, in this unit. Not beside `format`.",
        "\"ms\"",
    ),
    of(
        TEMPORAL,
        "base",
        Shape::Text,
        "The attribute, a date or a timestamp of the same record, from which its times count: beside `epoch` a cell is how much later in this unit, beside \
         `format` a time of day (`%H:%M:%S`) on that date. The sum is what is rounded, generalized and leaves; the base may be an identifier.",
        "\"start\"",
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
pub(super) const OF_ALL_KINDS: &[Key] = &[key(
    "uncovered",
    Shape::OneOf(UNCOVERED),
    "What becomes of values that it does not cover where `throng anonymize` releases a data set at once; `\"refuse\"` where nothing is said. In a stream they leave as `*`.",
    "\"suppress\"",
)];

/// The kinds of `[attribute.hierarchy]`. Its first level is the value, its last `*`.
pub(super) const HIERARCHIES: &[Kind] = &[
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
