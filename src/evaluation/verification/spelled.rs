//! Whether a printed cell is one that its attribute may have: a canonical value, or a label of its hierarchy.
//!
//! A value is one whose canonical text, read as text that has left already, is itself. A label is known by a value below it: the listed
//! values of a tree, and for the other hierarchies values that its own text spells (points of an interval or of a cell of a grid, moments of a
//! calendar unit, the kept characters and others). Nothing is remembered of one attribute that would run full.

use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::canonical::{Canonical, Type};
use throng_core::values::hierarchy::{Cover, Hierarchy};
use throng_core::values::moment;
use throng_core::values::raw::Token;
use throng_core::values::schema::{Attribute, Role, Schema};
use throng_core::values::shapes;

/// What a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelled {
    /// `*`
    Suppressed,
    /// A value, or that there is none.
    Exact,
    /// A label that covers several values.
    Label,
}

/// The attributes as they may be printed.
pub(super) struct Spelling {
    attributes: Vec<Printed>,
    known: Vec<BTreeMap<String, Option<Spelled>>>,
}

impl Spelling {
    pub(super) fn new(schema: &Schema) -> Self {
        let attributes: Vec<Printed> = schema.attributes.iter().map(|attribute| Printed::new(attribute)).collect();
        Self { known: vec![BTreeMap::new(); attributes.len()], attributes }
    }

    /// Whether a JSON text is a range of an attribute: from a bound of its intervals to another.
    pub(super) fn is_range(&self, attribute: usize, text: &str) -> bool {
        let Hierarchy::Ruler(ruler) = &self.attributes[attribute].attribute.hierarchy else { return false };
        let string: Option<String> = serde_json::from_str(text).ok();
        string.as_deref().and_then(side_texts).is_some_and(|(low, high, open)| {
            let ends = if open { ruler.starts_interval(high) } else { ruler.ends_domain_or_interval(high) };
            let rises = low.parse::<f64>().ok() < high.parse::<f64>().ok();
            ruler.starts_interval(low) && ends && rises
        })
    }

    /// What a JSON text (empty for an absent one) is of an attribute; none where it is nothing that may leave.
    pub(super) fn judge(&mut self, attribute: usize, text: &str) -> Option<Spelled> {
        if let Some(known) = self.known[attribute].get(text) {
            return *known;
        }
        let judged = self.attributes[attribute].judge(text);
        self.known[attribute].insert(text.to_owned(), judged);
        judged
    }
}

/// One attribute as it may be printed.
struct Printed {
    /// Its values are read as text that has left already.
    attribute: Attribute,
    /// The labels of a tree.
    labels: BTreeSet<String>,
}

impl Printed {
    fn new(attribute: &Attribute) -> Self {
        let attribute = attribute.released();
        let mut labels = BTreeSet::new();
        if let Hierarchy::Tree(tree) = &attribute.hierarchy {
            for value in tree.listed() {
                labels.extend(labels_above(&attribute.hierarchy, value));
            }
        }
        Self { attribute, labels }
    }

    fn judge(&self, text: &str) -> Option<Spelled> {
        match text {
            "\"*\"" => return Some(Spelled::Suppressed),
            "" | "null" => return Some(Spelled::Exact),
            _ => {}
        }
        let string: Option<String> = serde_json::from_str(text).ok();
        if self.is_value(string.as_deref(), text) {
            return Some(Spelled::Exact);
        }
        let string = string?;
        let is_label = self.labels.contains(text) || self.examples(&string).any(|value| self.has_label(&value, text));
        is_label.then_some(Spelled::Label)
    }

    /// Whether `text` is the canonical text of a value that its hierarchy covers, and that names nobody by its shape.
    fn is_value(&self, string: Option<&str>, text: &str) -> bool {
        // A text of `*` behind backslashes stands for the raw one, which has one backslash less.
        let is_escaped =
            |string: &&str| string.len() > 1 && string.ends_with('*') && string.trim_start_matches('\\') == "*";
        let token = match (string, text) {
            (Some(string), _) => Token::Text(if is_escaped(&string) { &string[1..] } else { string }),
            (None, "true") => Token::Bool(true),
            (None, "false") => Token::Bool(false),
            (None, number) => Token::Number(number),
        };
        let names_somebody = |canonical: &str| {
            let is_guarded = self.attribute.role != Role::Insensitive && self.attribute.kind() == Type::String;
            is_guarded && shapes::within(canonical).is_some()
        };
        self.canonical(token).is_some_and(|canonical| {
            canonical == text && self.attribute.hierarchy.covers(text).is_some() && !names_somebody(text)
        })
    }

    fn canonical(&self, token: Token<'_>) -> Option<String> {
        let mut canonical = String::new();
        let read = self.attribute.typing.canonical(token, &mut canonical).ok()?;
        (read == Canonical::Value).then_some(canonical)
    }

    /// Whether a level shows `text` of a value.
    fn has_label(&self, value: &str, text: &str) -> bool {
        let canonical = self.canonical(Token::Text(value));
        canonical
            .is_some_and(|canonical| labels_above(&self.attribute.hierarchy, &canonical).any(|label| label == text))
    }

