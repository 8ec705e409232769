//! Validation of printed cells. A label is valid if one of its values prints it: a listed value of a tree, otherwise a
//! value derived from the label.

use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::canonical::{AttributeType, CanonicalKind};
use throng_core::values::hierarchy::{Hierarchy, ValueCover};
use throng_core::values::identifier_shapes;
use throng_core::values::moment;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::schema::{Attribute, Role, Schema};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrintedCellKind {
    /// `*`
    Suppressed,
    Exact,
    Label,
}

pub(super) struct CellValidator {
    attributes: Vec<AttributeValidator>,
    known_kinds: Vec<BTreeMap<String, Option<PrintedCellKind>>>,
}

impl CellValidator {
    pub(super) fn new(schema: &Schema) -> Self {
        let attributes: Vec<AttributeValidator> =
            schema.attributes.iter().map(|attribute| AttributeValidator::new(attribute)).collect();
        Self { known_kinds: vec![BTreeMap::new(); attributes.len()], attributes }
    }

    /// Ranges join bounds of the attribute's intervals.
    pub(super) fn is_range(&self, attribute: usize, text: &str) -> bool {
        let Hierarchy::Ruler(ruler) = &self.attributes[attribute].attribute.hierarchy else { return false };
        let string: Option<String> = serde_json::from_str(text).ok();
        string.as_deref().and_then(interval_texts).is_some_and(|(low, high, open)| {
            let ends = if open { ruler.starts_interval(high) } else { ruler.ends_domain_or_interval(high) };
            let rises = low.parse::<f64>().ok() < high.parse::<f64>().ok();
            ruler.starts_interval(low) && ends && rises
        })
    }

    /// Accepts a JSON text, or an empty one for an absent value; none if invalid.
    pub(super) fn printed_kind(&mut self, attribute: usize, text: &str) -> Option<PrintedCellKind> {
        if let Some(known) = self.known_kinds[attribute].get(text) {
            return *known;
        }
        let judged = self.attributes[attribute].kind_of_text(text);
        self.known_kinds[attribute].insert(text.to_owned(), judged);
        judged
    }
}

struct AttributeValidator {
    /// In released form.
    attribute: Attribute,
    labels: BTreeSet<String>,
}

impl AttributeValidator {
    fn new(attribute: &Attribute) -> Self {
        let attribute = attribute.for_released_values();
        let mut labels = BTreeSet::new();
        if let Hierarchy::Tree(tree) = &attribute.hierarchy {
            for value in tree.listed_values() {
                labels.extend(labels_above(&attribute.hierarchy, value));
            }
        }
        Self { attribute, labels }
    }

    fn kind_of_text(&self, text: &str) -> Option<PrintedCellKind> {
        match text {
            "\"*\"" => return Some(PrintedCellKind::Suppressed),
            "" | "null" => return Some(PrintedCellKind::Exact),
            _ => {}
        }
        let string: Option<String> = serde_json::from_str(text).ok();
        if self.is_value(string.as_deref(), text) {
            return Some(PrintedCellKind::Exact);
        }
        let string = string?;
        let is_label =
            self.labels.contains(text) || self.example_values(&string).any(|value| self.has_label(&value, text));
        is_label.then_some(PrintedCellKind::Label)
    }

    /// Canonical, covered and not identifier-shaped.
    fn is_value(&self, string: Option<&str>, text: &str) -> bool {
        // An escaped `*` has one backslash more than its raw text.
        let is_escaped =
            |string: &&str| string.len() > 1 && string.ends_with('*') && string.trim_start_matches('\\') == "*";
        let token = match (string, text) {
            (Some(string), _) => RawToken::Text(if is_escaped(&string) { &string[1..] } else { string }),
            (None, "true") => RawToken::Bool(true),
            (None, "false") => RawToken::Bool(false),
            (None, number) => RawToken::Number(number),
        };
        let names_somebody = |canonical: &str| {
            let is_guarded = self.attribute.role != Role::Insensitive && self.attribute.kind() == AttributeType::String;
            is_guarded && identifier_shapes::nested_shape(canonical).is_some()
        };
        self.canonical(token).is_some_and(|canonical| {
            canonical == text && self.attribute.hierarchy.covers(text).is_some() && !names_somebody(text)
        })
    }

    fn canonical(&self, token: RawToken<'_>) -> Option<String> {
        let mut canonical = String::new();
        let read = self.attribute.typing.canonical(token, &mut canonical).ok()?;
        (read == CanonicalKind::Value).then_some(canonical)
    }

    fn has_label(&self, value: &str, text: &str) -> bool {
        let canonical = self.canonical(RawToken::Text(value));
        canonical
            .is_some_and(|canonical| labels_above(&self.attribute.hierarchy, &canonical).any(|label| label == text))
    }

