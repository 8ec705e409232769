//! What leaves as Protobuf: a schema for each group, derived from the record schema.

use super::avro_output::{about, kind_of};
use super::output_names::{schema_name, text_name};
use crate::codec::{BadProtobuf, ProtobufSchema};
use crate::config::Config;
use crate::io::registry::WriterSchema;
use crate::records::schema::Attribute;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The numbers of fields: a name keeps the number that it has once had, and no number is given to another name.
#[derive(Debug, Default)]
pub struct Numbers {
    of: BTreeMap<String, u32>,
    given_up: BTreeSet<u32>,
}

/// The highest number that is followed; fields may have higher ones, and ours never do.
const MOST: u32 = 1 << 20;

/// Numbers that Protobuf keeps for itself.
const KEPT: std::ops::Range<u32> = 19_000..20_000;

/// Numbers that are given up: a schema that gives up more was not ours.
const MOST_GIVEN_UP: usize = 10_000;

impl Numbers {
    /// Those of `record`, a message at the top of the schema `before`; none where there is no such schema.
    ///
    /// # Errors
    /// When that schema cannot be used, or its numbers are spent.
    pub fn after(before: Option<&WriterSchema>, record: &str) -> Result<Self, BadProtobuf> {
        let Some(before) = before.filter(|before| before.kind == "PROTOBUF") else { return Ok(Self::default()) };
        let parts: Vec<(String, String)> =
            before.parts.iter().map(|part| (part.name.clone(), part.text.clone())).collect();
        let schema = ProtobufSchema::of_texts(&before.text, &parts)?;
        let Some(message) = schema.top(record) else { return Ok(Self::default()) };
        let of: BTreeMap<String, u32> = message.numbers().collect();
        let mut given_up = BTreeSet::new();
        for range in message.reserved() {
            given_up.extend(range.take(MOST_GIVEN_UP + 1));
        }
        let spent = of.values().chain(&given_up).any(|number| *number > MOST);
        if spent || given_up.len() > MOST_GIVEN_UP {
            return Err(BadProtobuf::new("its numbers are too high, or too many are given up"));
        }
        Ok(Self { of, given_up })
    }

    /// The number of `name`: its own, or the lowest above all others.
    fn of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.of.get(name) {
            return *number;
        }
        let highest = self.of.values().chain(&self.given_up).max().copied().unwrap_or(0);
        let mut next = highest + 1;
        if KEPT.contains(&next) {
            next = KEPT.end;
        }
        self.of.insert(name.to_owned(), next);
        next
    }
}

