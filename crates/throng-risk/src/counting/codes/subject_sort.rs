//! Counting sort of rows by subject, in as few passes as memory allows.

use super::column::{CodeColumn, code_width};
use super::writer::CodeWriter;
use std::io;
use std::path::Path;

const SORT_BLOCK_ROWS: usize = 1 << 15;

#[derive(Clone, Debug)]
pub(super) struct RowSubjectColumns {
    /// Ascending from 0.
    pub numbers: CodeColumn,
    pub count: usize,
    pub order: CodeColumn,
}

pub(super) struct SubjectSortedColumns {
    pub rows: usize,
    pub columns: Vec<CodeColumn>,
    pub counts: Vec<Vec<u64>>,
    pub subjects: RowSubjectColumns,
    pub kept_row_flags: Option<Vec<bool>>,
}

/// Sorts columns, each with its rows per written code; omits rows with a subject below `first`.
///
/// Memory: `memory` bytes for positions, 8 per subject, and 1 per row if rows are omitted.
pub(super) fn sort_by_subject(
    columns: &[(CodeColumn, Vec<u64>)],
    whose: &(CodeColumn, Vec<u64>),
    first: u32,
    rows: usize,
    directory: Option<&Path>,
    memory: u64,
) -> io::Result<SubjectSortedColumns> {
    let first = first as usize;
    let (column, counts) = whose;
    // File codes are already dense; codes without a subject come first.
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
    let sorting = SubjectSorter {
        subject_codes: column,
        codes_without_subject: nobody as u32,
        starts: &starts,
        rows,
        kept_rows,
        memory,
    };
    let mut writer = CodeWriter::new(directory, columns.len() + 2)?;
    for (number, (column, _)) in columns.iter().enumerate() {
        // A count of 0 marks a code without rows.
        sorting.write_column(Some(column), number, &mut writer)?;
    }
    sorting.write_column(None, columns.len(), &mut writer)?;
    sorting.write_subjects(columns.len() + 1, &people, &mut writer)?;
    let kept = if without > 0 { Some(sorting.read_kept_rows()?) } else { None };
    let written: Vec<Vec<u64>> = columns
        .iter()
        .enumerate()
        .map(|(number, (_, before))| counts_by_written_code(before, writer.counts(number)))
        .collect();
    let mut sorted = writer.finish();
    let (Some((numbers, _)), Some((order, _))) = (sorted.pop(), sorted.pop()) else {
        return Err(io::Error::other("two columns were written and are not there"));
    };
    let (numbers, order) = (numbers.with_written_codes(), order.with_written_codes());
    let columns = sorted.into_iter().map(|(column, _)| column).collect();
    let people = RowSubjectColumns { numbers, count: people.len(), order };
    Ok(SubjectSortedColumns { rows: kept_rows, columns, counts: written, subjects: people, kept_row_flags: kept })
}

fn counts_by_written_code(before: &[u64], dense: &[u64]) -> Vec<u64> {
    let mut dense = dense.iter();
    before.iter().map(|count| if *count > 0 { dense.next().copied().unwrap_or(0) } else { 0 }).collect()
}

struct SubjectSorter<'a> {
    subject_codes: &'a CodeColumn,
    codes_without_subject: u32,
    starts: &'a [u32],
    rows: usize,
    kept_rows: usize,
    memory: u64,
}

impl SubjectSorter<'_> {
    /// Visits position and code of kept rows; without a column, the code is the row number.
    fn for_each_position(&self, column: Option<&CodeColumn>, mut visit: impl FnMut(usize, u32)) -> io::Result<()> {
        let mut next = self.starts.to_vec();
        let (mut bytes, mut people, mut codes) = (Vec::new(), Vec::new(), Vec::new());
        let mut number = 0;
        for start in (0..self.rows).step_by(SORT_BLOCK_ROWS) {
            let rows = start..self.rows.min(start + SORT_BLOCK_ROWS);
            self.subject_codes.read(rows.clone(), &mut bytes, &mut people)?;
            if let Some(column) = column {
                column.read(rows, &mut bytes, &mut codes)?;
            }
            for (at, person) in people.iter().enumerate() {
                let Some(person) = person.checked_sub(self.codes_without_subject) else { continue };
                let place = &mut next[person as usize];
                visit(*place as usize, codes.get(at).copied().unwrap_or(number));
                *place += 1;
                number += 1;
            }
        }
        Ok(())
    }

    fn write_column(&self, column: Option<&CodeColumn>, number: usize, writer: &mut CodeWriter) -> io::Result<()> {
        let largest = column.map_or(self.kept_rows, CodeColumn::cardinality);
        let bytes = code_width(largest as u32) as u64;
        let at_once = usize::try_from(self.memory / bytes).unwrap_or(usize::MAX).max(SORT_BLOCK_ROWS);
        for start in (0..self.kept_rows).step_by(at_once) {
            let end = self.kept_rows.min(start + at_once);
            match bytes {
                1 => self.write_positions::<u8>(column, number, start..end, writer)?,
                2 => self.write_positions::<u16>(column, number, start..end, writer)?,
                _ => self.write_positions::<u32>(column, number, start..end, writer)?,
            }
        }
        Ok(())
    }

    fn write_positions<T: NarrowCode>(
        &self,
        column: Option<&CodeColumn>,
        number: usize,
        places: std::ops::Range<usize>,
        writer: &mut CodeWriter,
    ) -> io::Result<()> {
        let mut held = vec![T::default(); places.len()];
        self.for_each_position(column, |place, code| {
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

    fn write_subjects(&self, number: usize, people: &[u64], writer: &mut CodeWriter) -> io::Result<()> {
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

    fn read_kept_rows(&self) -> io::Result<Vec<bool>> {
        let mut kept = Vec::with_capacity(self.rows);
        let (mut bytes, mut people) = (Vec::new(), Vec::new());
        for start in (0..self.rows).step_by(SORT_BLOCK_ROWS) {
            self.subject_codes.read(start..self.rows.min(start + SORT_BLOCK_ROWS), &mut bytes, &mut people)?;
            kept.extend(people.iter().map(|person| *person >= self.codes_without_subject));
        }
        Ok(kept)
    }
}

trait NarrowCode: Copy + Default {
    fn of(code: u32) -> Self;
    fn code(self) -> u32;
}

macro_rules! impl_narrow_code {
    ($($kind:ty),*) => {$(
        impl NarrowCode for $kind {
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
impl_narrow_code!(u8, u16, u32);
