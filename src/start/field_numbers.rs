//! The numbers of the fields of what leaves as Protobuf.
//!
//! Readers know a field by its number alone, so that a number must mean one thing for good, and nobody remembers what plain
//! messages had before. It therefore follows from the name and the type of its field, whatever else the message has. Where a registry
//! has a schema already, a name keeps the number that it has there.

use super::avro_output::kind_of;
use super::output_names::{schema_name, text_name, written_under};
use crate::config::{Config, Problem};
use crate::io::registry::{FramedAs, WriterSchema};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::schema::{Attribute, Schema};
use throng_formats::{BadProtobuf, CellKind, ProtobufSchema};

/// What numbers are taken from: behind those that Protobuf keeps for itself, and with a tag of four bytes at most.
const OURS: std::ops::Range<u32> = 20_000..1 << 25;

/// Numbers that are given up: a schema that gives up more was not ours.
const MOST_GIVEN_UP: usize = 10_000;

/// The number of a field that no schema has yet.
#[must_use]
pub fn own_number(name: &str, kind: &str) -> u32 {
    let digest = Sha256::new().chain_update(name).chain_update([0_u8]).chain_update(kind).finalize();
    let drawn = digest.iter().take(8).fold(0, |drawn, byte| drawn << 8 | u64::from(*byte));
    let drawn = drawn % u64::from(OURS.end - OURS.start);
    OURS.start + u32::try_from(drawn).unwrap_or_default()
}

/// Attributes whose fields would have one number. There are 33 million of them, so that few will ever see this.
#[must_use]
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    if written_under(config) != Some(FramedAs::Protobuf) {
        return Vec::new();
    }
    collisions(schema.releasable().map(|a| schema.attributes[a].as_ref()), own_number, file)
}

fn collisions<'s>(
    attributes: impl Iterator<Item = &'s Attribute>,
    number: impl Fn(&str, &str) -> u32,
    file: &str,
) -> Vec<Problem> {
    let (mut numbers, mut found): (BTreeMap<u32, &str>, _) = (BTreeMap::new(), Vec::new());
    for attribute in attributes {
        let exact = number(&schema_name(&attribute.name), kind_of(attribute).protobuf_type());
        let text = text_name(attribute).map(|text| number(&text, CellKind::Text.protobuf_type()));
        for number in [Some(exact), text].into_iter().flatten() {
            if let Some(other) = numbers.insert(number, &attribute.name) {
                let message =
                    format!("fields of attributes {other:?} and {:?} have one number, {number}", attribute.name);
                found.push(Problem::new(file, "sink.format", message, "rename one of them in the record schema"));
            }
        }
    }
    found
}

/// The numbers of the fields of one message: a name keeps the number that it has had, and no number is given to another name.
#[derive(Debug, Default)]
pub struct Numbers {
    of: BTreeMap<String, u32>,
    given_up: BTreeSet<u32>,
}

impl Numbers {
    /// Those of `record`, a message at the top of the schema `before`; none where there is no such schema.
    ///
    /// # Errors
    /// When that schema cannot be used, or gives up too many numbers.
    pub fn after(before: Option<&WriterSchema>, record: &str) -> Result<Self, BadProtobuf> {
        let Some(before) = before.filter(|before| before.kind == "PROTOBUF") else { return Ok(Self::default()) };
        let schema = ProtobufSchema::of_texts(&before.text, &before.parts)?;
        let Some(message) = schema.top(record) else { return Ok(Self::default()) };
        let of: BTreeMap<String, u32> = message.numbers().collect();
        let mut given_up = BTreeSet::new();
        for range in message.reserved() {
            given_up.extend(range.take(MOST_GIVEN_UP + 1));
        }
        if given_up.len() > MOST_GIVEN_UP {
            return Err(BadProtobuf::new("too many of its numbers are given up"));
        }
        Ok(Self { of, given_up })
    }

    /// The number of the field `name` of type `kind`: the one that it has had, or else its own.
    pub fn of(&mut self, name: &str, kind: &str) -> u32 {
        if let Some(number) = self.of.get(name) {
            return *number;
        }
        let mut number = own_number(name, kind);
        // There are more numbers than a schema has fields or gives up.
        while self.given_up.contains(&number) || self.of.values().any(|taken| *taken == number) {
            number = if number + 1 < OURS.end { number + 1 } else { OURS.start };
        }
        self.of.insert(name.to_owned(), number);
        number
    }

    /// Numbers that no field has any more where a message has the fields `names`, ascending.
    #[must_use]
    pub fn given_up(&self, names: &BTreeSet<String>) -> BTreeSet<u32> {
        let gone = self.of.iter().filter(|(name, _)| !names.contains(*name)).map(|(_, number)| *number);
        self.given_up.iter().copied().chain(gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_follows_from_name_and_type() {
        // Numbers are on disks and in the schemas of readers: they must never be others.
        assert_eq!(own_number("age", "int64"), 19_574_147);
        assert_eq!(own_number("age", "string"), 19_171_749);
        let drawn: BTreeSet<u32> = (0..1_000).map(|at| own_number(&format!("a{at}"), "double")).collect();
        // 1,000 of 33 million: 0.015 pairs alike are expected, and which they are does not change.
        assert_eq!(drawn.len(), 1_000);
        assert!(drawn.iter().all(|number| OURS.contains(number)));
        assert!(drawn.first().is_some_and(|first| *first < OURS.end / 100), "from all of the range: {drawn:?}");
        assert!(drawn.last().is_some_and(|last| *last > OURS.end / 100 * 99), "{drawn:?}");
    }

    #[test]
    fn numbers_that_are_alike_are_told() {
        let text = "name = \"s\"\n[[attribute]]\nname = \"pulse\"\ntype = \"integer\"\n[[attribute]]\nname = \"city\"\ntype = \"string\"\n";
        let schema = Schema::parse(text, "schema.toml", std::path::Path::new("")).expect("a sound schema");
        let found = |number: fn(&str, &str) -> u32| {
            collisions(schema.attributes.iter().map(AsRef::as_ref), number, "throng.toml").len()
        };
        assert_eq!(found(own_number), 0);
        // As if `city` had the number of `pulse_text`.
        assert_eq!(found(|name, _| u32::from(name == "pulse")), 1);
        assert_eq!(found(|name, kind| if name == "pulse" { 0 } else { own_number(name, kind) }), 0);
    }

    #[test]
    fn what_was_there_of_others_is_followed_or_refused() {
        let before = |text: &str| {
            let schema = WriterSchema { kind: "PROTOBUF".to_owned(), text: text.to_owned(), parts: Vec::new() };
            Numbers::after(Some(&schema), "all").map(|mut numbers| numbers.of("a", "int32"))
        };
        let own = own_number("a", "int32");
        assert_eq!(before("message other { optional int32 a = 1; }").ok(), Some(own));
        assert_eq!(before("message all { optional int32 a = 7; }").ok(), Some(7));
        assert_eq!(before("message all { optional int32 a = 536870911; }").ok(), Some(536_870_911));
        // What others have, or had, is passed over.
        assert_eq!(before(&format!("message all {{ optional int32 b = {own}; }}")).ok(), Some(own + 1));
        let taken = format!("message all {{ reserved {own}, {}; }}", own + 1);
        assert_eq!(before(&taken).ok(), Some(own + 2));
        assert!(before("message all { reserved 1 to max; }").is_err());
        assert!(before("message").is_err());
    }
}
