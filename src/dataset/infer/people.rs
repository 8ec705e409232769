//! Who counts as a person.

use super::names::Name;
use super::tokens::is_nothing;
use crate::io::table::TableColumn;
use crate::records::canonical::{Canonical, Missing, Type, Typing};
use crate::records::dates::Dates;
use crate::records::dictionary::FIRST_VALUE;
use crate::records::raw::Token;
use crate::records::schema::Rounding;
use crate::records::shapes::{Shape, share};
use crate::records::spelling::Spelling;
use std::collections::BTreeMap;

/// No person stands behind the record.
pub(super) const NOBODY: u32 = u32::MAX;

/// The person of every record.
#[derive(Clone, Debug)]
pub(super) struct People {
    /// The column that names them; none where every record counts as a person of its own.
    pub column: Option<usize>,
    /// By record, the number of its person, or [`NOBODY`].
    pub of_row: Vec<u32>,
    pub count: u64,
    /// Why this column.
    pub why: String,
}

impl People {
    /// Every record is a person.
    fn of_records(rows: usize) -> Self {
        let of_row = (0..rows).map(|row| row as u32).collect();
        Self { column: None, of_row, count: rows as u64, why: String::new() }
    }

    /// The people that a column names. Spellings of one name are one person, as the daemon counts them.
    pub fn of_column(columns: &[TableColumn], number: usize, why: String) -> Self {
        let column = &columns[number];
        let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
        let typing = Typing {
            attribute: "subject".into(),
            kind: Type::String,
            rounding: Rounding::None,
            missing: Missing::new(None, false),
            spelling: Spelling::OF_SUBJECTS,
            dates: Dates::Iso,
            conversion: None,
        };
        let mut canonical = String::new();
        let of_code: Vec<u32> = column
            .dictionary
            .texts()
            .map(|text| match typing.canonical(Token::Untyped(text), &mut canonical) {
                Ok(Canonical::Value) if !is_nothing(text, false) => {
                    let next = numbers.len() as u32;
                    *numbers.entry(canonical.clone()).or_insert(next)
                }
                _ => NOBODY,
            })
            .collect();
        let person = |code: &u32| if *code < FIRST_VALUE { NOBODY } else { of_code[(code - FIRST_VALUE) as usize] };
        let of_row = column.codes.iter().map(person).collect();
        Self { column: Some(number), of_row, count: numbers.len() as u64, why }
    }

    /// Whether the column, however it is called, names people over several records: at least two of them, and records enough
    /// to say that they come back.
    fn come_back(&self) -> bool {
        let rows = self.of_row.iter().filter(|person| **person != NOBODY).count() as u64;
        self.count >= 2 && rows * 2 >= self.of_row.len() as u64 && rows * 10 >= self.count * 11
    }
}

/// The people of a table: by the column `asked`, or by the one that is likeliest to name them, or a record each.
pub(super) fn find(columns: &[TableColumn], rows: usize, asked: Option<usize>) -> People {
    if let Some(number) = asked {
        return People::of_column(columns, number, "it was named (--subject)".to_owned());
    }
    // Called like people, whether or not they come back; then a lone id, and what has the shape of one, if they do.
    let mut candidates: Vec<(u8, usize, String)> = Vec::new();
    for (number, column) in columns.iter().enumerate() {
        let called = Name::new(&column.name).counts_people();
        let shaped = share(column.dictionary.texts()).filter(|(shape, share)| *share >= 0.5 && *shape != Shape::Url);
        match (called, shaped) {
            (2, _) => candidates.push((0, number, "its name says so".to_owned())),
            (1, _) => candidates.push((1, number, "its name says so, and its values come back".to_owned())),
            (_, Some((shape, _))) => {
                let why = format!("its values have the shape of {}, and come back", shape.name().replace('_', " "));
                candidates.push((2, number, why));
            }
            _ => {}
        }
    }
    candidates.sort_by_key(|(rank, number, _)| (*rank, *number));
    for (rank, number, why) in candidates {
        let people = People::of_column(columns, number, why);
        if people.come_back() || rank == 0 && people.count >= 2 {
            return people;
        }
    }
    People::of_records(rows)
}
