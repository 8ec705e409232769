//! Columns whose values stand for people although no name says so: codes that come back, and keys of everything that does not
//! change within a person.

use super::names::Name;
use super::people::{NOBODY, People};
use super::proposal::Reading;
use super::tokens::is_nothing;
use super::values::Values;
use crate::io::table::TableColumn;
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::schema::Type;

/// Different codes from which on they may be people's.
const CODES: usize = 9;
/// Evidence in nats from which on chance does not explain that a column is constant within the values of another.
const EVIDENCE: f64 = 20.0;

/// Whether all values have the shape of a code of participants, subjects, cases or visits, and there are several: letters with digits
/// (`P-017`, `vp07`), or numbers of a fixed width with zeros before them (`101-0034`, `0012`).
pub(super) fn are_codes(values: &Values<'_>) -> bool {
    let told = values.texts.iter().map(|text| text.text.trim_ascii()).filter(|text| !is_nothing(text, false));
    let (mut all, mut mixed, mut padded) = (0, 0, 0);
    for text in told {
        all += 1;
        if text.chars().any(char::is_alphabetic) && text.chars().any(char::is_numeric) {
            mixed += 1;
        } else if let Some(has_zero) = digits(text) {
            padded += usize::from(has_zero);
        } else {
            return false;
        }
    }
    all >= CODES && (mixed == all || mixed == 0 && padded * 2 >= all)
}

/// Whether one of the parts of a code of digits begins with a zero; none of other texts.
fn digits(text: &str) -> Option<bool> {
    let mut parts = text.split(['-', '_', '/', '.']);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let zero = |part: &str| part.len() > 1 && part.starts_with('0');
    parts.try_fold(false, |any, part| is_number(part).then(|| any || zero(part)))
}

/// Whether a column of a table in which nothing counts people holds codes that come back.
pub(super) fn come_back(values: &Values<'_>, reading: &Reading, name: &Name) -> bool {
    let different = values.texts.len();
    let single = || values.texts.iter().all(|text| !text.text.trim().contains(char::is_whitespace));
    let may_be = matches!(reading.kind, Type::String | Type::Integer) && !name.is_postal() && !name.is_sensitive();
    may_be
        && different >= CODES
        && values.cells() * 10 >= different as u64 * 11
        && single()
        && (name.is_code() || name.counts_people() > 0 || reading.kind == Type::String && are_codes(values))
}

/// A column as a key: the number of its value in every row, or [`NOBODY`].
struct Key {
    of_row: Vec<u32>,
    values: usize,
}

impl Key {
    fn of(column: &TableColumn) -> Self {
        let of_row = column.codes.iter().map(|code| code.checked_sub(FIRST_VALUE).unwrap_or(NOBODY)).collect();
        Self { of_row, values: column.dictionary.values() }
    }

    /// Whether `column` has several values, and one within each value of the key: more often than chance explains.
    fn determines(&self, column: &TableColumn) -> bool {
        let mut known = vec![NOBODY; self.values];
        let mut repeats = 0_u64;
        for (&key, &code) in self.of_row.iter().zip(&column.codes) {
            let Some(value) = code.checked_sub(FIRST_VALUE) else { continue };
            let Some(known) = known.get_mut(key as usize) else { continue };
            if *known == NOBODY {
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
        all > 0 && -same.ln() * repeats as f64 >= EVIDENCE
    }
}

/// Whether two of the columns do not determine each other: a profile of people, and no hierarchy of places.
fn are_a_profile(columns: &[&TableColumn]) -> bool {
    let keys: Vec<Key> = columns.iter().map(|column| Key::of(column)).collect();
    let apart =
        |one: usize, other: usize| !keys[one].determines(columns[other]) && !keys[other].determines(columns[one]);
    (1..columns.len()).any(|one| (0..one).any(|other| apart(one, other)))
}

/// Columns that a profile of people is compared of, at most: each pair is looked at.
const PROFILE: usize = 16;

/// Whether the values of column `number`, in a table in which nothing counts people, each go with one value of several columns
/// that have nothing to do with each other, as those of a person do.
pub(super) fn determines_a_profile(columns: &[TableColumn], number: usize) -> bool {
    let column = &columns[number];
    let different = column.dictionary.values();
    if different < CODES || (column.codes.len() as u64) * 10 < different as u64 * 11 {
        return false;
    }
    let key = Key::of(column);
    let others = columns.iter().enumerate().filter(|(other, _)| *other != number).map(|(_, other)| other);
    let determined: Vec<&TableColumn> = others.filter(|other| key.determines(other)).take(PROFILE).collect();
    are_a_profile(&determined)
}

/// The columns that do not change within a person, where they are a profile of people; else none.
pub(super) fn profile_of<'a>(columns: &'a [TableColumn], people: &People) -> Vec<&'a TableColumn> {
    let Some(subject) = people.column else { return Vec::new() };
    let key = Key { of_row: people.of_row.clone(), values: people.count as usize };
    let others = columns.iter().enumerate().filter(|(number, _)| *number != subject).map(|(_, column)| column);
    let profile: Vec<&TableColumn> = others.filter(|column| key.determines(column)).take(PROFILE).collect();
    if are_a_profile(&profile) { profile } else { Vec::new() }
}

/// Whether a column determines all other columns of a profile.
pub(super) fn names_the_profile(column: &TableColumn, profile: &[&TableColumn]) -> bool {
    let others: Vec<&TableColumn> = profile.iter().copied().filter(|other| !std::ptr::eq(*other, column)).collect();
    let key = Key::of(column);
    others.len() >= 2 && others.iter().all(|other| key.determines(other)) && are_a_profile(&others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::infer::values::Text;
    use throng_core::values::dictionary::Dictionary;
    use throng_core::values::schema::Origin;

    #[test]
    fn codes_of_participants_have_a_shape() {
        let column = TableColumn {
            name: String::new(),
            way: Vec::new(),
            from: Origin::Value,
            attribute: None,
            codes: Vec::new(),
            dictionary: Dictionary::new(None),
            arrays: 0,
            given_up: None,
        };
        let shaped = |spell: &dyn Fn(usize) -> String| {
            let texts: Vec<String> = (1..20).map(spell).collect();
            let texts = texts.iter().map(|text| Text { text, cells: 1, people: 1 }).collect();
            are_codes(&Values { column: &column, texts, missing: 0, people: 19 })
        };
        assert!(shaped(&|n| format!("P-{n}")) && shaped(&|n| format!("sub-{n:02}")) && shaped(&|n| format!("vp{n}x")));
        assert!(shaped(&|n| format!("101-{n:04}")) && shaped(&|n| format!("{n:03}")));
        assert!(!shaped(&|n| n.to_string()) && !shaped(&|n| format!("{}-{}", 10 * n, 10 * n + 9)));
        assert!(!shaped(&|n| if n == 3 { "none at all".to_owned() } else { format!("P{n}") }));
    }
}
