//! Chooses roles with reasons. A possibly identifying column becomes an identifier.

use super::column_names::ColumnName;
use super::column_texts::ColumnTexts;
use super::schema_proposal::ColumnReading;
use super::subject_choice::TableSubjects;
use super::subject_code_detection::are_codes;
use super::text_values::parse_number;
use throng_core::values::schema::{AttributeType, Role};
use throng_risk::identifiers::{ColumnProfile, IdentifierJudgement, IdentifierReason, IdentifierRule};

pub(super) struct RoleChoice {
    pub role: Role,
    pub why: String,
}

const MAX_VOCABULARY: usize = 50;
/// Share of cells with a value of at least k subjects.
const MIN_VOCABULARY_SHARE: f64 = 0.95;
/// In characters.
const MIN_FREE_TEXT_LENGTH: usize = 40;

/// For a column that is not the subject.
pub(super) fn choose_role(
    values: &ColumnTexts<'_>,
    reading: &ColumnReading,
    name: &ColumnName,
    people: &TableSubjects,
    k: u64,
) -> RoleChoice {
    if let Some(why) = identifying_reason(values, reading, name, people, k) {
        return RoleChoice { role: Role::Identifier, why };
    }
    if name.is_sensitive() {
        let why = "sensitive by its name: released with the class if enough people share its value; give it a [[privacy.model]]";
        return RoleChoice { role: Role::Sensitive, why: why.to_owned() };
    }
    match reading.kind {
        AttributeType::Date | AttributeType::Timestamp if !name.is_birth() => {
            RoleChoice { role: Role::Time, why: "a point in time".to_owned() }
        }
        _ => RoleChoice { role: Role::Quasi, why: String::new() },
    }
}

fn identifying_reason(
    values: &ColumnTexts<'_>,
    reading: &ColumnReading,
    name: &ColumnName,
    people: &TableSubjects,
    k: u64,
) -> Option<String> {
    if values.texts.is_empty() || values.texts.iter().all(|text| reading.missing.iter().any(|m| m == text.text)) {
        return Some("no value in these records: its content is unknown".to_owned());
    }
    if values.column.arrays > 0 || values.texts.iter().any(|text| is_structure(text.text)) {
        let taken_apart =
            if values.column.arrays > 0 { "; `explode` splits a list of records (docs/formats.md)" } else { "" };
        return Some(format!("lists or objects of unknown content{taken_apart}"));
    }
    if reading.kind == AttributeType::Boolean {
        return None;
    }
    if let Some(category) = name.personal_category() {
        return Some(format!("by its name ({})", category.title()));
    }
    if let Some(why) = audit_rule_reason(values, reading, name, people) {
        return Some(why);
    }
    if name.is_personal_name() {
        return Some("by its name (a name or address of a person)".to_owned());
    }
    match reading.kind {
        AttributeType::String => text_reason(values, name, people, k),
        AttributeType::Integer => number_reason(values, reading, name, people, k),
        _ => None,
    }
}

fn is_structure(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('{') && text.ends_with('}') || text.starts_with("[{") || text.starts_with("[[")
}

/// For texts, one value with an identifier's shape is enough.
fn audit_rule_reason(
    values: &ColumnTexts<'_>,
    reading: &ColumnReading,
    name: &ColumnName,
    people: &TableSubjects,
) -> Option<String> {
    let column = values.column;
    let missing = |code: u32| code < throng_core::values::dictionary::FIRST_VALUE;
    let codes = throng_core::values::dictionary::FIRST_VALUE as usize + column.dictionary.values();
    let mut profile = ColumnProfile::of_codes(&column.codes, codes, missing);
    if matches!(reading.kind, AttributeType::String | AttributeType::Integer) {
        profile = profile.with_texts(column.dictionary.texts());
    }
    if people.column.is_some() {
        profile = profile.with_subject_relation(&column.codes, &people.of_row, missing);
    }
    let is_words = reading.kind == AttributeType::String;
    let share = if is_words { f64::MIN_POSITIVE } else { IdentifierRule::SHAPE_SHARE };
    let rule = IdentifierRule {
        shape_share: share,
        constant_urls: true,
        ..IdentifierRule::for_file(IdentifierRule::CARDINALITY)
    };
    let IdentifierJudgement { reasons, .. } = rule.judge(&profile, !is_words || name.is_postal(), None);
    reasons.first().map(|reason| match reason {
        IdentifierReason::Declared => "declared".to_owned(),
        IdentifierReason::Shape { shape, share } => {
            let shape = shape.name().replace('_', " ");
            format!("{:.0} % of its distinct values have the shape of: {shape}", (share * 100.0).max(1.0))
        }
        IdentifierReason::Injective => "every record has a unique value".to_owned(),
        IdentifierReason::Cardinality { cardinality, .. } => format!("{cardinality:.2} distinct values per record"),
        IdentifierReason::NamesSubject => "one value per person and one person per value".to_owned(),
    })
}

fn text_reason(values: &ColumnTexts<'_>, name: &ColumnName, people: &TableSubjects, k: u64) -> Option<String> {
    if people.column.is_none() && are_codes(values) {
        return Some("codes of one kind, and no column identifies people: each code may identify a person".to_owned());
    }
    let crowded = values.frequent_cell_share(k);
    let is_vocabulary = values.texts.len() <= MAX_VOCABULARY && crowded >= MIN_VOCABULARY_SHARE;
    if is_vocabulary || name.is_postal() {
        return None;
    }
    if name.is_identifier() {
        return Some("by its name (an individual number or code)".to_owned());
    }
    if name.is_free_text() {
        return Some("by its name (written text)".to_owned());
    }
    let cells = values.cells().max(1);
    let long: u64 = values.texts.iter().filter(|text| is_long_text(text.text)).map(|text| text.cells).sum();
    if long * 10 >= cells {
        return Some("free text".to_owned());
    }
    (crowded < 0.5).then(|| format!("most of its values are shared by fewer than {k} people"))
}

fn is_long_text(text: &str) -> bool {
    text.chars().count() >= MIN_FREE_TEXT_LENGTH || text.split_whitespace().count() >= 6
}

fn number_reason(
    values: &ColumnTexts<'_>,
    reading: &ColumnReading,
    name: &ColumnName,
    people: &TableSubjects,
    k: u64,
) -> Option<String> {
    if name.is_identifier() && values.frequent_cell_share(k) < MIN_VOCABULARY_SHARE {
        return Some("by its name (an individual number or code)".to_owned());
    }
    let mut numbers: Vec<f64> = values.texts.iter().filter_map(|text| parse_number(text.text)).collect();
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
