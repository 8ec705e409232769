//! The rows in the order of the people behind them: a class then meets each person in one run, and people are counted without
//! being remembered.
//!
//! A counting sort, column by column: where a row goes is known from how many rows each person has. As many places as fit into
//! memory are filled in one pass over the column.

use super::column::{CodeColumn, width_of};
use super::writer::CodeWriter;
use std::io;
use std::path::Path;

/// Rows that are read at once.
const ROWS_AT_ONCE: usize = 1 << 15;

/// The people behind the rows.
#[derive(Clone, Debug)]
pub(super) struct People {
    /// The person of each row, 0, 1, …, ascending: rows lie in their order.
    pub numbers: CodeColumn,
    /// How many people.
    pub count: usize,
    /// The number that each row has in the input.
    pub order: CodeColumn,
}

/// Columns by people.
pub(super) struct Sorted {
    pub rows: usize,
    pub columns: Vec<CodeColumn>,
    pub counts: Vec<Vec<u64>>,
    pub people: People,
    pub kept: Option<Vec<bool>>,
}

/// Sorts columns, with the rows of each code as they were written, by `whose`; rows of a code below `first` are nobody's.
///
/// Memory: `memory` bytes for the places, 8 for each person, and 1 for each row where some are nobody's.
pub(super) fn by_people(
    columns: &[(CodeColumn, Vec<u64>)],
    whose: &(CodeColumn, Vec<u64>),
    first: u32,
    rows: usize,
    directory: Option<&Path>,
    memory: u64,
) -> io::Result<Sorted> {
    let first = first as usize;
    let (column, counts) = whose;
    // Codes in the file are dense already: those of nobody come first.
    let nobody = counts.iter().take(first).filter(|count| **count > 0).count();
    let people: Vec<u64> = counts.iter().skip(first).copied().filter(|count| *count > 0).collect();
    let mut starts: Vec<u32> = Vec::with_capacity(people.len());
    let mut kept_rows = 0_u64;
    for count in &people {
        starts.push(kept_rows as u32);
        kept_rows += count;
    }
    let kept_rows = kept_rows as usize;
    let without: u64 = counts.iter().take(first).sum();
    let sorting = Sorting { whose: column, nobody: nobody as u32, starts: &starts, rows, kept_rows, memory };
    let mut writer = CodeWriter::new(directory, columns.len() + 2)?;
    for (number, (column, _)) in columns.iter().enumerate() {
        // Raw codes are kept: what is in no row any more is told by the counts.
        sorting.column(Some(column), number, &mut writer)?;
    }
    sorting.column(None, columns.len(), &mut writer)?;
    sorting.people(columns.len() + 1, &people, &mut writer)?;
    let kept = if without > 0 { Some(sorting.kept()?) } else { None };
    let written: Vec<Vec<u64>> =
        columns.iter().enumerate().map(|(number, (_, before))| as_before(before, writer.counts(number))).collect();
    let mut sorted = writer.finish();
    let (Some((numbers, _)), Some((order, _))) = (sorted.pop(), sorted.pop()) else {
        return Err(io::Error::other("two columns were written and are not there"));
    };
    let (numbers, order) = (numbers.plain(), order.plain());
    let columns = sorted.into_iter().map(|(column, _)| column).collect();
    let people = People { numbers, count: people.len(), order };
    Ok(Sorted { rows: kept_rows, columns, counts: written, people, kept })
}

/// Counts of dense codes as counts of the codes that were written first.
fn as_before(before: &[u64], dense: &[u64]) -> Vec<u64> {
    let mut dense = dense.iter();
    before.iter().map(|count| if *count > 0 { dense.next().copied().unwrap_or(0) } else { 0 }).collect()
}

struct Sorting<'a> {
    whose: &'a CodeColumn,
    /// So many dense codes of `whose` stand for nobody.
    nobody: u32,
    /// The place of each person's first row.
    starts: &'a [u32],
    rows: usize,
    kept_rows: usize,
    memory: u64,
}

