//! Counterfeit catalog: one JSON line per group of classes (\[HCE] Def. 3; docs/internals/counterfeits.md).

use crate::values::json::push_quoted;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// One group of classes and its counterfeits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CatalogGroup {
    /// Names of all released attributes, in line order.
    pub attributes: Vec<String>,
    /// Name of the sensitive attribute.
    pub sensitive: String,
    /// JSON texts by class, in the order of `attributes` without `sensitive`; empty if omitted.
    pub classes: Vec<Vec<String>>,
    /// JSON text of a sensitive value, and its number of counterfeits.
    pub counterfeits: Vec<(String, u64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogLine<'a> {
    attributes: Vec<String>,
    sensitive: String,
    #[serde(borrow)]
    classes: Vec<BTreeMap<String, &'a RawValue>>,
    #[serde(borrow)]
    counterfeits: Vec<CatalogLineCount<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogLineCount<'a> {
    #[serde(borrow)]
    value: &'a RawValue,
    count: u64,
}

impl CatalogGroup {
    /// Names of the attributes that identify a class.
    pub fn quasi_identifier_names(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().map(String::as_str).filter(|name| *name != self.sensitive)
    }

    /// JSON text without line break.
    #[must_use]
    pub fn line(&self) -> String {
        let mut out = String::from("{\"attributes\":[");
        push_comma_separated(&mut out, self.attributes.iter(), |out, name| push_quoted(out, name));
        out.push_str("],\"sensitive\":");
        push_quoted(&mut out, &self.sensitive);
        out.push_str(",\"classes\":[");
        push_comma_separated(&mut out, self.classes.iter(), |out, cells| {
            out.push('{');
            let present = self.quasi_identifier_names().zip(cells).filter(|(_, cell)| !cell.is_empty());
            push_comma_separated(out, present, |out, (name, cell)| {
                push_quoted(out, name);
                out.push(':');
                out.push_str(cell);
            });
            out.push('}');
        });
        out.push_str("],\"counterfeits\":[");
        push_comma_separated(&mut out, self.counterfeits.iter(), |out, (value, count)| {
            out.push_str("{\"value\":");
            out.push_str(value);
            out.push_str(&format!(",\"count\":{count}}}"));
        });
        out.push_str("]}");
        out
    }

    /// Parses a line; `None` for another form or unknown attributes.
    #[must_use]
    pub fn parse_catalog_line(line: &str) -> Option<Self> {
        let spelled: CatalogLine<'_> = serde_json::from_str(line).ok()?;
        let mut group = Self {
            attributes: spelled.attributes,
            sensitive: spelled.sensitive,
            classes: Vec::with_capacity(spelled.classes.len()),
            counterfeits: spelled.counterfeits.iter().map(|of| (of.value.get().to_owned(), of.count)).collect(),
        };
        if group.attributes.iter().filter(|name| **name == group.sensitive).count() != 1 {
            return None;
        }
        for class in &spelled.classes {
            if !class.keys().all(|name| group.quasi_identifier_names().any(|known| known == name)) {
                return None;
            }
            let cells = group
                .quasi_identifier_names()
                .map(|name| class.get(name).map_or(String::new(), |cell| cell.get().to_owned()));
            let cells = cells.collect();
            group.classes.push(cells);
        }
        Some(group)
    }
}

fn push_comma_separated<T>(out: &mut String, items: impl Iterator<Item = T>, mut push: impl FnMut(&mut String, T)) {
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(',');
        }
        push(out, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalog_line_round_trip_keeps_group() {
        let group = CatalogGroup {
            attributes: vec!["a\"ge".into(), "illness".into(), "place".into()],
            sensitive: "illness".into(),
            classes: vec![vec!["1.50".into(), String::new()], vec!["null".into(), "\"Ä, \\\"b\"".into()]],
            counterfeits: vec![("\"*\"".into(), 3), ("7".into(), 1)],
        };
        let line = group.line();
        assert!(line.contains(r#""classes":[{"a\"ge":1.50},{"a\"ge":null,"place":"Ä, \"b"}]"#), "{line}");
        assert_eq!(CatalogGroup::parse_catalog_line(&line), Some(group));
        for broken in [
            "",
            "{}",
            &line.replace("\"sensitive\":\"illness\"", "\"sensitive\":\"x\""),
            &line.replace("\"place\":", "\"other\":"),
        ] {
            assert_eq!(CatalogGroup::parse_catalog_line(broken), None, "{broken}");
        }
    }
}
