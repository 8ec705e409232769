//! Durations and sizes as text: `1s`, `64MiB`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

pub(super) struct DurationText;

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

/// Texts that [`parse_size`] and [`humantime`] accept.
const SIZE: &str = r"^\s*[0-9]+\s*(B|KiB|MiB|GiB)?\s*$";
const DURATION: &str = r"^\s*(0|([0-9]+(\.[0-9]+)?\s*(nanos|nsec|ns|usec|us|µs|millis|msec|ms|seconds|second|secs|sec|s|minutes|minute|mins|min|m|hours|hour|hrs|hr|h|days|day|d|weeks|week|wks|wk|w|months|month|M|years|year|yrs|yr|y)\s*)+)\s*$";

pub(super) mod duration {
    pub use humantime_serde::{deserialize, serialize};
}

pub(super) mod optional_duration {
    pub use humantime_serde::option::{deserialize, serialize};
}

const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

/// Parses a whole number, optionally with `B`, `KiB`, `MiB` or `GiB`. None if invalid or at least 2⁶⁴ bytes.
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

/// Formats `bytes` in the largest unit that divides it.
pub fn format_size(bytes: u64) -> String {
    let (unit, shift) =
        UNITS.iter().find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift).unwrap_or(&UNITS[3]);
    format!("{}{unit}", bytes >> shift)
}

/// Sizes as `"64MiB"`; reads also numbers of bytes.
pub(super) mod size {
    use serde::{Deserializer, Serializer, de};

    use super::{format_size, parse_size};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
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
                u64::try_from(bytes).map_err(|_| E::custom("a size cannot be negative"))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
                parse_size(text).ok_or_else(|| E::custom("not a size in bytes like \"64MiB\""))
            }
        }
        from.deserialize_any(Visitor)
    }
}

/// An empty text is none: the environment unsets the key.
pub(super) mod optional_size {
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    use super::{parse_size, size};

    #[expect(clippy::ref_option, reason = "the signature that serde requires")]
    pub fn serialize<S: Serializer>(bytes: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => size::serialize(bytes, to),
            None => to.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum SizeInput {
            Number(u64),
            Text(String),
        }
        match Option::<SizeInput>::deserialize(from)? {
            None => Ok(None),
            Some(SizeInput::Text(text)) if text.trim().is_empty() => Ok(None),
            Some(SizeInput::Number(bytes)) => Ok(Some(bytes)),
            Some(SizeInput::Text(text)) => {
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
    fn size_text_parses_or_is_refused() {
        assert_eq!(parse_size("64MiB"), Some(64 << 20));
        assert_eq!(parse_size("1 KiB"), Some(1024));
        assert_eq!(parse_size("17"), Some(17));
        for wrong in ["", "MiB", "-1", "1.5MiB", "1MB", "20000000000GiB", "+3"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn formatted_size_parses_to_same_bytes(bytes: u64) {
            prop_assert_eq!(parse_size(&format_size(bytes)), Some(bytes));
        }
    }
}