impl Sorting<'_> {
    /// Calls `visit` with the place of each row that stays, and what the column has there (without one, its number among these).
    fn each(&self, column: Option<&CodeColumn>, mut visit: impl FnMut(usize, u32)) -> io::Result<()> {
        let mut next = self.starts.to_vec();
        let (mut bytes, mut people, mut codes) = (Vec::new(), Vec::new(), Vec::new());
        let mut number = 0;
        for start in (0..self.rows).step_by(ROWS_AT_ONCE) {
            let rows = start..self.rows.min(start + ROWS_AT_ONCE);
            self.whose.read(rows.clone(), &mut bytes, &mut people)?;
            if let Some(column) = column {
                column.read(rows, &mut bytes, &mut codes)?;
            }
            for (at, person) in people.iter().enumerate() {
                let Some(person) = person.checked_sub(self.nobody) else { continue };
                let place = &mut next[person as usize];
                visit(*place as usize, codes.get(at).copied().unwrap_or(number));
                *place += 1;
                number += 1;
            }
        }
        Ok(())
    }

    /// Writes a column, or the numbers of the rows, by people.
    fn column(&self, column: Option<&CodeColumn>, number: usize, writer: &mut CodeWriter) -> io::Result<()> {
        let largest = column.map_or(self.kept_rows, CodeColumn::cardinality);
        let bytes = width_of(largest as u32) as u64;
        let at_once = usize::try_from(self.memory / bytes).unwrap_or(usize::MAX).max(ROWS_AT_ONCE);
        for start in (0..self.kept_rows).step_by(at_once) {
            let end = self.kept_rows.min(start + at_once);
            // In the width of the codes: places of a column of few values take a byte.
            match bytes {
                1 => self.part::<u8>(column, number, start..end, writer)?,
                2 => self.part::<u16>(column, number, start..end, writer)?,
                _ => self.part::<u32>(column, number, start..end, writer)?,
            }
        }
        Ok(())
    }

    fn part<T: Narrowed>(
        &self,
        column: Option<&CodeColumn>,
        number: usize,
        places: std::ops::Range<usize>,
        writer: &mut CodeWriter,
    ) -> io::Result<()> {
        let mut held = vec![T::default(); places.len()];
        self.each(column, |place, code| {
            if places.contains(&place) {
                held[place - places.start] = T::of(code);
            }
        })?;
        let mut codes = Vec::new();
        for some in held.chunks(1 << 20) {
            codes.clear();
            codes.extend(some.iter().map(|code| code.code()));
            match column {
                Some(_) => writer.append(number, &codes)?,
                None => writer.append_numbers(number, &codes)?,
            }
        }
        Ok(())
    }

    /// Writes the numbers of the people.
    fn people(&self, number: usize, people: &[u64], writer: &mut CodeWriter) -> io::Result<()> {
        let mut codes = Vec::new();
        for (person, count) in (0_u32..).zip(people) {
            codes.extend((0..*count).map(|_| person));
            if codes.len() > 1 << 20 {
                writer.append_numbers(number, &codes)?;
                codes.clear();
            }
        }
        writer.append_numbers(number, &codes)
    }

    /// Of each row whether somebody stands behind it.
    fn kept(&self) -> io::Result<Vec<bool>> {
        let mut kept = Vec::with_capacity(self.rows);
        let (mut bytes, mut people) = (Vec::new(), Vec::new());
        for start in (0..self.rows).step_by(ROWS_AT_ONCE) {
            self.whose.read(start..self.rows.min(start + ROWS_AT_ONCE), &mut bytes, &mut people)?;
            kept.extend(people.iter().map(|person| *person >= self.nobody));
        }
        Ok(kept)
    }
}

/// A code in few bytes.
trait Narrowed: Copy + Default {
    fn of(code: u32) -> Self;
    fn code(self) -> u32;
}

macro_rules! narrowed {
    ($($kind:ty),*) => {$(
        impl Narrowed for $kind {
            fn of(code: u32) -> Self {
                code as Self
            }
            #[allow(clippy::useless_conversion, reason = "the same for all widths")]
            fn code(self) -> u32 {
                u32::from(self)
            }
        }
    )*};
}
narrowed!(u8, u16, u32);
