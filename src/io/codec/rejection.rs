//! Why a record was refused.

use std::fmt;

use crate::telemetry::Reason;

/// A closed list without any value of the record, so that it may be logged, counted and sent as a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rejection {
    /// Nothing but white space.
    Empty,
    /// Longer than `max_record_bytes`.
    Oversized,
    NotUtf8,
    /// Not JSON.
    MalformedJson,
    /// JSON that stops before its end (inside a number it may be called malformed).
    Truncated,
    /// More text after the record's closing brace.
    TrailingText,
    /// JSON, but no object.
    NotAnObject,
    /// Nested deeper than `max_depth`.
    TooDeep,
    /// A key twice in one object: which of the two counts would be a guess.
    DuplicateKey,
    /// A key that the schema does not know, where unknown keys are refused.
    UnknownAttribute,
    /// A CSV row with more or fewer fields than the header.
    RaggedRow,
    /// A CSV row whose quotes do not close.
    MalformedRow,
}

impl Rejection {
    /// Every rejection, for metrics that want a series each from the start.
    pub const ALL: [Self; 12] = [
        Self::Empty,
        Self::Oversized,
        Self::NotUtf8,
        Self::MalformedJson,
        Self::Truncated,
        Self::TrailingText,
        Self::NotAnObject,
        Self::TooDeep,
        Self::DuplicateKey,
        Self::UnknownAttribute,
        Self::RaggedRow,
        Self::MalformedRow,
    ];

    /// The stage of the way of a record at which it was refused; always `decode`.
    #[must_use]
    pub const fn stage(self) -> &'static str {
        "decode"
    }

    /// The reason under which it is counted and reported.
    #[must_use]
    pub const fn reason(self) -> Reason {
        match self {
            Self::Empty => Reason::Empty,
            Self::Oversized => Reason::Oversized,
            Self::NotUtf8 => Reason::NotUtf8,
            Self::MalformedJson | Self::Truncated | Self::TrailingText => Reason::MalformedJson,
            Self::NotAnObject => Reason::NotAnObject,
            Self::TooDeep => Reason::TooDeep,
            Self::DuplicateKey => Reason::DuplicateKey,
            Self::UnknownAttribute => Reason::UnknownAttribute,
            Self::RaggedRow => Reason::RaggedRow,
            Self::MalformedRow => Reason::MalformedRow,
        }
    }

    /// What it may be instead, and the remedy; empty where the name says enough.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Truncated => {
                "it ends before the record does: NDJSON has one record a line (pretty-printed JSON: jq -c .)"
            }
            Self::TrailingText => "there is more after the record: NDJSON has one record a line (jq -c .)",
            Self::NotAnObject => "a record is a JSON object: of an array of records write one a line (jq -c '.[]')",
            Self::MalformedJson => "it is no JSON: name the format of the file if it has another (csv, parquet)",
            Self::NotUtf8 => "save the file as UTF-8 (iconv -t UTF-8), and decompress it if it is compressed",
            Self::RaggedRow => "it has more or fewer fields than the header: quote fields that hold the separator",
            Self::MalformedRow => "a quote is not closed: close it, or double the quotes inside a field",
            _ => "",
        }
    }

    /// The name used in labels, logs and dead letters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Oversized => "oversized",
            Self::NotUtf8 => "not_utf8",
            Self::MalformedJson => "malformed_json",
            Self::Truncated => "truncated",
            Self::TrailingText => "trailing_text",
            Self::NotAnObject => "not_an_object",
            Self::TooDeep => "too_deep",
            Self::DuplicateKey => "duplicate_key",
            Self::UnknownAttribute => "unknown_attribute",
            Self::RaggedRow => "ragged_row",
            Self::MalformedRow => "malformed_row",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_distinct_label_values() {
        let names: BTreeSet<_> = Rejection::ALL.iter().map(|r| r.as_str()).collect();
        assert_eq!(names.len(), Rejection::ALL.len());
        assert!(names.iter().all(|n| n.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')));
    }
}
