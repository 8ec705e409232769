//! The catalog of counterfeits: one JSON line a group of classes ([HCE] Def. 3; docs/methods.md §15.4).
//!
//! `{"attributes":["age","place","illness"],"sensitive":"illness","classes":[{"age":"30-39","place":"north"},…],
//! "counterfeits":[{"value":"flu","count":2}]}`: among the lines of these classes that show `flu`, two are invented. A line
//! of the release is of the class whose cells are those of its quasi attributes, text for text (an omitted cell has no key, a missing
//! one is null): the cells are the class ID.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use throng_core::values::json::push_quoted;

/// One group of classes, and what was put into them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CatalogGroup {
    /// Names of all attributes that leave, in the order of the lines.
    pub attributes: Vec<String>,
    /// The name of the sensitive one among them.
    pub sensitive: String,
    /// By class: the JSON texts of its cells in the order of `attributes` without `sensitive`; empty for an omitted one.
    pub classes: Vec<Vec<String>>,
    /// JSON text of a sensitive cell, and how many counterfeits show it in all the classes together.
    pub counterfeits: Vec<(String, u64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spelled<'a> {
    attributes: Vec<String>,
    sensitive: String,
    #[serde(borrow)]
    classes: Vec<BTreeMap<String, &'a RawValue>>,
    #[serde(borrow)]
    counterfeits: Vec<SpelledCount<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpelledCount<'a> {
    #[serde(borrow)]
    value: &'a RawValue,
    count: u64,
}

impl CatalogGroup {
    /// The attributes that name a class.
    pub fn quasi(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().map(String::as_str).filter(|name| *name != self.sensitive)
    }

    /// The line, without a line break.
    #[must_use]
    pub fn line(&self) -> String {
        let mut out = String::from("{\"attributes\":[");
        separated(&mut out, self.attributes.iter(), |out, name| push_quoted(out, name));
        out.push_str("],\"sensitive\":");
        push_quoted(&mut out, &self.sensitive);
        out.push_str(",\"classes\":[");
        separated(&mut out, self.classes.iter(), |out, cells| {
            out.push('{');
            let present = self.quasi().zip(cells).filter(|(_, cell)| !cell.is_empty());
            separated(out, present, |out, (name, cell)| {
                push_quoted(out, name);
                out.push(':');
                out.push_str(cell);
            });
            out.push('}');
        });
        out.push_str("],\"counterfeits\":[");
        separated(&mut out, self.counterfeits.iter(), |out, (value, count)| {
            out.push_str("{\"value\":");
            out.push_str(value);
            out.push_str(&format!(",\"count\":{count}}}"));
        });
        out.push_str("]}");
        out
    }

    /// The group that a line spells; none where it spells none: no JSON of this form, a sensitive attribute that is none of the
    /// attributes, a class with a cell of an unknown one.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let spelled: Spelled<'_> = serde_json::from_str(line).ok()?;
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
            if !class.keys().all(|name| group.quasi().any(|known| known == name)) {
                return None;
            }
            let cells = group.quasi().map(|name| class.get(name).map_or(String::new(), |cell| cell.get().to_owned()));
            let cells = cells.collect();
            group.classes.push(cells);
        }
        Some(group)
    }
}

fn separated<T>(out: &mut String, items: impl Iterator<Item = T>, mut push: impl FnMut(&mut String, T)) {
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
    fn a_line_reads_back_as_it_was_written() {
        let group = CatalogGroup {
            attributes: vec!["a\"ge".into(), "illness".into(), "place".into()],
            sensitive: "illness".into(),
            classes: vec![vec!["1.50".into(), String::new()], vec!["null".into(), "\"Ä, \\\"b\"".into()]],
            counterfeits: vec![("\"*\"".into(), 3), ("7".into(), 1)],
        };
        let line = group.line();
        assert!(line.contains(r#""classes":[{"a\"ge":1.50},{"a\"ge":null,"place":"Ä, \"b"}]"#), "{line}");
        assert_eq!(CatalogGroup::read(&line), Some(group));
        for broken in [
            "",
            "{}",
            &line.replace("\"sensitive\":\"illness\"", "\"sensitive\":\"x\""),
            &line.replace("\"place\":", "\"other\":"),
        ] {
            assert_eq!(CatalogGroup::read(broken), None, "{broken}");
        }
    }
}
