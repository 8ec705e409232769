//! Durations and sizes as people write them: `1s`, `24h`, `64MiB`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// What a duration looks like in the file, for the JSON schema.
pub(super) struct DurationText;

/// What a size in bytes looks like in the file, for the JSON schema.
pub(super) struct Size;

impl JsonSchema for DurationText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "humantime", "pattern": DURATION })
    }
}

impl JsonSchema for Size {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"], "format": "size", "minimum": 0, "pattern": SIZE })
    }
}

/// What [`parse_size`] reads, and what [`humantime`] does.
const SIZE: &str = r"^\s*[0-9]+\s*(B|KiB|MiB|GiB)?\s*$";
const DURATION: &str = r"^\s*(0|([0-9]+(\.[0-9]+)?\s*(nanos|nsec|ns|usec|us|µs|millis|msec|ms|seconds|second|secs|sec|s|minutes|minute|mins|min|m|hours|hour|hrs|hr|h|days|day|d|weeks|week|wks|wk|w|months|month|M|years|year|yrs|yr|y)\s*)+)\s*$";

/// Durations by [`humantime`].
pub(super) mod duration {
    pub use humantime_serde::{deserialize, serialize};
}

/// The same, where there may be none.
pub(super) mod optional_duration {
    pub use humantime_serde::option::{deserialize, serialize};
}

const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

/// Bytes of `text`: a whole number, then nothing, `B`, `KiB`, `MiB` or `GiB`. None when it is no size below 2⁶⁴.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = UNITS
        .iter()
        .find_map(|(unit, shift)| text.strip_suffix(unit).map(|digits| (digits.trim_end(), *shift)))
        .unwrap_or((text, 0));
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// `bytes` in the largest unit that divides it: `1MiB`, `1500B`.
pub fn format_size(bytes: u64) -> String {
    let (unit, shift) =
        UNITS.iter().find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift).unwrap_or(&UNITS[3]);
    format!("{}{unit}", bytes >> shift)
}

/// Sizes as `"64MiB"` or as a plain number of bytes.
pub(super) mod size {
    use serde::{Deserializer, Serializer, de};

    use super::{format_size, parse_size};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    pub fn serialize<S: Serializer>(bytes: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format_size(*bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = u64;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a size in bytes like \"64MiB\"")
            }
            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<u64, E> {
                Ok(bytes)
            }
            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<u64, E> {
                u64::try_from(bytes).map_err(|_| E::custom("a size is not negative"))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
                parse_size(text).ok_or_else(|| E::custom("not a size in bytes like \"64MiB\""))
            }
        }
        from.deserialize_any(Visitor)
    }
}

/// The same, where there may be none: an empty text is none, so that the environment can say so.
pub(super) mod optional_size {
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    use super::{parse_size, size};

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub fn serialize<S: Serializer>(bytes: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => size::serialize(bytes, to),
            None => to.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Option::<Written>::deserialize(from)? {
            None => Ok(None),
            Some(Written::Text(text)) if text.trim().is_empty() => Ok(None),
            Some(Written::Number(bytes)) => Ok(Some(bytes)),
            Some(Written::Text(text)) => {
                parse_size(&text).map(Some).ok_or_else(|| de::Error::custom("not a size in bytes like \"64MiB\""))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{format_size, parse_size};

    #[test]
    fn sizes_are_read_as_written() {
        assert_eq!(parse_size("64MiB"), Some(64 << 20));
        assert_eq!(parse_size("1 KiB"), Some(1024));
        assert_eq!(parse_size("17"), Some(17));
        for wrong in ["", "MiB", "-1", "1.5MiB", "1MB", "20000000000GiB", "+3"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_size_survives_its_spelling(bytes: u64) {
            prop_assert_eq!(parse_size(&format_size(bytes)), Some(bytes));
        }
    }
}
