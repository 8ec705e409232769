//! Lines that are nested, read without the code that writes them.

use crate::start::nested::way;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use throng_core::values::schema::{Attribute, Schema};
use throng_formats::Step;

/// An object as it is written: keys in their order, values as they are spelled.
pub(super) struct Object(pub Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Object;
            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Object(pairs))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

/// A value of a nested line that is no structure, and the way to it.
pub(super) type Found = (Vec<Step>, Box<RawValue>);

/// The values of a nested line, in their order. A structure is taken apart where one of `attributes` lies inside; any other one
/// is a value, and so is one without anything in it. `null` that keeps a place of an array is none.
pub(super) fn values(object: Object, attributes: &[&Attribute]) -> Vec<Found> {
    let ways: Vec<Vec<Step>> = attributes.iter().map(|attribute| way(attribute)).collect();
    let mut found = Vec::new();
    take_apart(object, &mut Vec::new(), &ways, &mut found);
    found
}

fn take_apart(object: Object, prefix: &mut Vec<Step>, ways: &[Vec<Step>], found: &mut Vec<Found>) {
    for (key, value) in object.0 {
        prefix.push(Step::Key(key));
        take(value, prefix, ways, found);
        prefix.pop();
    }
}

fn take(value: Box<RawValue>, prefix: &mut Vec<Step>, ways: &[Vec<Step>], found: &mut Vec<Found>) {
    let mut inside = ways.iter().filter(|way| way.len() > prefix.len() && way.starts_with(prefix));
    if inside.next().is_none() {
        found.push((prefix.clone(), value));
        return;
    }
    if let Ok(object) = serde_json::from_str::<Object>(value.get())
        && !object.0.is_empty()
    {
        take_apart(object, prefix, ways, found);
    } else if let Ok(places) = serde_json::from_str::<Vec<Box<RawValue>>>(value.get())
        && !places.is_empty()
    {
        let last = places.len() - 1;
        for (index, place) in places.into_iter().enumerate() {
            prefix.push(Step::Place(index));
            let is_cell = ways.contains(prefix);
            if is_cell || place.get() != "null" || index == last {
                take(place, prefix, ways, found);
            }
            prefix.pop();
        }
    } else {
        found.push((prefix.clone(), value));
    }
}

/// The order in which `attributes` (positions in the schema) stand in a nested line: what lies in one structure stands together,
/// where its first attribute does. By attribute of the list, its rank.
pub(super) fn ranks(schema: &Schema, attributes: &[usize]) -> Vec<usize> {
    let ways: Vec<Vec<Step>> = attributes.iter().map(|a| way(&schema.attributes[*a])).collect();
    let mut order: Vec<usize> = (0..ways.len()).collect();
    // Where two ways part, the branch that the earliest attribute takes comes first; places of an array come in their order.
    let first = |way: &[Step], depth: usize| {
        ways.iter().position(|other| other.len() > depth && other[..=depth] == way[..=depth])
    };
    order.sort_by_cached_key(|at| {
        let way = &ways[*at];
        let branch = |depth: usize| match &way[depth] {
            Step::Place(index) => *index,
            Step::Key(_) => first(way, depth).unwrap_or(*at),
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
    fn what_lies_together_stands_together() {
        assert_eq!(ranks(&schema(), &[0, 1, 2, 3, 4]), [0, 2, 1, 4, 3]);
        assert_eq!(ranks(&schema(), &[1, 2]), [0, 1]);
    }

    #[test]
    fn values_are_found_and_strangers_are_values() {
        let schema = schema();
        let attributes: Vec<&Attribute> = schema.attributes.iter().map(AsRef::as_ref).collect();
        let of = |text: &str| -> Vec<String> {
            let object = serde_json::from_str(text).expect("an object");
            let steps = |way: Vec<Step>| -> String {
                way.iter()
                    .map(|step| match step {
                        Step::Key(key) => format!("/{key}"),
                        Step::Place(index) => format!("/{index}"),
                    })
                    .collect()
            };
            values(object, &attributes)
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
