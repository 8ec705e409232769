//! The role of an attribute, and why. What may identify is an identifier: to let it leave is for people to decide.

use super::codes::are_codes;
use super::names::Name;
use super::people::People;
use super::proposal::Reading;
use super::tokens::number;
use super::values::Values;
use throng_core::values::schema::{Role, Type};
use throng_risk::identifiers::{Judgement, Profile, Reason, Rule};

/// A role with its reason.
pub(super) struct Chosen {
    pub role: Role,
    pub why: String,
}

/// Labels of a vocabulary, at most.
const VOCABULARY: usize = 50;
/// Share of the cells that a vocabulary with a crowd behind every label holds, at least.
const WHOLE: f64 = 0.95;
/// Characters of a text from which it is written, and not chosen.
const LONG: usize = 40;

/// The role of a column that does not count people.
pub(super) fn choose(values: &Values<'_>, reading: &Reading, name: &Name, people: &People, k: u64) -> Chosen {
    if let Some(why) = identifies(values, reading, name, people, k) {
        return Chosen { role: Role::Identifier, why };
    }
    if name.is_sensitive() {
        let why = "sensitive by its name: it leaves beside the class, where its value has a crowd of its own; give it a [[privacy.model]]";
        return Chosen { role: Role::Sensitive, why: why.to_owned() };
    }
    match reading.kind {
        Type::Date | Type::Timestamp if !name.is_birth() => {
            Chosen { role: Role::Time, why: "a point in time".to_owned() }
        }
        _ => Chosen { role: Role::Quasi, why: String::new() },
    }
}

fn identifies(values: &Values<'_>, reading: &Reading, name: &Name, people: &People, k: u64) -> Option<String> {
    if values.texts.is_empty() || values.texts.iter().all(|text| reading.missing.iter().any(|m| m == text.text)) {
        return Some("no value in these records: nothing is known of it".to_owned());
    }
    if values.column.arrays > 0 || values.texts.iter().any(|text| is_structure(text.text)) {
        let taken_apart =
            if values.column.arrays > 0 { "; `explode` takes a list of records apart (docs/formats.md)" } else { "" };
        return Some(format!("lists or objects, of which nobody knows what is in them{taken_apart}"));
    }
    if reading.kind == Type::Boolean {
        return None;
    }
    if let Some(category) = name.of_people() {
        return Some(format!("by its name ({})", category.title()));
    }
    if let Some(why) = judged(values, reading, name, people) {
        return Some(why);
    }
    if name.names_people() {
        return Some("by its name (a name or address of a person)".to_owned());
    }
    match reading.kind {
        Type::String => of_words(values, name, people, k),
        Type::Integer => of_numbers(values, reading, name, people, k),
        _ => None,
    }
}

fn is_structure(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('{') && text.ends_with('}') || text.starts_with("[{") || text.starts_with("[[")
}

/// What the rule of the audit says; a single value with the shape of an identifier is enough among words.
fn judged(values: &Values<'_>, reading: &Reading, name: &Name, people: &People) -> Option<String> {
    let column = values.column;
    let missing = |code: u32| code < throng_core::values::dictionary::FIRST_VALUE;
    let codes = throng_core::values::dictionary::FIRST_VALUE as usize + column.dictionary.values();
    let mut profile = Profile::of_codes(&column.codes, codes, missing);
    if matches!(reading.kind, Type::String | Type::Integer) {
        profile = profile.with_texts(column.dictionary.texts());
    }
    if people.column.is_some() {
        profile = profile.with_people(&column.codes, &people.of_row, missing);
    }
    let is_words = reading.kind == Type::String;
    let share = if is_words { f64::MIN_POSITIVE } else { Rule::SHAPE_SHARE };
    let rule = Rule { shape_share: share, constant_urls: true, ..Rule::of_a_file(Rule::CARDINALITY) };
    let Judgement { reasons, .. } = rule.judge(&profile, !is_words || name.is_postal(), None);
    reasons.first().map(|reason| match reason {
        Reason::Declared => "declared".to_owned(),
        Reason::Shape { shape, share } => {
            let shape = shape.name().replace('_', " ");
            format!("{:.0} % of its different values have the shape of: {shape}", (share * 100.0).max(1.0))
        }
        Reason::Injective => "every record has a value of its own".to_owned(),
        Reason::Cardinality { cardinality, .. } => format!("{cardinality:.2} different values a record"),
        Reason::NamesSubject => "one value a person and one person a value".to_owned(),
    })
}

fn of_words(values: &Values<'_>, name: &Name, people: &People, k: u64) -> Option<String> {
    if people.column.is_none() && are_codes(values) {
        return Some("codes of one kind, and no column names people: each may be somebody's".to_owned());
    }
    let crowded = values.crowded(k);
    let is_vocabulary = values.texts.len() <= VOCABULARY && crowded >= WHOLE;
    if is_vocabulary || name.is_postal() {
        return None;
    }
    if name.is_identifier() {
        return Some("by its name (a number or code of its own)".to_owned());
    }
    if name.is_written() {
        return Some("by its name (what people write)".to_owned());
    }
    let cells = values.cells().max(1);
    let long: u64 = values.texts.iter().filter(|text| is_written(text.text)).map(|text| text.cells).sum();
    if long * 10 >= cells {
        return Some("free text".to_owned());
    }
    (crowded < 0.5).then(|| format!("most of its values are shared by fewer than {k} people"))
}

fn is_written(text: &str) -> bool {
    text.chars().count() >= LONG || text.split_whitespace().count() >= 6
}

fn of_numbers(values: &Values<'_>, reading: &Reading, name: &Name, people: &People, k: u64) -> Option<String> {
    if name.is_identifier() && values.crowded(k) < WHOLE {
        return Some("by its name (a number or code of its own)".to_owned());
    }
    let mut numbers: Vec<f64> = values.texts.iter().filter_map(|text| number(text.text)).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    let (first, last) = (*numbers.first()?, *numbers.last()?);
    let different = numbers.len() as u64;
    let names_records = different >= 20 && different == values.cells() && reading.misfits == 0;
    let running = last - first + 1.0 == different as f64;
    let names_people = people.column.is_some()
        && different * 5 >= people.count * 4
        && values.texts.iter().filter(|text| text.people == 1).count() as u64 * 5 >= different * 4
        && values.texts.len() as u64 * 5 <= values.people * 6;
    if names_records && running {
        return Some("it numbers the records".to_owned());
    }
    if (names_records || names_people) && last.abs().max(first.abs()) >= 1e8 {
        return Some("long numbers, each of one record or person".to_owned());
    }
    (names_people && running).then(|| "it numbers the people".to_owned())
}
