//! Described schema keys.

pub(super) type NamedChoice = (&'static str, &'static str);

pub(super) enum KeyShape {
    Text,
    Texts,
    Names,
    Pointer,
    Pointers,
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
    /// Empty for all types.
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
    ("integer", "a 64-bit whole number; `5.0` is read as 5"),
    ("float", "a finite number"),
    ("boolean", "true or false"),
    ("string", "text"),
    ("date", "a day, in UTC"),
    ("timestamp", "a point in time in UTC, with milliseconds"),
    ("coordinates", "latitude and longitude in degrees"),
];
const ROLES: &[NamedChoice] = &[
    ("identifier", "never released"),
    ("subject", "identifies the person; classes are counted by subject; never released; at most one attribute"),
    ("quasi", "may identify people in combination with other attributes; the default"),
    ("time", "a quasi attribute that is a point in time (a date or a timestamp)"),
    ("sensitive", "released with the class; protected by its own minimum support and by `[[privacy.model]]` tables"),
    ("insensitive", "explicit opt-out: released unchanged and unprotected"),
];
const CHANGES: &[NamedChoice] = &[
    ("never", "between at most 0.1 % of the successive records of a person"),
    ("slowly", "between at most 5 % of them"),
    ("always", "from record to record"),
];
const NORMALIZE: &[NamedChoice] = &[
    ("none", "no normalization; the default except for subjects"),
    (
        "nfc",
        "composed and decomposed letters are equal (NFC); white space is unified; invisible characters are removed",
    ),
    (
        "nfkc",
        "like `nfc`, and full-width letters, ligatures and raised digits become plain characters (NFKC); the default \
         for subjects",
    ),
];
const DECIMALS: &[NamedChoice] =
    &[(",", "a comma, as in `72,5`; numbers with a point are then rejected, because the point may separate thousands")];
const CASES: &[NamedChoice] = &[("fold", "upper and lower case are equal")];
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

