//! The elements of a JSON array, each as its text.

use super::json_fault::of_syntax;
use crate::telemetry::RejectionReason;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The texts of the elements of `json`, 1 to `most`.
///
/// # Errors
/// Where it is no well-formed array, and where it has none or more.
pub(super) fn elements(json: &str, most: usize) -> Result<Vec<&str>, RejectionReason> {
    match json.trim_ascii().as_bytes().first() {
        Some(b'[') => {}
        Some(b'n') if json.trim_ascii() == "null" => return Err(RejectionReason::NoElements),
        _ => return Err(not_an_array(json)),
    }
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let mut is_long = false;
    let found = Elements { most, is_long: &mut is_long }.deserialize(&mut deserializer);
    let found = match found {
        Ok(found) => found,
        Err(_) if is_long => return Err(RejectionReason::TooManyElements),
        Err(error) => return Err(of_syntax(&error)),
    };
    deserializer.end().map_err(|_| RejectionReason::TrailingText)?;
    if found.is_empty() { Err(RejectionReason::NoElements) } else { Ok(found) }
}

fn not_an_array(json: &str) -> RejectionReason {
    match serde_json::from_str::<IgnoredAny>(json) {
        Ok(_) => RejectionReason::NotAnArray,
        Err(error) => of_syntax(&error),
    }
}

struct Elements<'l> {
    most: usize,
    /// Set before the walk is broken off.
    is_long: &'l mut bool,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = Vec<&'de str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(element) = array.next_element::<&RawValue>()? {
            if found.len() == self.most {
                *self.is_long = true;
                return Err(de::Error::custom("too many elements"));
            }
            found.push(element.get());
        }
        Ok(found)
    }
}
