//! Who counts as a person.

use super::names::Name;
use super::tokens::is_nothing;
use crate::io::table::TableColumn;
use std::collections::BTreeMap;
use throng_core::values::canonical::{Canonical, Missing, Type, Typing};
use throng_core::values::dates::Dates;
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::raw::Token;
use throng_core::values::schema::Rounding;
use throng_core::values::shapes::{Shape, share};
use throng_core::values::spelling::Spelling;

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
    pub fn of_records(rows: usize) -> Self {
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
            decimal_comma: false,
            zone: None,
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

    /// Whether each of these is of one of `other`, and some of those have several of these.
    fn is_finer_than(&self, other: &Self) -> bool {
        let mut of: Vec<u32> = vec![NOBODY; self.count as usize];
        for (&own, &theirs) in self.of_row.iter().zip(&other.of_row) {
            if own == NOBODY || theirs == NOBODY {
                continue;
            }
            let known = &mut of[own as usize];
            if *known != NOBODY && *known != theirs {
                return false;
            }
            *known = theirs;
        }
        other.count < self.count
    }

    /// Whether most records have a person, and some a person of an earlier one.
    fn repeats(&self) -> bool {
        let rows = self.of_row.iter().filter(|person| **person != NOBODY).count() as u64;
        self.count >= 2 && rows * 2 >= self.of_row.len() as u64 && rows > self.count
    }

    /// Whether the column, however it is called, names people over several records: at least two of them, and records enough
    /// to say that they come back.
    fn come_back(&self) -> bool {
        let rows = self.of_row.iter().filter(|person| **person != NOBODY).count() as u64;
        self.count >= 2 && rows * 2 >= self.of_row.len() as u64 && rows * 10 >= self.count * 11
    }
}

/// Shapes of what names somebody; devices, sessions and places on the net have shapes as well.
const NAMING: [Shape; 4] = [Shape::Email, Shape::NationalId, Shape::CreditCard, Shape::Phone];

/// The people of a table: by the column `asked`, or by the one that is likeliest to name them, or a record each. Columns that
/// fewer than `k` would be counted by are not told of.
pub(super) fn find(columns: &[TableColumn], rows: usize, asked: Option<usize>, k: u64) -> People {
    if let Some(number) = asked {
        return People::of_column(columns, number, "it was named (--subject)".to_owned());
    }
    // Called like people, whether or not they come back; then, if they do, records and cases of people, a lone id, and values of the
    // shape of a name.
    let mut candidates: Vec<(u8, People)> = Vec::new();
    for (number, column) in columns.iter().enumerate() {
        let called = Name::new(&column.name).counts_people();
        let shaped = share(column.dictionary.texts()).filter(|(shape, share)| *share >= 0.5 && NAMING.contains(shape));
        let (rank, why) = match (called, shaped) {
            (3, _) => (0, "its name says so".to_owned()),
            (2, _) => (1, "its name says so, and its values come back".to_owned()),
            (1, _) => (2, "its name says so, and its values come back".to_owned()),
            (_, Some((shape, _))) => {
                (3, format!("its values have the shape of {}, and come back", shape.name().replace('_', " ")))
            }
            _ => continue,
        };
        let people = People::of_column(columns, number, why);
        if people.come_back() || rank == 1 && people.repeats() || rank == 0 && people.count >= 2 {
            candidates.push((rank, people));
        }
    }
    // Of several the one by which the fewest are counted: a person may have many numbers, and a number is of one person.
    candidates.sort_by_key(|(rank, people)| (*rank, people.count, people.column));
    let mut candidates: Vec<People> = candidates.into_iter().map(|(_, people)| people).collect();
    let Some(mut chosen) = (!candidates.is_empty()).then(|| candidates.remove(0)) else {
        return People::of_records(rows);
    };
    while let Some(at) = candidates.iter().position(|other| other.come_back() && chosen.is_finer_than(other)) {
        std::mem::swap(&mut chosen, &mut candidates[at]);
    }
    let rivals = candidates.iter().filter(|other| other.count >= k && other.count != chosen.count);
    let rivals: Vec<String> =
        rivals.filter_map(|other| Some(format!("{:?} ({})", columns[other.column?].name, other.count))).collect();
    if !rivals.is_empty() {
        chosen.why += &format!("; CHECK whether it is not rather {}, which count otherwise", rivals.join(" or "));
    }
    chosen
}
