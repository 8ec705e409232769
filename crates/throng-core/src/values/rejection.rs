//! Reasons for which a record is rejected.

use std::fmt;

/// Reason for which a record cannot be read or does not fit the schema. It contains no value of the record, so it may
/// be logged, counted and written to a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectionReason {
    /// Invalid JSON.
    MalformedJson,
    /// Text that is not UTF-8, or a text key with control characters.
    NotUtf8,
    /// Record longer than `max_record_bytes`.
    Oversized,
    /// Nesting deeper than `max_depth`.
    TooDeep,
    /// Key that occurs twice in one object; the choice of a value would be a guess.
    DuplicateKey,
    /// JSON that is not an object.
    NotAnObject,
    /// Only white space.
    Empty,
    /// CSV row with more or fewer fields than the header.
    RaggedRow,
    /// CSV row with an unclosed quote.
    MalformedRow,
    /// Attribute that the schema does not contain, while `schema.unknown` is `refuse`.
    UnknownAttribute,
    /// Value that does not fit the type of its attribute, such as NaN, an infinity or too long a text.
    WrongType,
    /// Bytes that do not match their Avro schema.
    MalformedAvro,
    /// Bytes that do not match their Protobuf schema.
    MalformedProtobuf,
    /// Message without the magic byte and schema ID that clients of a registry write before a record.
    BrokenFrame,
    /// Message with a schema that the registry does not have or that cannot be used.
    UnknownSchema,
    /// Message with a writer schema that lacks the field of an attribute.
    MissingField,
    /// Array of records (`explode` of the schema) that is missing, null or empty.
    NoElements,
    /// Array of records with more than 10,000 elements, or with too much data around them.
    TooManyElements,
    /// Value in place of the array of records that is not an array.
    NotAnArray,
    /// JSON that ends too early (inside a number it may count as malformed). Counted as [`Self::MalformedJson`].
    Truncated,
    /// Text after the closing brace of the record. Counted as [`Self::MalformedJson`].
    TrailingText,
}

impl RejectionReason {
    /// Returns the name of the stage that rejects a record for this reason.
    #[must_use]
    pub const fn stage_name(self) -> &'static str {
        match self {
            Self::WrongType => "encode",
            _ => "decode",
        }
    }

    /// Returns the name of this reason; two reasons are counted under another label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MalformedJson => "malformed_json",
            Self::NotUtf8 => "not_utf8",
            Self::Oversized => "oversized",
            Self::TooDeep => "too_deep",
            Self::DuplicateKey => "duplicate_key",
            Self::NotAnObject => "not_an_object",
            Self::Empty => "empty",
            Self::RaggedRow => "ragged_row",
            Self::MalformedRow => "malformed_row",
            Self::UnknownAttribute => "unknown_attribute",
            Self::WrongType => "wrong_type",
            Self::Truncated => "truncated",
            Self::TrailingText => "trailing_text",
            Self::MalformedAvro => "malformed_avro",
            Self::MalformedProtobuf => "malformed_protobuf",
            Self::BrokenFrame => "broken_frame",
            Self::UnknownSchema => "unknown_schema",
            Self::MissingField => "missing_field",
            Self::NoElements => "no_elements",
            Self::TooManyElements => "too_many_elements",
            Self::NotAnArray => "not_an_array",
        }
    }

    /// Returns the reason as a clause to follow "dead-lettered:".
    #[must_use]
    pub const fn reason_clause(self) -> &'static str {
        match self {
            Self::MalformedJson => "they are not JSON",
            Self::NotUtf8 => "they are not UTF-8",
            Self::Oversized => "they are longer than source.max_record_bytes",
            Self::TooDeep => "they are nested deeper than 32",
            Self::DuplicateKey => "a key occurs twice",
            Self::NotAnObject => "they are JSON, but not objects",
            Self::Empty => "they are empty",
            Self::RaggedRow => "they have more or fewer fields than the header",
            Self::MalformedRow => "a quote is not closed",
            Self::UnknownAttribute => "they have an attribute that is not in the schema",
            Self::WrongType => "a value does not match its type in the schema",
            Self::MalformedAvro => "they do not fit their Avro schema",
            Self::MalformedProtobuf => "they do not fit their Protobuf schema",
            Self::BrokenFrame => "the schema ID of the registry is missing",
            Self::UnknownSchema => "the registry does not know their schema, or it cannot be used",
            Self::MissingField => "their schema lacks a field of an attribute",
            Self::NoElements => "the array of records is missing or empty",
            Self::TooManyElements => "the array of records is too long",
            Self::NotAnArray => "the value of the array of records is not an array",
            Self::Truncated => "they end early",
            Self::TrailingText => "more text follows the record",
        }
    }

    /// Returns the reason for metrics and dead letters, which have one for all JSON that cannot be parsed.
    #[must_use]
    pub const fn counted_reason(self) -> Self {
        match self {
            Self::Truncated | Self::TrailingText => Self::MalformedJson,
            other => other,
        }
    }

    /// Returns advice for the operator; empty if the name is sufficient.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::MalformedJson => {
                "send one JSON object per record, and one record per line or message (jq -c .); set the format if it is not JSON (csv, parquet)"
            }
            Self::Truncated => {
                "the text ends before the record: NDJSON has one record per line (pretty-printed JSON: jq -c .)"
            }
            Self::TrailingText => "more text follows the record: NDJSON has one record per line (jq -c .)",
            Self::NotUtf8 => {
                "send UTF-8 (convert a file with iconv -t UTF-8), not compressed; set the format of keys that are numbers or frames (source.key_format)"
            }
            Self::NotAnObject => "a record is a JSON object: send the records of an array one by one (jq -c '.[]')",
            Self::DuplicateKey => "send each key only once per object: the choice between two values would be a guess",
            Self::RaggedRow => "send as many fields as the header has: quote fields that contain the separator",
            Self::MalformedRow => "close the quotes, and double those inside a field",
            Self::UnknownAttribute => "add it to the schema, or set schema.unknown = \"drop\"",
            Self::MalformedAvro => {
                "send records of their schema; plain Avro (without a registry) needs the exact schema of its writer"
            }
            Self::MalformedProtobuf => {
                "send records of their schema, without groups; plain Protobuf (without a registry) needs the message of its writer"
            }
            Self::BrokenFrame => {
                "send messages of a registry serializer (they start with a zero byte and the schema ID), or remove the registry from the configuration"
            }
            Self::UnknownSchema => "register the writer schema in the configured format",
            Self::MissingField => {
                "set `optional = true` on the attribute if older records lack it, or correct its place in the schema"
            }
            Self::NoElements => "send messages with elements, or correct `explode` of the schema",
            Self::TooManyElements => {
                "send shorter messages, or raise batch.max_bytes if there is much data around the elements"
            }
            Self::NotAnArray => "correct `explode` of the schema: it must point to an array",
            Self::WrongType => {
                "correct the records, or the types of the schema (for dates, `format` or `epoch`; for dates without a day, such as 2024-05, `round = \"month\"` or `\"year\"`; for NaN and infinities, `missing`)"
            }
            _ => "",
        }
    }
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
