//! Detects columns that identify subjects without a revealing name: repeated codes, and keys of all columns that are
//! constant per subject.

use super::column_names::ColumnName;
use super::column_texts::ColumnTexts;
use super::schema_proposal::ColumnReading;
use super::subject_choice::{MISSING_SUBJECT, TableSubjects};
use super::text_values::is_missing_text;
use crate::io::table::TableColumn;
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::schema::AttributeType;

const MIN_DISTINCT_CODES: usize = 9;
/// Above it, chance does not explain a column that is constant per value of another.
const MIN_EVIDENCE_NATS: f64 = 20.0;

/// True for enough values with the shape of a subject, case or visit code: letters with digits (`P-017`, `vp07`), or
/// fixed width with leading zeros (`101-0034`, `0012`).
pub(super) fn are_codes(values: &ColumnTexts<'_>) -> bool {
    let told = values.texts.iter().map(|text| text.text.trim_ascii()).filter(|text| !is_missing_text(text, false));
    let (mut all, mut mixed, mut padded) = (0, 0, 0);
    for text in told {
        all += 1;
        if text.chars().any(char::is_alphabetic) && text.chars().any(char::is_numeric) {
            mixed += 1;
        } else if let Some(has_zero) = has_leading_zero_part(text) {
            padded += usize::from(has_zero);
        } else {
            return false;
        }
    }
    all >= MIN_DISTINCT_CODES && (mixed == all || mixed == 0 && padded * 2 >= all)
}

/// `None` if the text is no digit code.
fn has_leading_zero_part(text: &str) -> Option<bool> {
    let mut parts = text.split(['-', '_', '/', '.']);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let zero = |part: &str| part.len() > 1 && part.starts_with('0');
    parts.try_fold(false, |any, part| is_number(part).then(|| any || zero(part)))
}

/// In a table without a subject column.
pub(super) fn holds_repeated_codes(values: &ColumnTexts<'_>, reading: &ColumnReading, name: &ColumnName) -> bool {
    let different = values.texts.len();
    let single = || values.texts.iter().all(|text| !text.text.trim().contains(char::is_whitespace));
    let may_be = matches!(reading.kind, AttributeType::String | AttributeType::Integer)
        && !name.is_postal()
        && !name.is_sensitive();
    may_be
        && different >= MIN_DISTINCT_CODES
        && values.cells() * 10 >= different as u64 * 11
        && single()
        && (name.is_code() || name.subject_rank() > 0 || reading.kind == AttributeType::String && are_codes(values))
}

/// Number of the value per row, or [`MISSING_SUBJECT`].
struct KeyColumn {
    of_row: Vec<u32>,
    values: usize,
}

impl KeyColumn {
    fn of(column: &TableColumn) -> Self {
        let of_row = column.codes.iter().map(|code| code.checked_sub(FIRST_VALUE).unwrap_or(MISSING_SUBJECT)).collect();
        Self { of_row, values: column.dictionary.values() }
    }

    /// `column` varies, but is constant per key value more often than by chance.
    fn determines(&self, column: &TableColumn) -> bool {
        let mut known = vec![MISSING_SUBJECT; self.values];
        let mut repeats = 0_u64;
        for (&key, &code) in self.of_row.iter().zip(&column.codes) {
            let Some(value) = code.checked_sub(FIRST_VALUE) else { continue };
            let Some(known) = known.get_mut(key as usize) else { continue };
            if *known == MISSING_SUBJECT {
                *known = value;
            } else if *known == value {
                repeats += 1;
            } else {
                return false;
            }
        }
        let mut cells = vec![0_u64; column.dictionary.values()];
        for code in column.codes.iter().filter_map(|code| code.checked_sub(FIRST_VALUE)) {
            cells[code as usize] += 1;
        }
        let all: u64 = cells.iter().sum();
        let same: f64 = cells.iter().map(|&cells| (cells as f64 / all.max(1) as f64).powi(2)).sum();
        all > 0 && -same.ln() * repeats as f64 >= MIN_EVIDENCE_NATS
    }
}

/// Columns that do not determine each other are a profile of subjects, not a hierarchy of places.
fn are_a_profile(columns: &[&TableColumn]) -> bool {
    let keys: Vec<KeyColumn> = columns.iter().map(|column| KeyColumn::of(column)).collect();
    let apart =
        |one: usize, other: usize| !keys[one].determines(columns[other]) && !keys[other].determines(columns[one]);
    (1..columns.len()).any(|one| (0..one).any(|other| apart(one, other)))
}

/// Every pair is compared.
const MAX_PROFILE_COLUMNS: usize = 16;

/// Each value of column `number` has one value in several unrelated columns, as a subject has.
pub(super) fn determines_a_profile(columns: &[TableColumn], number: usize) -> bool {
    let column = &columns[number];
    let different = column.dictionary.values();
    if different < MIN_DISTINCT_CODES || (column.codes.len() as u64) * 10 < different as u64 * 11 {
        return false;
    }
    let key = KeyColumn::of(column);
    let others = columns.iter().enumerate().filter(|(other, _)| *other != number).map(|(_, other)| other);
    let determined: Vec<&TableColumn> =
        others.filter(|other| key.determines(other)).take(MAX_PROFILE_COLUMNS).collect();
    are_a_profile(&determined)
}

/// Returns the columns that are constant per subject if they form a profile.
pub(super) fn profile_of<'a>(columns: &'a [TableColumn], people: &TableSubjects) -> Vec<&'a TableColumn> {
    let Some(subject) = people.column else { return Vec::new() };
    let key = KeyColumn { of_row: people.of_row.clone(), values: people.count as usize };
    let others = columns.iter().enumerate().filter(|(number, _)| *number != subject).map(|(_, column)| column);
    let profile: Vec<&TableColumn> = others.filter(|column| key.determines(column)).take(MAX_PROFILE_COLUMNS).collect();
    if are_a_profile(&profile) { profile } else { Vec::new() }
}

pub(super) fn determines_all_of_profile(column: &TableColumn, profile: &[&TableColumn]) -> bool {
    let others: Vec<&TableColumn> = profile.iter().copied().filter(|other| !std::ptr::eq(*other, column)).collect();
    let key = KeyColumn::of(column);
    others.len() >= 2 && others.iter().all(|other| key.determines(other)) && are_a_profile(&others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::infer::column_texts::DistinctText;
    use throng_core::values::dictionary::Dictionary;
    use throng_core::values::schema::AttributeOrigin;

    #[test]
    fn participant_codes_are_detected_by_shape() {
        let column = TableColumn {
            name: String::new(),
            key_path: Vec::new(),
            from: AttributeOrigin::Value,
            attribute: None,
            codes: Vec::new(),
            dictionary: Dictionary::new(None),
            arrays: 0,
            given_up: None,
        };
        let shaped = |spell: &dyn Fn(usize) -> String| {
            let texts: Vec<String> = (1..20).map(spell).collect();
            let texts = texts.iter().map(|text| DistinctText { text, cells: 1, people: 1 }).collect();
            are_codes(&ColumnTexts { column: &column, texts, missing: 0, people: 19 })
        };
        assert!(shaped(&|n| format!("P-{n}")) && shaped(&|n| format!("sub-{n:02}")) && shaped(&|n| format!("vp{n}x")));
        assert!(shaped(&|n| format!("101-{n:04}")) && shaped(&|n| format!("{n:03}")));
        assert!(!shaped(&|n| n.to_string()) && !shaped(&|n| format!("{}-{}", 10 * n, 10 * n + 9)));
        assert!(!shaped(&|n| if n == 3 { "none at all".to_owned() } else { format!("P{n}") }));
    }
}
