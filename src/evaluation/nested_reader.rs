//! Reader of nested lines, independent of their writer.

use crate::start::nested_output::attribute_path;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use throng_core::values::schema::{Attribute, Schema};
use throng_formats::NestingStep;

/// JSON object with key order and unparsed values.
pub(super) struct RawObject(pub Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawObjectVisitor;
        impl<'de> Visitor<'de> for RawObjectVisitor {
            type Value = RawObject;
            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(RawObject(pairs))
            }
        }
        deserializer.deserialize_map(RawObjectVisitor)
    }
}

/// Unsplit value with its path.
pub(super) type NestedValue = (Vec<NestingStep>, Box<RawValue>);

/// Returns the values of a nested line, in order.
///
/// Structures on the path of an attribute are split; others, and empty ones, are values. Padding `null`s of arrays are
/// skipped.
pub(super) fn nested_values(object: RawObject, attributes: &[&Attribute]) -> Vec<NestedValue> {
    let ways: Vec<Vec<NestingStep>> = attributes.iter().map(|attribute| attribute_path(attribute)).collect();
    let mut found = Vec::new();
    split_object(object, &mut Vec::new(), &ways, &mut found);
    found
}

fn split_object(
    object: RawObject,
    prefix: &mut Vec<NestingStep>,
    ways: &[Vec<NestingStep>],
    found: &mut Vec<NestedValue>,
) {
    for (key, value) in object.0 {
        prefix.push(NestingStep::Key(key));
        split_value(value, prefix, ways, found);
        prefix.pop();
    }
}

fn split_value(
    value: Box<RawValue>,
    prefix: &mut Vec<NestingStep>,
    ways: &[Vec<NestingStep>],
    found: &mut Vec<NestedValue>,
) {
    let mut inside = ways.iter().filter(|way| way.len() > prefix.len() && way.starts_with(prefix));
    if inside.next().is_none() {
        found.push((prefix.clone(), value));
        return;
    }
    if let Ok(object) = serde_json::from_str::<RawObject>(value.get())
        && !object.0.is_empty()
    {
        split_object(object, prefix, ways, found);
    } else if let Ok(places) = serde_json::from_str::<Vec<Box<RawValue>>>(value.get())
        && !places.is_empty()
    {
        let last = places.len() - 1;
        for (index, place) in places.into_iter().enumerate() {
            prefix.push(NestingStep::ArrayIndex(index));
            let is_cell = ways.contains(prefix);
            if is_cell || place.get() != "null" || index == last {
                split_value(place, prefix, ways, found);
            }
            prefix.pop();
        }
    } else {
        found.push((prefix.clone(), value));
    }
}

/// Returns each attribute's rank in a nested line: a structure takes the position of its first attribute.
pub(super) fn attribute_ranks(schema: &Schema, attributes: &[usize]) -> Vec<usize> {
    let ways: Vec<Vec<NestingStep>> = attributes.iter().map(|a| attribute_path(&schema.attributes[*a])).collect();
    let mut order: Vec<usize> = (0..ways.len()).collect();
    // Diverging paths are ordered by their earliest attribute, array positions by number.
    let first = |way: &[NestingStep], depth: usize| {
        ways.iter().position(|other| other.len() > depth && other[..=depth] == way[..=depth])
    };
    order.sort_by_cached_key(|at| {
        let way = &ways[*at];
        let branch = |depth: usize| match &way[depth] {
            NestingStep::ArrayIndex(index) => *index,
            NestingStep::Key(_) => first(way, depth).unwrap_or(*at),
        };
        (0..way.len()).map(branch).collect::<Vec<usize>>()
    });
    let mut ranks = vec![0; ways.len()];
    for (rank, at) in order.into_iter().enumerate() {
        ranks[at] = rank;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn schema() -> Schema {
        let attribute = |(name, pointer): (&str, &str)| {
            format!("[[attribute]]\nname = \"{name}\"\npointer = \"{pointer}\"\ntype = \"integer\"\n")
        };
        let pointers = [("a", "/x/p"), ("b", "/y"), ("c", "/x/q"), ("d", "/s/1/v"), ("e", "/s/0/v")];
        let text = format!("name = \"t\"\n{}", pointers.map(attribute).concat());
        Schema::parse(&text, "s.toml", Path::new("")).expect("a schema")
    }

    #[test]
    fn nested_ranks_keep_structures_together() {
        assert_eq!(attribute_ranks(&schema(), &[0, 1, 2, 3, 4]), [0, 2, 1, 4, 3]);
        assert_eq!(attribute_ranks(&schema(), &[1, 2]), [0, 1]);
    }

    #[test]
    fn nested_line_keeps_unknown_values() {
        let schema = schema();
        let attributes: Vec<&Attribute> = schema.attributes.iter().map(AsRef::as_ref).collect();
        let of = |text: &str| -> Vec<String> {
            let object = serde_json::from_str(text).expect("an object");
            let steps = |way: Vec<NestingStep>| -> String {
                way.iter()
                    .map(|step| match step {
                        NestingStep::Key(key) => format!("/{key}"),
                        NestingStep::ArrayIndex(index) => format!("/{index}"),
                    })
                    .collect()
            };
            nested_values(object, &attributes)
                .into_iter()
                .map(|(way, value)| format!("{}={}", steps(way), value.get()))
                .collect()
        };
        assert_eq!(of(r#"{"x":{"p":1,"q":"*"},"s":[null,{"v":2}]}"#), ["/x/p=1", "/x/q=\"*\"", "/s/1/v=2"]);
        assert_eq!(of(r#"{"x":{"z":{"k":1}},"y":{"k":1}}"#), ["/x/z={\"k\":1}", "/y={\"k\":1}"]);
        assert_eq!(of(r#"{"x":{},"s":[]}"#), ["/x={}", "/s=[]"]);
        assert_eq!(of(r#"{"x":5,"s":[null]}"#), ["/x=5", "/s/0=null"]);
        assert_eq!(of(r#"{"s":[{"v":1},{"v":2},{"v":3}]}"#), ["/s/0/v=1", "/s/1/v=2", "/s/2={\"v\":3}"]);
    }
}