    fn example_values<'a>(&'a self, label: &'a str) -> Box<dyn Iterator<Item = String> + 'a> {
        match &self.attribute.hierarchy {
            Hierarchy::Flat | Hierarchy::Tree(_) => Box::new(std::iter::empty()),
            Hierarchy::Ruler(_) => {
                Box::new(interval_ends(label).into_iter().flat_map(|[low, high]| interval_points(low, high)))
            }
            Hierarchy::Prefix(_) => Box::new(unmasked_texts(label)),
            Hierarchy::Calendar(calendar) => {
                let first = calendar.domain().map(|(first, _)| first);
                Box::new(first_moments(label).chain(first).flat_map(later_moments).filter_map(moment::rfc3339))
            }
            Hierarchy::Grid(_) => {
                let sides: Vec<(f64, f64)> = label.split(',').filter_map(grid_side).collect();
                let [latitude, longitude] = sides[..] else { return Box::new(std::iter::empty()) };
                let at = move |latitude: String| {
                    interval_points(longitude.0, longitude.1).map(move |longitude| format!("{latitude},{longitude}"))
                };
                Box::new(interval_points(latitude.0, latitude.1).flat_map(at))
            }
        }
    }
}

/// Between value and root.
fn labels_above(hierarchy: &Hierarchy, canonical: &str) -> impl Iterator<Item = String> {
    hierarchy.covers(canonical).into_iter().flatten().filter_map(|cover| match cover {
        ValueCover::Set { text, .. } => Some(text),
        ValueCover::Root | ValueCover::Value => None,
    })
}

/// `30-39`, `-5--1`, `[36.5,37)`.
fn interval_ends(label: &str) -> Option<[f64; 2]> {
    let (low, high, _) = interval_texts(label)?;
    Some([low.parse().ok()?, high.parse().ok()?])
}

/// The flag marks an exclusive upper end.
fn interval_texts(label: &str) -> Option<(&str, &str, bool)> {
    let inner = label.strip_prefix('[').map(|rest| rest.trim_end_matches([')', ']']));
    let dash = label.char_indices().skip(1).find(|(_, c)| *c == '-').map(|(at, _)| at);
    let (low, high) =
        inner.and_then(|inner| inner.split_once(',')).or(dash.map(|at| (&label[..at], &label[at + 1..])))?;
    Some((low, high, label.ends_with(')')))
}

/// `47.3..47.4`.
fn grid_side(label: &str) -> Option<(f64, f64)> {
    let (low, high) = label.split_once("..")?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

/// Includes integers. Because of rounding, the ends may not be values.
fn interval_points(low: f64, high: f64) -> impl Iterator<Item = String> {
    const PARTS: u32 = 16;
    let at = move |part: u32| low + (high - low) * f64::from(part) / f64::from(PARTS);
    (0..=PARTS).map(at).flat_map(|point| [point, point.floor()]).map(|point| point.to_string())
}

/// Fills each possible number of last stars.
fn unmasked_texts(label: &str) -> impl Iterator<Item = String> {
    let stars = label.chars().rev().take_while(|c| *c == '*').count();
    (1..=stars).rev().flat_map(move |masked| {
        let kept = &label[..label.len() - masked];
        // For numeric texts, and for others.
        ["0", "a"].map(|filling| format!("{kept}{}", filling.repeat(masked)))
    })
}

fn first_moments(label: &str) -> impl Iterator<Item = i64> {
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

/// Because of rounding or the domain, the first moment may not be a value.
fn later_moments(first: i64) -> impl Iterator<Item = i64> {
    const DAY: i64 = moment::DAY;
    [0, 1_000, 60_000, 3_600_000, DAY, 7 * DAY, 31 * DAY, 92 * DAY, 366 * DAY].into_iter().map(move |span| first + span)
}

/// Returns true for JSON without optional white space and escapes.
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
    fn compact_json_rejects_white_space_and_extra_escapes() {
        for line in [r#"{"a b":" c\"\\","d":[1,null,{"e":"\n"}]}"#, "{}", r#"{"ä":"*"}"#] {
            assert!(is_compact(line), "{line}");
        }
        let spaced = ["{\"a\": 1}", "{\"a\":1} ", "{\"a\":1}\r", "{\"a\":1,\t\"b\":2}"];
        for line in spaced.into_iter().chain([r#"{"\u0061":1}"#, r#"{"a":"\u00e4"}"#, r#"{"a":"\/"}"#, r#"{"a":"x"#]) {
            assert!(!is_compact(line), "{line}");
        }
    }
}
