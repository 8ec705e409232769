//! A table of dense codes, in the order of people where there are some.

use super::by_people::{People, Sorted, by_people};
use super::column::CodeColumn;
use super::writer::CodeWriter;
use crate::counting::attribute_set::MAX_ATTRIBUTES;
use crate::counting::{ColumnsError, CountedTable};
use std::io;
use std::path::PathBuf;

/// Rows that are read at once.
const ROWS_AT_ONCE: usize = 1 << 13;

/// Columns of dense codes, and whose records they are.
///
/// Rows are named by their places in the input, and lie in the order of people where there are some.
#[derive(Clone, Debug)]
pub struct CodeTable {
    rows: usize,
    columns: Vec<CodeColumn>,
    people: Option<People>,
}

/// Why columns that were written are no table.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum TableError {
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(transparent)]
    File(#[from] io::Error),
}

/// What was written, and what a table is to be made of it.
#[derive(Debug)]
pub struct WrittenColumns {
    /// The columns.
    pub writer: CodeWriter,
    /// Those of them that the table has, in its order.
    pub columns: Vec<usize>,
    /// Rows of each.
    pub rows: usize,
    /// The column that says whose each row is, and its first code that stands for somebody: other rows are nobody's and are left out.
    pub people: Option<(usize, u32)>,
    /// Where the table is sorted by people; none: in memory.
    pub directory: Option<PathBuf>,
    /// Bytes that sorting may hold.
    pub memory: u64,
}

/// What is known of the columns of a table beside their codes.
#[derive(Debug)]
pub struct PreparedTable {
    /// The table.
    pub table: CodeTable,
    /// Of each column, the rows of each code as it was written.
    pub counts: Vec<Vec<u64>>,
    /// Where some rows have nobody behind them and were left out: of each row that was written whether it stayed.
    pub kept: Option<Vec<bool>>,
}

/// Some rows.
#[derive(Debug, Default)]
pub(in crate::counting) struct Block {
    /// The codes of the columns that were asked for, in that order.
    pub codes: Vec<Vec<u32>>,
    /// The people behind the rows; empty where there are none.
    pub people: Vec<u32>,
    /// The numbers of the rows in the input; empty unless asked for.
    pub order: Vec<u32>,
}

impl CodeTable {
    /// A table of some of the columns that were written.
    ///
    /// # Errors
    /// When the columns or rows are too many, or the disk fails.
    pub fn of(written: WrittenColumns) -> Result<PreparedTable, TableError> {
        let WrittenColumns { writer, columns, rows, people, directory, memory } = written;
        if rows >= u32::MAX as usize {
            return Err(ColumnsError::TooLong { found: rows }.into());
        }
        if columns.len() > MAX_ATTRIBUTES {
            return Err(ColumnsError::TooWide { found: columns.len() }.into());
        }
        let all = writer.finish();
        let chosen = |number: &usize| all.get(*number).cloned();
        let columns: Vec<(CodeColumn, Vec<u64>)> = columns.iter().filter_map(chosen).collect();
        let whose = people.and_then(|(column, first)| Some((chosen(&column)?, first)));
        drop(all);
        let Some((whose, first)) = whose else {
            let (columns, counts) = columns.into_iter().unzip();
            return Ok(PreparedTable { table: Self { rows, columns, people: None }, counts, kept: None });
        };
        let Sorted { rows, columns, counts, people, kept } =
            by_people(&columns, &whose, first, rows, directory.as_deref(), memory)?;
        Ok(PreparedTable { table: Self { rows, columns, people: Some(people) }, counts, kept })
    }

    /// A table that is held already, packed.
    #[must_use]
    pub fn held(table: &CountedTable) -> Self {
        let packed = || -> io::Result<Self> {
            let (rows, width) = (table.rows(), table.width());
            let mut writer = CodeWriter::new(None, width + 1)?;
            for column in 0..width {
                writer.append(column, table.column(column))?;
            }
            let subjects = table.subject_numbers();
            subjects.map_or(Ok(()), |subjects| writer.append(width, subjects))?;
            let people = subjects.map(|_| (width, 0));
            let columns = (0..width).collect();
            let written = WrittenColumns { writer, columns, rows, people, directory: None, memory: u64::MAX };
            Self::of(written).map(|prepared| prepared.table).map_err(io::Error::other)
        };
        packed().expect("memory does not fail, and the columns are those of a table")
    }