/// Excludes the hierarchy.
pub(super) const ATTRIBUTE: &[SchemaKey] = &[
    required_key(
        "name",
        KeyShape::Text,
        "Name of the attribute, also in the release. Names must be unique.",
        "\"heart_rate\"",
    ),
    required_key("type", KeyShape::OneOf(TYPES), "Data type of the values.", "\"integer\""),
    optional_key("role", KeyShape::OneOf(ROLES), "Role of the attribute in the anonymization.", "\"subject\""),
    optional_key(
        "column",
        KeyShape::Text,
        "Column in CSV and Parquet, or key of the JSON object, if it differs from the name.",
        "\"HR\"",
    ),
    optional_key(
        "pointer",
        KeyShape::Pointer,
        "Location in a nested record, as a JSON pointer (RFC 6901); `\"\"` is the complete message key. Cannot be \
         combined with `column`.",
        "\"/user/age\"",
    ),
    optional_key(
        "from",
        KeyShape::Origin,
        "Part of the message that contains the attribute: `value` (the default), `key`, `header:NAME`, `timestamp`, \
         `topic` or `join:NAME`. `join:NAME` is the profile of the record's subject in the `[[join]]` of this name; \
         `column` and `pointer` then apply to the profile. Files support only `value` and `join:NAME`. Headers, \
         timestamps and topics are read as a whole, without `column` and `pointer`; a message timestamp is already a \
         time, without `format` and `epoch`.",
        "\"key\"",
    ),
    optional_key(
        "topics",
        KeyShape::Names,
        "Topics whose messages have the attribute; all topics by default. In records of other topics the cell is \
         missing. Not allowed for the subject.",
        "[\"connect_fitbit_intraday_steps\"]",
    ),
    optional_key(
        "pointers",
        KeyShape::Pointers,
        "Locations in topics in which the attribute is elsewhere: topic and JSON pointer.",
        "{ \"android_phone_steps\" = \"/value/count\" }",
    ),
    optional_key(
        "only",
        KeyShape::Names,
        "Values of the records that are read, as spelled in the record. Records of the attribute's topics \
         with another value, or without one, are dropped and counted as such.",
        "[\"8867-4\"]",
    ),
    optional_key(
        "optional",
        KeyShape::Boolean,
        "If true, the writer schema of a record (Avro, Protobuf, JSON Schema) may lack the field of this attribute; \
         otherwise such records are rejected.",
        "true",
    ),
    optional_key(
        "unit",
        KeyShape::Text,
        "Unit of the values, for readers of the release; with `to`, the unit of the input; with `unit_from`, the unit to \
         which numbers are converted.",
        "\"bpm\"",
    ),
    typed_key(
        NUMERIC,
        "to",
        KeyShape::Text,
        "Unit in which values are rounded, generalized and released, converted from `unit`. Supported units are K °C \
         °F, m km cm mm mi yd ft in, kg g lb oz st, s ms min h d, m/s km/h mph, J kJ cal kcal, Pa hPa kPa mmHg, % \
         and 1, and their UCUM codes.",
        "\"°C\"",
    ),
    typed_key(
        NUMERIC,
        "unit_from",
        KeyShape::Text,
        "Name of a string attribute with the unit of each number, which is converted to `unit`. A number without a unit \
         is missing; with a unit that cannot be converted, the record is rejected. A unit that is equal to `unit` \
         needs no conversion. Supported units as for `to`, and rates such as /min and bpm.",
        "\"code\"",
    ),
    typed_key(
        NUMERIC,
        "scale",
        KeyShape::Factor,
        "Factor by which raw numbers are multiplied before rounding; not 0. Cannot be combined with `to`.",
        "0.1",
    ),
    typed_key(
        NUMERIC,
        "offset",
        KeyShape::Number,
        "Number that is added after `scale`. Cannot be combined with `to`.",
        "-40.0",
    ),
    typed_key(
        &["integer", "float", "coordinates", "date", "timestamp"],
        "round",
        KeyShape::Round,
        "Rounding of values on input, so that all spellings of one measurement are equal: a step for numbers and \
         coordinates, with at most nine decimals (a whole number for integers), or a calendar unit for dates (a day \
         or longer) and timestamps. Partial dates (`2024-05`, `2024`, as in FHIR) are accepted if dates are rounded \
         to that unit or a longer one.",
        "0.5",
    ),
    typed_key(
        NUMERIC,
        "digits",
        KeyShape::Digits,
        "Number of significant digits to which numbers are rounded, 1 to 17. Cannot be combined with `round`.",
        "3",
    ),
    typed_key(
        NUMERIC,
        "decimal",
        KeyShape::OneOf(DECIMALS),
        "Decimal separator of numbers in text form (CSV, JSON strings); a point by default. Numbers are released with \
         a point.",
        "\",\"",
    ),
    optional_key("missing", KeyShape::Texts, "Spellings of a missing value.", "[\"\", \"NA\", \"-1\"]"),
    typed_key(
        STRINGS,
        "normalize",
        KeyShape::OneOf(NORMALIZE),
        "Unicode normalization: which spellings of a text are equal.",
        "\"nfc\"",
    ),
    typed_key(
        STRINGS,
        "case",
        KeyShape::OneOf(CASES),
        "Case sensitivity; by default, upper and lower case differ.",
        "\"fold\"",
    ),
    typed_key(
        TEMPORAL,
        "format",
        KeyShape::Formats,
        "Format of dates and times that are not ISO 8601: one format in chrono's syntax or a list of up to sixteen, \
         of which the first match is used. No two formats may read the same text as different times. Times without \
         an offset (`%z`) are in `zone`, or UTC.",
        "\"%d.%m.%Y %H:%M\"",
    ),
    typed_key(
        TEMPORAL,
        "first_year",
        KeyShape::Count,
        "First of the hundred years that two-digit years (`%y` in a `format`) can mean. Required with `%y`, because \
         throng does not guess the century.",
        "1950",
    ),
    typed_key(
        &["timestamp"],
        "zone",
        KeyShape::Text,
        "Time zone of times without an offset, by its name in the IANA database; UTC by default. Daylight saving time \
         is applied: a local time that occurs twice is read as the first one, and a local time that is skipped is \
         read with the offset before the change (02:30 becomes 03:30). Times are released in UTC. Cannot be combined \
         with `epoch` or `base`.",
        "\"Europe/Zurich\"",
    ),
    typed_key(
        TEMPORAL,
        "epoch",
        KeyShape::OneOf(EPOCHS),
        "Unit of values that are numbers, counted from 1970 or from the `base`. Cannot be combined with `format`.",
        "\"ms\"",
    ),
    typed_key(
        TEMPORAL,
        "base",
        KeyShape::Text,
        "Date or timestamp attribute of the same record from which times are counted. With `epoch`, a cell is the \
         difference from the base in this unit; with `format`, a time of day (`%H:%M:%S`) on the date of the base. \
         The sum is rounded, generalized and released. The base may be an identifier.",
        "\"start\"",
    ),
    optional_key(
        "changes",
        KeyShape::OneOf(CHANGES),
        "How often the value changes from one record of a person to the next; measured by default. Not allowed for \
         attributes that are released unchanged or never.",
        "\"never\"",
    ),
];

