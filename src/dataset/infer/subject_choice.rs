//! Determines the subject of each record.

use super::column_names::ColumnName;
use super::text_values::is_missing_text;
use crate::io::table::TableColumn;
use std::collections::BTreeMap;
use throng_core::values::canonical::{AttributeType, CanonicalKind, MissingSpellings, ValueTyping};
use throng_core::values::date_formats::DateFormats;
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::identifier_shapes::{IdentifierShape, most_frequent_shape};
use throng_core::values::raw_batch::RawToken;
use throng_core::values::schema::Rounding;
use throng_core::values::spelling::Spelling;

pub(super) const MISSING_SUBJECT: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct TableSubjects {
    /// `None` if every record is one subject.
    pub column: Option<usize>,
    /// Subject number, or [`MISSING_SUBJECT`].
    pub of_row: Vec<u32>,
    pub count: u64,
    /// Reason for the column.
    pub why: String,
}

impl TableSubjects {
    /// Creates one subject per record.
    pub fn of_records(rows: usize) -> Self {
        let of_row = (0..rows).map(|row| row as u32).collect();
        Self { column: None, of_row, count: rows as u64, why: String::new() }
    }

    /// Spellings of one name are one subject, as in the daemon.
    pub fn of_column(columns: &[TableColumn], number: usize, why: String) -> Self {
        let column = &columns[number];
        let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
        let typing = ValueTyping {
            attribute: "subject".into(),
            kind: AttributeType::String,
            rounding: Rounding::None,
            missing: MissingSpellings::new(None, false),
            spelling: Spelling::SUBJECT_DEFAULT,
            dates: DateFormats::Iso,
            decimal_comma: false,
            zone: None,
            conversion: None,
        };
        let mut canonical = String::new();
        let of_code: Vec<u32> = column
            .dictionary
            .texts()
            .map(|text| match typing.canonical(RawToken::Untyped(text), &mut canonical) {
                Ok(CanonicalKind::Value) if !is_missing_text(text, false) => {
                    let next = numbers.len() as u32;
                    *numbers.entry(canonical.clone()).or_insert(next)
                }
                _ => MISSING_SUBJECT,
            })
            .collect();
        let person =
            |code: &u32| if *code < FIRST_VALUE { MISSING_SUBJECT } else { of_code[(code - FIRST_VALUE) as usize] };
        let of_row = column.codes.iter().map(person).collect();
        Self { column: Some(number), of_row, count: numbers.len() as u64, why }
    }

    /// Each subject belongs to one of `other`, which has fewer.
    fn is_finer_than(&self, other: &Self) -> bool {
        let mut of: Vec<u32> = vec![MISSING_SUBJECT; self.count as usize];
        for (&own, &theirs) in self.of_row.iter().zip(&other.of_row) {
            if own == MISSING_SUBJECT || theirs == MISSING_SUBJECT {
                continue;
            }
            let known = &mut of[own as usize];
            if *known != MISSING_SUBJECT && *known != theirs {
                return false;
            }
            *known = theirs;
        }
        other.count < self.count
    }

    /// At least half of the records have a subject, and some subject repeats.
    fn has_repeated_subject(&self) -> bool {
        let rows = self.of_row.iter().filter(|person| **person != MISSING_SUBJECT).count() as u64;
        self.count >= 2 && rows * 2 >= self.of_row.len() as u64 && rows > self.count
    }

    /// At least two subjects, and 1.1 records per subject.
    fn identifies_repeatedly(&self) -> bool {
        let rows = self.of_row.iter().filter(|person| **person != MISSING_SUBJECT).count() as u64;
        self.count >= 2 && rows * 2 >= self.of_row.len() as u64 && rows * 10 >= self.count * 11
    }
}

/// Shapes of devices, sessions and addresses are excluded.
const PERSONAL_SHAPES: [IdentifierShape; 4] =
    [IdentifierShape::Email, IdentifierShape::NationalId, IdentifierShape::CreditCard, IdentifierShape::Phone];

/// Subjects by the column `asked`, by the likeliest one, or per record. Omits alternatives with fewer than `k`
/// subjects.
pub(super) fn find_subjects(columns: &[TableColumn], rows: usize, asked: Option<usize>, k: u64) -> TableSubjects {
    if let Some(number) = asked {
        return TableSubjects::of_column(columns, number, "chosen with --subject".to_owned());
    }
    // Order: names of persons; then, if repeated, names of records and cases, a lone id, and shapes of personal
    // identifiers.
    let mut candidates: Vec<(u8, TableSubjects)> = Vec::new();
    for (number, column) in columns.iter().enumerate() {
        let called = ColumnName::new(&column.name).subject_rank();
        let shaped = most_frequent_shape(column.dictionary.texts())
            .filter(|(shape, share)| *share >= 0.5 && PERSONAL_SHAPES.contains(shape));
        let (rank, why) = match (called, shaped) {
            (3, _) => (0, "chosen by its name".to_owned()),
            (2, _) => (1, "chosen by its name and its repeated values".to_owned()),
            (1, _) => (2, "chosen by its name and its repeated values".to_owned()),
            (_, Some((shape, _))) => {
                (3, format!("chosen by its repeated values with the shape of {}", shape.name().replace('_', " ")))
            }
            _ => continue,
        };
        let people = TableSubjects::of_column(columns, number, why);
        if people.identifies_repeatedly()
            || rank == 1 && people.has_repeated_subject()
            || rank == 0 && people.count >= 2
        {
            candidates.push((rank, people));
        }
    }
    // The fewest subjects: a person may have many numbers, but a number one person.
    candidates.sort_by_key(|(rank, people)| (*rank, people.count, people.column));
    let mut candidates: Vec<TableSubjects> = candidates.into_iter().map(|(_, people)| people).collect();
    let Some(mut chosen) = (!candidates.is_empty()).then(|| candidates.remove(0)) else {
        return TableSubjects::of_records(rows);
    };
    while let Some(at) =
        candidates.iter().position(|other| other.identifies_repeatedly() && chosen.is_finer_than(other))
    {
        std::mem::swap(&mut chosen, &mut candidates[at]);
    }
    let rivals = candidates.iter().filter(|other| other.count >= k && other.count != chosen.count);
    let rivals: Vec<String> =
        rivals.filter_map(|other| Some(format!("{:?} ({})", columns[other.column?].name, other.count))).collect();
    if !rivals.is_empty() {
        chosen.why += &format!("; CHECK whether another column identifies people: {}", rivals.join(" or "));
    }
    chosen
}