/// The Protobuf schema of lines with one cell for each of `attributes`, and the numbers of their fields (exact value and text).
///
/// Texts are one field, `optional`: what is missing is not there. Numbers and truth values have two in a `oneof`: `NAME` of their
/// own type, and `NAME_text` for a text that stands for several values, or `"*"`.
#[must_use]
pub fn protobuf_schema(
    config: &Config,
    attributes: &[&Attribute],
    record: &str,
    package: &str,
    mut numbers: Numbers,
) -> (String, Vec<[u32; 2]>) {
    let mut fields = String::new();
    let mut used = Vec::with_capacity(attributes.len());
    let mut names = BTreeSet::new();
    for attribute in attributes {
        let (name, kind) = (schema_name(&attribute.name), kind_of(attribute).protobuf_type());
        let exact = numbers.of(&name);
        let written = match text_name(attribute) {
            None => {
                used.push([exact, exact]);
                writeln!(fields, "  optional {kind} {name} = {exact};")
            }
            Some(text) => {
                let of_text = numbers.of(&text);
                used.push([exact, of_text]);
                names.insert(text.clone());
                writeln!(
                    fields,
                    "  oneof {name}_cell {{\n    {kind} {name} = {exact};\n    string {text} = {of_text};\n  }}"
                )
            }
        };
        debug_assert!(written.is_ok(), "writing to a String cannot fail");
        names.insert(name);
    }
    let gone = numbers.of.iter().filter(|(name, _)| !names.contains(*name)).map(|(_, number)| *number);
    let given_up: BTreeSet<u32> = numbers.given_up.iter().copied().chain(gone).collect();
    let reserved = if given_up.is_empty() {
        String::new()
    } else {
        let listed: Vec<String> = given_up.iter().map(u32::to_string).collect();
        format!("  reserved {};\n", listed.join(", "))
    };
    let text = format!(
        "syntax = \"proto3\";\npackage {package};\n\n// {}\nmessage {record} {{\n{reserved}{fields}}}\n",
        about(config)
    );
    (text, used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::schema::Schema;
    use std::path::Path;

    fn attributes(names: &[(&str, &str)]) -> Schema {
        let each = |(name, kind): &(&str, &str)| format!("[[attribute]]\nname = {name:?}\ntype = {kind:?}\n");
        let text = format!("name = \"s\"\n{}", names.iter().map(each).collect::<String>());
        Schema::parse(&text, "schema.toml", Path::new("")).expect("a sound schema")
    }

    fn derived(names: &[(&str, &str)], before: Option<&str>) -> (String, Vec<[u32; 2]>) {
        let schema = attributes(names);
        let listed: Vec<&Attribute> = schema.attributes.iter().map(AsRef::as_ref).collect();
        let before =
            before.map(|text| WriterSchema { kind: "PROTOBUF".to_owned(), text: text.to_owned(), parts: Vec::new() });
        let numbers = Numbers::after(before.as_ref(), "all").expect("numbers");
        protobuf_schema(&Config::default(), &listed, "all", "throng.s", numbers)
    }

    #[test]
    fn a_derived_schema_is_one() {
        let (text, numbers) = derived(&[("heart rate", "integer"), ("city", "string"), ("ok", "boolean")], None);
        assert_eq!(numbers, [[1, 2], [3, 3], [4, 5]]);
        let schema = ProtobufSchema::of_texts(&text, &[]).expect("a schema");
        let message = schema.named(Some("throng.s.all")).expect("its message");
        let found: Vec<(String, u32)> = message.numbers().collect();
        let wanted = [("heart_rate", 1), ("heart_rate_text", 2), ("city", 3), ("ok", 4), ("ok_text", 5)];
        assert_eq!(found, wanted.map(|(name, number)| (name.to_owned(), number)));
    }

    #[test]
    fn numbers_stay_with_names_and_are_never_given_again() {
        let (first, _) = derived(&[("age", "integer"), ("city", "string")], None);
        let (second, numbers) = derived(&[("new", "float"), ("city", "string")], Some(&first));
        assert_eq!(numbers, [[4, 5], [3, 3]]);
        assert!(second.contains("reserved 1, 2;"), "{second}");
        // What was given up stays so, and the same attributes have the same schema again.
        let (third, numbers) = derived(&[("age", "integer"), ("city", "string")], Some(&second));
        assert_eq!(numbers, [[6, 7], [3, 3]]);
        assert!(third.contains("reserved 1, 2, 4, 5;"), "{third}");
        assert_eq!(derived(&[("age", "integer"), ("city", "string")], Some(&third)).0, third);
    }

    #[test]
    fn what_was_there_of_others_is_followed_or_refused() {
        let before = |text: &str| {
            let schema = WriterSchema { kind: "PROTOBUF".to_owned(), text: text.to_owned(), parts: Vec::new() };
            Numbers::after(Some(&schema), "all").map(|numbers| numbers.of.len())
        };
        assert_eq!(before("message other { optional int32 a = 1; }").ok(), Some(0));
        assert_eq!(before("message all { optional int32 a = 7; }").ok(), Some(1));
        assert!(before("message all { reserved 1 to max; }").is_err());
        assert!(before("message all { optional int32 a = 536870911; }").is_err());
        assert!(before("message").is_err());
        let (_, numbers) = derived(&[("a", "string")], Some("message all { optional int32 b = 18999; }"));
        assert_eq!(numbers, [[20_000, 20_000]], "numbers that Protobuf keeps for itself are passed over");
    }
}