    /// Values that a label may cover, by its own text.
    fn examples<'a>(&'a self, label: &'a str) -> Box<dyn Iterator<Item = String> + 'a> {
        match &self.attribute.hierarchy {
            Hierarchy::Flat | Hierarchy::Tree(_) => Box::new(std::iter::empty()),
            Hierarchy::Ruler(_) => Box::new(sides(label).into_iter().flat_map(|[low, high]| points(low, high))),
            Hierarchy::Prefix(_) => Box::new(unmasked(label)),
            Hierarchy::Calendar(calendar) => {
                let first = calendar.domain().map(|(first, _)| first);
                Box::new(moments(label).chain(first).flat_map(later).filter_map(moment::rfc3339))
            }
            Hierarchy::Grid(_) => {
                let sides: Vec<(f64, f64)> = label.split(',').filter_map(side).collect();
                let [latitude, longitude] = sides[..] else { return Box::new(std::iter::empty()) };
                let at = move |latitude: String| {
                    points(longitude.0, longitude.1).map(move |longitude| format!("{latitude},{longitude}"))
                };
                Box::new(points(latitude.0, latitude.1).flat_map(at))
            }
        }
    }
}

/// What the levels show of a canonical value that is more than itself.
fn labels_above(hierarchy: &Hierarchy, canonical: &str) -> impl Iterator<Item = String> {
    hierarchy.covers(canonical).into_iter().flatten().filter_map(|cover| match cover {
        Cover::Set { text, .. } => Some(text),
        Cover::Root | Cover::Value => None,
    })
}

/// The ends of an interval: `30-39`, `-5--1`, `[36.5,37)`.
fn sides(label: &str) -> Option<[f64; 2]> {
    let (low, high, _) = side_texts(label)?;
    Some([low.parse().ok()?, high.parse().ok()?])
}

/// The same as texts, and whether the upper end does not belong to it.
fn side_texts(label: &str) -> Option<(&str, &str, bool)> {
    let inner = label.strip_prefix('[').map(|rest| rest.trim_end_matches([')', ']']));
    let dash = label.char_indices().skip(1).find(|(_, c)| *c == '-').map(|(at, _)| at);
    let (low, high) =
        inner.and_then(|inner| inner.split_once(',')).or(dash.map(|at| (&label[..at], &label[at + 1..])))?;
    Some((low, high, label.ends_with(')')))
}

/// The ends of a side of a grid's cell: `47.3..47.4`.
fn side(label: &str) -> Option<(f64, f64)> {
    let (low, high) = label.split_once("..")?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

/// Points of an interval: where values are rounded, its ends may be none. Whole numbers among them, for integers.
fn points(low: f64, high: f64) -> impl Iterator<Item = String> {
    const PARTS: u32 = 16;
    let at = move |part: u32| low + (high - low) * f64::from(part) / f64::from(PARTS);
    (0..=PARTS).map(at).flat_map(|point| [point, point.floor()]).map(|point| point.to_string())
}

/// Texts of which a masked one shows the first characters: as many of its last stars as may be masked are filled.
fn unmasked(label: &str) -> impl Iterator<Item = String> {
    let stars = label.chars().rev().take_while(|c| *c == '*').count();
    (1..=stars).rev().flat_map(move |masked| {
        let kept = &label[..label.len() - masked];
        // Digits for texts that are numbers, and letters.
        ["0", "a"].map(|filling| format!("{kept}{}", filling.repeat(masked)))
    })
}

/// The first moment of a calendar unit.
fn moments(label: &str) -> impl Iterator<Item = i64> {
    let first = label.split('/').next().unwrap_or(label);
    let day = match first.split_once('-') {
        None => format!("{first}-01-01"),
        Some((year, "Q1")) => format!("{year}-01-01"),
        Some((year, "Q2")) => format!("{year}-04-01"),
        Some((year, "Q3")) => format!("{year}-07-01"),
        Some((year, "Q4")) => format!("{year}-10-01"),
        Some((year, week)) if week.starts_with('W') => {
            let date = year
                .parse()
                .ok()
                .zip(week[1..].parse().ok())
                .and_then(|(year, week)| chrono::NaiveDate::from_isoywd_opt(year, week, chrono::Weekday::Mon));
            date.map(|date| date.to_string()).unwrap_or_default()
        }
        Some(_) if first.len() == 7 => format!("{first}-01"),
        Some(_) => first.to_owned(),
    };
    ["", ":00", "Z"].into_iter().filter_map(move |rest| moment::parse(&format!("{day}{rest}")))
}

/// A moment and later ones: where values are rounded, or a domain begins within a unit, its first moment may be no value.
fn later(first: i64) -> impl Iterator<Item = i64> {
    const DAY: i64 = moment::DAY;
    [0, 1_000, 60_000, 3_600_000, DAY, 7 * DAY, 31 * DAY, 92 * DAY, 366 * DAY].into_iter().map(move |span| first + span)
}

/// Returns true for JSON without white space around its tokens, in which each string has the escapes that it needs and no other.
pub(super) fn is_compact(line: &str) -> bool {
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c == '"' || c.is_whitespace()) {
        let string = &rest[at..];
        if !string.starts_with('"') {
            return false;
        }
        let mut escaped = false;
        let end = string.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let Some(end) = end.map(|end| end + 2) else { return false };
        let spelled = serde_json::from_str(&string[..end]).and_then(|text: String| serde_json::to_string(&text));
        if spelled.is_ok_and(|spelled| spelled != string[..end]) {
            return false;
        }
        rest = &string[end..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_escapes_are_no_place_to_write_in() {
        for line in [r#"{"a b":" c\"\\","d":[1,null,{"e":"\n"}]}"#, "{}", r#"{"ä":"*"}"#] {
            assert!(is_compact(line), "{line}");
        }
        let spaced = ["{\"a\": 1}", "{\"a\":1} ", "{\"a\":1}\r", "{\"a\":1,\t\"b\":2}"];
        for line in spaced.into_iter().chain([r#"{"\u0061":1}"#, r#"{"a":"\u00e4"}"#, r#"{"a":"\/"}"#, r#"{"a":"x"#]) {
            assert!(!is_compact(line), "{line}");
        }
    }
}
