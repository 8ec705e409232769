//! Reasons to reject a record.

use std::fmt;

/// Reason to reject a record; contains no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectionReason {
    /// Invalid JSON.
    MalformedJson,
    /// Not UTF-8, or control characters in a text key.
    NotUtf8,
    /// Longer than `max_record_bytes`.
    Oversized,
    /// Nested deeper than `max_depth`.
    TooDeep,
    /// Key twice in one object.
    DuplicateKey,
    /// JSON, but not an object.
    NotAnObject,
    /// White space only.
    Empty,
    /// CSV row of another length than the header.
    RaggedRow,
    /// Unclosed quote in CSV.
    MalformedRow,
    /// Unknown attribute, with `schema.unknown` = `refuse`.
    UnknownAttribute,
    /// Value outside the type of its attribute.
    WrongType,
    /// Bytes without the expected Avro schema.
    MalformedAvro,
    /// Bytes without the expected Protobuf schema.
    MalformedProtobuf,
    /// No magic byte and schema ID of a registry.
    BrokenFrame,
    /// Schema unknown to the registry, or unusable.
    UnknownSchema,
    /// Writer schema without an attribute.
    MissingField,
    /// Missing, null or empty array of records.
    NoElements,
    /// Too many elements or surrounding data.
    TooManyElements,
    /// Value in place of the array of records.
    NotAnArray,
    /// Early end, counted as [`Self::MalformedJson`].
    Truncated,
    /// Trailing text, counted as [`Self::MalformedJson`].
    TrailingText,
}

impl RejectionReason {
    /// Returns the rejecting stage.
    #[must_use]
    pub const fn stage_name(self) -> &'static str {
        match self {
            Self::WrongType => "encode",
            _ => "decode",
        }
    }

    /// Returns the label.
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

    /// Returns the clause after "dead-lettered:".
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

    /// Returns the reason for metrics and dead letters.
    #[must_use]
    pub const fn counted_reason(self) -> Self {
        match self {
            Self::Truncated | Self::TrailingText => Self::MalformedJson,
            other => other,
        }
    }

    /// Returns advice, possibly empty.
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