const UNCOVERED: &[NamedChoice] =
    &[("refuse", "the data set is refused: the hierarchy may be wrong"), ("suppress", "they are released as `*`")];

pub(super) const COMMON_KEYS: &[SchemaKey] = &[optional_key(
    "uncovered",
    KeyShape::OneOf(UNCOVERED),
    "Handling of values that the hierarchy does not cover if `throng anonymize` releases a data set; `\"refuse\"` by \
     default. In a stream, these values are released as `*`.",
    "\"suppress\"",
)];

pub(super) const HIERARCHIES: &[HierarchyKind] = &[
    HierarchyKind {
        name: "intervals",
        types: NUMERIC,
        text: "Intervals of increasing width, fine to coarse; each width is a multiple of the previous one.",
        keys: &[
            required_key("min", KeyShape::Number, "Smallest value; smaller values are not covered.", "0"),
            required_key("max", KeyShape::Number, "Largest value; larger values are not covered.", "120"),
            required_key("widths", KeyShape::Numbers, "Width of the intervals on each level.", "[5, 10, 20]"),
            optional_key("origin", KeyShape::Number, "Start of one of the intervals; 0 by default.", "0"),
        ],
    },
    HierarchyKind {
        name: "bounds",
        types: NUMERIC,
        text: "Intervals between listed cut points, one list per level, fine to coarse; each list is a subset of the \
         previous one.",
        keys: &[
            required_key("min", KeyShape::Number, "Smallest value; smaller values are not covered.", "10"),
            required_key("max", KeyShape::Number, "Largest value; larger values are not covered.", "60"),
            required_key("levels", KeyShape::NumberLists, "Cut points of each level.", "[[18.5, 25, 30], [25]]"),
        ],
    },
    HierarchyKind {
        name: "prefix",
        types: STRINGS,
        text: "The first characters of a text, fewer on each level; the other characters become `*`.",
        keys: &[
            required_key(
                "keep",
                KeyShape::Counts,
                "Number of characters kept on each level, decreasing.",
                "[4, 3, 2, 1]",
            ),
            optional_key("length", KeyShape::Count, "Length of the covered texts; any length by default.", "5"),
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
                "Unit of each level, from second to year.",
                "[\"month\", \"year\"]",
            ),
            optional_key("min", KeyShape::Moment, "First covered date or time; requires `max`.", "\"1900-01-01\""),
            optional_key("max", KeyShape::Moment, "Last covered date or time; requires `min`.", "\"2020-12-31\""),
        ],
    },
    HierarchyKind {
        name: "grid",
        types: &["coordinates"],
        text: "Grid cells of increasing size, aligned to 0°, 0°; each size is a multiple of the previous one.",
        keys: &[required_key(
            "cells",
            KeyShape::Numbers,
            "Edge length of the cells on each level in degrees, at most 90.",
            "[0.1, 1, 10]",
        )],
    },
    HierarchyKind {
        name: "tree",
        types: &["integer", "float", "boolean", "string", "date", "timestamp"],
        text: "Groups of listed values: nested tables with lists of values on the innermost level, all equally deep.",
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
        text: "A file with one row per value: the value, then its group on each level, and `*` in the last column.",
        keys: &[
            required_key(
                "path",
                KeyShape::Text,
                "Path of the file, relative to the folder of the schema.",
                "\"hierarchies/occupation.csv\"",
            ),
            optional_key(
                "separator",
                KeyShape::Letter,
                "Column separator, one ASCII character; `;` by default.",
                "\",\"",
            ),
        ],
    },
];