    /// The same table with all codes at hand, its rows in their order in the input; for a device. `None` where it lies in a file.
    #[must_use]
    pub fn unpacked(&self) -> Option<CountedTable> {
        if !self.columns.iter().all(CodeColumn::is_in_memory) {
            return None;
        }
        let mut columns = vec![vec![0; self.rows]; self.width()];
        let mut people = self.people.as_ref().map(|_| vec![0; self.rows]);
        let all: Vec<usize> = (0..self.width()).collect();
        let read = self.each_block(&all, true, |block| {
            for (column, codes) in columns.iter_mut().zip(&block.codes) {
                block.order.iter().zip(codes).for_each(|(row, code)| column[*row as usize] = *code);
            }
            if let Some(people) = &mut people {
                block.order.iter().zip(&block.people).for_each(|(row, person)| people[*row as usize] = *person);
            }
            true
        });
        read.ok()?;
        CountedTable::new(columns, people).ok()
    }

    /// Rows of each column.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    #[must_use]
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Distinct values of a column, a missing one included.
    #[must_use]
    pub fn cardinality(&self, column: usize) -> usize {
        self.columns[column].cardinality()
    }

    /// Distinct people, where the table has people.
    #[must_use]
    pub fn subjects(&self) -> Option<usize> {
        self.people.as_ref().map(|people| people.count)
    }

    /// Support of the whole table: distinct people, or rows.
    #[must_use]
    pub fn support(&self) -> usize {
        self.subjects().unwrap_or(self.rows)
    }

    /// The table with other codes: `codes[column][code]`, numbered densely; it shares the files.
    #[must_use]
    pub fn recoded(&self, codes: &[Vec<u32>]) -> Self {
        let columns = self.columns.iter().zip(codes).map(|(column, codes)| column.recoded(codes)).collect();
        Self { columns, ..self.clone() }
    }

    /// Reads some columns from the first row to the last, as they lie, until `visit` says no more.
    pub(in crate::counting) fn each_block(
        &self,
        columns: &[usize],
        with_order: bool,
        mut visit: impl FnMut(&Block) -> bool,
    ) -> io::Result<()> {
        let mut block = Block { codes: vec![Vec::new(); columns.len()], ..Block::default() };
        let mut bytes = Vec::new();
        for start in (0..self.rows).step_by(ROWS_AT_ONCE) {
            let rows = start..self.rows.min(start + ROWS_AT_ONCE);
            for (column, codes) in columns.iter().zip(&mut block.codes) {
                self.columns[*column].read(rows.clone(), &mut bytes, codes)?;
            }
            if let Some(people) = &self.people {
                people.numbers.read(rows.clone(), &mut bytes, &mut block.people)?;
            }
            if with_order {
                match &self.people {
                    Some(people) => people.order.read(rows.clone(), &mut bytes, &mut block.order)?,
                    None => {
                        block.order.clear();
                        block.order.extend(rows.clone().map(|row| row as u32));
                    }
                }
            }
            if columns.is_empty() && self.people.is_none() && !with_order {
                block.order.resize(rows.len(), 0);
            }
            if !visit(&block) {
                break;
            }
        }
        Ok(())
    }

    /// The codes of one row, by its number in the input.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn codes_of(&self, row: u32, columns: &[usize]) -> io::Result<Vec<u32>> {
        let mut place = row as usize;
        if self.people.is_some() {
            let mut start = 0;
            self.each_block(&[], true, |block| {
                let found = block.order.iter().position(|number| *number == row);
                place = start + found.unwrap_or_default();
                start += block.rows();
                found.is_none()
            })?;
        }
        let (mut buffer, mut code) = (Vec::new(), Vec::new());
        let mut read = |column: &usize| {
            self.columns[*column].read(place..place + 1, &mut buffer, &mut code)?;
            Ok(code.first().copied().unwrap_or_default())
        };
        columns.iter().map(&mut read).collect()
    }
}

impl Block {
    /// Rows of the block.
    pub fn rows(&self) -> usize {
        self.codes.first().map_or(self.people.len().max(self.order.len()), Vec::len)
    }
}
