//! Whether a printed cell is one that its attribute may have: a canonical value, or a label of its hierarchy.
//!
//! A label is known by a value below it: the listed values of a tree, and for the other hierarchies a value that its own text
//! spells (the lower end of an interval or its middle, the first day of a month, the kept characters).

use crate::config::Config;
use crate::evaluation::error::EvaluationError;
use crate::records::codebook::{ABSENT, Codebook, FIRST_VALUE, NULL};
use crate::records::digest::DigestKey;
use crate::records::hierarchy::Hierarchy;
use crate::records::moment::DAY;
use crate::records::raw::Token;
use crate::records::schema::{Attribute, Schema};
use crate::start::memory::max_dictionary_values;
use crate::start::sampling::SamplingError;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    books: Vec<Codebook>,
    known: Vec<BTreeMap<String, Option<Spelled>>>,
}

impl Spelling {
    pub(super) fn new(config: &Config, schema: &Schema) -> Result<Self, EvaluationError> {
        let key = DigestKey::of_this_run().map_err(SamplingError::Randomness)?;
        let mut books = Vec::with_capacity(schema.attributes.len());
        for attribute in &schema.attributes {
            let book = Codebook::new(Arc::new(attribute.released()), &key, max_dictionary_values(config, schema));
            let mut book = book.map_err(SamplingError::Codebook)?;
            if let Hierarchy::Tree(tree) = &attribute.hierarchy {
                tree.listed().into_iter().for_each(|value| {
                    book.encode_canonical(value);
                });
            }
            books.push(book);
        }
        Ok(Self { known: vec![BTreeMap::new(); books.len()], books })
    }

    /// What a JSON text (empty for an absent one) is of an attribute; none where it is nothing that may leave.
    pub(super) fn judge(&mut self, attribute: usize, text: &str) -> Option<Spelled> {
        if let Some(known) = self.known[attribute].get(text) {
            return *known;
        }
        let judged = judge(&mut self.books[attribute], text);
        self.known[attribute].insert(text.to_owned(), judged);
        judged
    }
}

fn judge(book: &mut Codebook, text: &str) -> Option<Spelled> {
    match text {
        "\"*\"" => return Some(Spelled::Suppressed),
        "" | "null" => return Some(Spelled::Exact),
        _ => {}
    }
    let string: Option<String> = serde_json::from_str(text).ok();
    // A string that starts with an escaped `*` stands for the raw one.
    let own = |string: &str| string.strip_prefix('\\').filter(|rest| *rest == "*").unwrap_or(string).to_owned();
    let token = match (&string, text) {
        (Some(string), _) => own(string),
        (None, text) => text.to_owned(),
    };
    let bare = match (string.is_some(), text) {
        (true, _) => Token::Text(&token),
        (false, "true") => Token::Bool(true),
        (false, "false") => Token::Bool(false),
        (false, _) => Token::Number(&token),
    };
    if let Ok(code) = book.encode(bare)
        && (code >= FIRST_VALUE || code == NULL || code == ABSENT)
        && book.text(book.cell(code, 0)) == text
    {
        return Some(Spelled::Exact);
    }
    let early = string.iter().flat_map(|_| earliest(book.attribute()));
    let examples: Vec<String> = string.iter().flat_map(|string| examples(string)).chain(early).collect();
    for example in examples {
        // Numbers are read from texts too.
        for token in [Token::Untyped(&example), Token::Text(&example)] {
            if let Ok(code) = book.encode(token)
                && code >= FIRST_VALUE
                && (1..book.levels()).any(|level| book.text(book.cell(code, level)) == text)
            {
                return Some(Spelled::Label);
            }
        }
    }
    // Labels of trees, and of values met before.
    book.cell_of(text).map(|cell| if book.is_exact(cell) { Spelled::Exact } else { Spelled::Label })
}

/// The first moments of a domain: the first unit of a calendar may begin before it.
fn earliest(attribute: &Attribute) -> Vec<String> {
    let Hierarchy::Calendar(calendar) = &attribute.hierarchy else { return Vec::new() };
    let Some((first, _)) = calendar.domain() else { return Vec::new() };
    // Where values are rounded, the very first may be rounded out of the domain.
    let moments = [0, DAY / 86_400, DAY / 1_440, DAY / 24, DAY]
        .into_iter()
        .filter_map(|later| chrono::DateTime::from_timestamp_millis(first + later));
    moments
        .flat_map(|at| [at.format("%F").to_string(), at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)])
        .collect()
}

/// Values that a label may cover, by its own text.
fn examples(label: &str) -> Vec<String> {
    let mut examples = Vec::new();
    // Intervals: `30-39`, `-5--1`, `[36.5,37)`.
    let inner = label.strip_prefix('[').map(|rest| rest.trim_end_matches([')', ']']));
    let dash = label.char_indices().skip(1).find(|(_, c)| *c == '-').map(|(at, _)| at);
    let sides = inner.and_then(|inner| inner.split_once(',')).or(dash.map(|at| (&label[..at], &label[at + 1..])));
    if let Some((low, high)) = sides {
        examples.push(low.to_owned());
        examples.extend(middle(low, high));
    }
    // Masked characters.
    if label.contains('*') {
        examples.extend(["0", "a"].map(|filling| label.replace('*', filling)));
    }
    // Cells of a grid: `47.3..47.4,8.5..8.6`.
    let sides: Vec<&str> = label.split(',').filter_map(|side| side.split_once("..").map(|(low, _)| low)).collect();
    if let [latitude, longitude] = sides[..] {
        examples.push(format!("{latitude},{longitude}"));
    }
    examples.extend(moments(label));
    examples
}

/// A value between the ends of an interval: where values are rounded, its ends may be none.
fn middle(low: &str, high: &str) -> Option<String> {
    let (from, to): (f64, f64) = (low.parse().ok()?, high.parse().ok()?);
    let middle = from.midpoint(to);
    let is_whole = !low.contains('.') && !high.contains('.') && !high.is_empty();
    Some(if is_whole && to - from > 1.0 { middle.floor() } else { middle }.to_string())
}

/// The first moment of a calendar unit.
fn moments(label: &str) -> Vec<String> {
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
    let clock = |rest: &str| format!("{day}{rest}");
    ["", "T00:00:00Z", ":00:00Z", ":00Z", "Z", "T00:00:00"].map(clock).to_vec()
}
