//! Field numbers of the Protobuf output. Readers identify a field by its number, and plain messages have no history.
//! Therefore name and type determine the number, unless the registry has one for the name.

use super::avro_output::cell_kind_of;
use super::output_names::{output_schema_kind, schema_name, text_name};
use crate::config::{Config, ConfigProblem};
use crate::io::registry::{FrameEncoding, WriterSchema};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::schema::{Attribute, Schema};
use throng_formats::{CellKind, ProtobufSchema, ProtobufSchemaError};

/// After those reserved by Protobuf, with a tag of at most four bytes.
const DERIVED_NUMBERS: std::ops::Range<u32> = 20_000..1 << 25;

/// A schema with more was not written by throng.
const MAX_RESERVED_NUMBERS: usize = 10_000;

/// Returns the number of a field outside any schema.
#[must_use]
pub fn derived_number(name: &str, kind: &str) -> u32 {
    let digest = Sha256::new().chain_update(name).chain_update([0_u8]).chain_update(kind).finalize();
    let drawn = digest.iter().take(8).fold(0, |drawn, byte| drawn << 8 | u64::from(*byte));
    let drawn = drawn % u64::from(DERIVED_NUMBERS.end - DERIVED_NUMBERS.start);
    DERIVED_NUMBERS.start + u32::try_from(drawn).unwrap_or_default()
}

/// Returns attributes with colliding numbers, which are rare among 33 million.
#[must_use]
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<ConfigProblem> {
    if output_schema_kind(config) != Some(FrameEncoding::Protobuf) {
        return Vec::new();
    }
    collisions(schema.releasable().map(|a| schema.attributes[a].as_ref()), derived_number, file)
}

fn collisions<'s>(
    attributes: impl Iterator<Item = &'s Attribute>,
    number: impl Fn(&str, &str) -> u32,
    file: &str,
) -> Vec<ConfigProblem> {
    let (mut numbers, mut found): (BTreeMap<u32, &str>, _) = (BTreeMap::new(), Vec::new());
    for attribute in attributes {
        let exact = number(&schema_name(&attribute.name), cell_kind_of(attribute).protobuf_type());
        let text = text_name(attribute).map(|text| number(&text, CellKind::Text.protobuf_type()));
        for number in [Some(exact), text].into_iter().flatten() {
            if let Some(other) = numbers.insert(number, &attribute.name) {
                let message =
                    format!("fields of attributes {other:?} and {:?} have the same number, {number}", attribute.name);
                found.push(ConfigProblem::new(file, "sink.format", message, "rename one of them in the record schema"));
            }
        }
    }
    found
}

/// Numbers of one message; none is reused for another name.
#[derive(Debug, Default)]
pub struct FieldNumbers {
    of: BTreeMap<String, u32>,
    given_up: BTreeSet<u32>,
}

impl FieldNumbers {
    /// Reads the numbers of the top-level message `record` in `before`.
    ///
    /// # Errors
    /// Fails if that schema is invalid or reserves too many numbers.
    pub fn from_registered(before: Option<&WriterSchema>, record: &str) -> Result<Self, ProtobufSchemaError> {
        let Some(before) = before.filter(|before| before.kind == "PROTOBUF") else { return Ok(Self::default()) };
        let schema = ProtobufSchema::compile_proto_texts(&before.text, &before.parts)?;
        let Some(message) = schema.top_level_message(record) else { return Ok(Self::default()) };
        let of: BTreeMap<String, u32> = message.numbers().collect();
        let mut given_up = BTreeSet::new();
        for range in message.reserved() {
            given_up.extend(range.take(MAX_RESERVED_NUMBERS + 1));
        }
        if given_up.len() > MAX_RESERVED_NUMBERS {
            return Err(ProtobufSchemaError::new("too many of its numbers are reserved"));
        }
        Ok(Self { of, given_up })
    }

    /// Returns the earlier number of the field, or else the derived one.
    pub fn of(&mut self, name: &str, kind: &str) -> u32 {
        if let Some(number) = self.of.get(name) {
            return *number;
        }
        let mut number = derived_number(name, kind);
        // Terminates: there are more numbers than fields and reserved numbers.
        while self.given_up.contains(&number) || self.of.values().any(|taken| *taken == number) {
            number = if number + 1 < DERIVED_NUMBERS.end { number + 1 } else { DERIVED_NUMBERS.start };
        }
        self.of.insert(name.to_owned(), number);
        number
    }

    /// Returns the numbers that a message with the fields `names` no longer uses.
    #[must_use]
    pub fn unused_numbers(&self, names: &BTreeSet<String>) -> BTreeSet<u32> {
        let gone = self.of.iter().filter(|(name, _)| !names.contains(*name)).map(|(_, number)| *number);
        self.given_up.iter().copied().chain(gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_number_derives_from_name_and_type() {
        // Stored in readers' schemas: these must never change.
        assert_eq!(derived_number("age", "int64"), 19_574_147);
        assert_eq!(derived_number("age", "string"), 19_171_749);
        let drawn: BTreeSet<u32> = (0..1_000).map(|at| derived_number(&format!("a{at}"), "double")).collect();
        // 0.015 collisions are expected; the result is deterministic.
        assert_eq!(drawn.len(), 1_000);
        assert!(drawn.iter().all(|number| DERIVED_NUMBERS.contains(number)));
        assert!(
            drawn.first().is_some_and(|first| *first < DERIVED_NUMBERS.end / 100),
            "from all of the range: {drawn:?}"
        );
        assert!(drawn.last().is_some_and(|last| *last > DERIVED_NUMBERS.end / 100 * 99), "{drawn:?}");
    }

    #[test]
    fn colliding_field_numbers_are_reported() {
        let text = "name = \"s\"\n[[attribute]]\nname = \"pulse\"\ntype = \"integer\"\n[[attribute]]\nname = \"city\"\ntype = \"string\"\n";
        let schema = Schema::parse(text, "schema.toml", std::path::Path::new("")).expect("a sound schema");
        let found = |number: fn(&str, &str) -> u32| {
            collisions(schema.attributes.iter().map(AsRef::as_ref), number, "throng.toml").len()
        };
        assert_eq!(found(derived_number), 0);
        // Gives `city` the number of `pulse_text`.
        assert_eq!(found(|name, _| u32::from(name == "pulse")), 1);
        assert_eq!(found(|name, kind| if name == "pulse" { 0 } else { derived_number(name, kind) }), 0);
    }

    #[test]
    fn existing_schema_numbers_are_kept_or_refused() {
        let before = |text: &str| {
            let schema = WriterSchema { kind: "PROTOBUF".to_owned(), text: text.to_owned(), parts: Vec::new() };
            FieldNumbers::from_registered(Some(&schema), "all").map(|mut numbers| numbers.of("a", "int32"))
        };
        let own = derived_number("a", "int32");
        assert_eq!(before("message other { optional int32 a = 1; }").ok(), Some(own));
        assert_eq!(before("message all { optional int32 a = 7; }").ok(), Some(7));
        assert_eq!(before("message all { optional int32 a = 536870911; }").ok(), Some(536_870_911));
        assert_eq!(before(&format!("message all {{ optional int32 b = {own}; }}")).ok(), Some(own + 1));
        let taken = format!("message all {{ reserved {own}, {}; }}", own + 1);
        assert_eq!(before(&taken).ok(), Some(own + 2));
        assert!(before("message all { reserved 1 to max; }").is_err());
        assert!(before("message").is_err());
    }
}
