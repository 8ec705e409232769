//! Table of dense codes.

use super::column::CodeColumn;
use super::subject_sort::{RowSubjectColumns, SubjectSortedColumns, sort_by_subject};
use super::writer::CodeWriter;
use crate::counting::attribute_set::MAX_ATTRIBUTES;
use crate::counting::{ColumnsError, CountedTable};
use std::io;
use std::path::PathBuf;

const READ_BLOCK_ROWS: usize = 1 << 13;

/// Columns of dense codes, in subject order if there are subjects. Row numbers count the kept rows of the input.
#[derive(Clone, Debug)]
pub struct CodeTable {
    rows: usize,
    columns: Vec<CodeColumn>,
    subjects: Option<RowSubjectColumns>,
}

/// Failure to create a [`CodeTable`].
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum CodeTableError {
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(transparent)]
    File(#[from] io::Error),
}

/// Written columns and table settings.
#[derive(Debug)]
pub struct WrittenColumns {
    /// Written columns.
    pub writer: CodeWriter,
    /// Columns of the table, in order.
    pub columns: Vec<usize>,
    /// Rows per column.
    pub rows: usize,
    /// Subject column and its first subject code; rows with smaller codes are omitted.
    pub subject_column: Option<(usize, u32)>,
    /// Directory of the sorted table, or `None` for memory.
    pub directory: Option<PathBuf>,
    /// Bytes for sorting.
    pub memory: u64,
}

/// Table with counts from its creation.
#[derive(Debug)]
pub struct PreparedTable {
    /// Table.
    pub table: CodeTable,
    /// Rows per written code, by column.
    pub counts: Vec<Vec<u64>>,
    /// Kept flag per written row; `None` if all are kept.
    pub kept_row_flags: Option<Vec<bool>>,
}

#[derive(Debug, Default)]
pub(in crate::counting) struct CodeBlock {
    pub codes: Vec<Vec<u32>>,
    pub subjects: Vec<u32>,
    /// Empty unless requested.
    pub order: Vec<u32>,
}

impl CodeTable {
    /// Creates a table of written columns.
    ///
    /// # Errors
    /// If columns or rows are too many, or the disk fails.
    pub fn from_written(written: WrittenColumns) -> Result<PreparedTable, CodeTableError> {
        let WrittenColumns { writer, columns, rows, subject_column: people, directory, memory } = written;
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
            return Ok(PreparedTable { table: Self { rows, columns, subjects: None }, counts, kept_row_flags: None });
        };
        let SubjectSortedColumns { rows, columns, counts, subjects: people, kept_row_flags: kept } =
            sort_by_subject(&columns, &whose, first, rows, directory.as_deref(), memory)?;
        Ok(PreparedTable { table: Self { rows, columns, subjects: Some(people) }, counts, kept_row_flags: kept })
    }

    /// Packs a [`CountedTable`].
    #[must_use]
    pub fn from_counted_table(table: &CountedTable) -> Self {
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
            let written =
                WrittenColumns { writer, columns, rows, subject_column: people, directory: None, memory: u64::MAX };
            Self::from_written(written).map(|prepared| prepared.table).map_err(io::Error::other)
        };
        packed().expect("memory does not fail, and the columns are those of a table")
    }

    /// Returns the unpacked table in input order; `None` if in a file.
    #[must_use]
    pub fn to_counted_table(&self) -> Option<CountedTable> {
        if !self.columns.iter().all(CodeColumn::is_in_memory) {
            return None;
        }
        let mut columns = vec![vec![0; self.rows]; self.width()];
        let mut people = self.subjects.as_ref().map(|_| vec![0; self.rows]);
        let all: Vec<usize> = (0..self.width()).collect();
        let read = self.for_each_block(&all, true, |block| {
            for (column, codes) in columns.iter_mut().zip(&block.codes) {
                block.order.iter().zip(codes).for_each(|(row, code)| column[*row as usize] = *code);
            }
            if let Some(people) = &mut people {
                block.order.iter().zip(&block.subjects).for_each(|(row, person)| people[*row as usize] = *person);
            }
            true
        });
        read.ok()?;
        CountedTable::new(columns, people).ok()
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Number of distinct values, including the missing value.
    #[must_use]
    pub fn cardinality(&self, column: usize) -> usize {
        self.columns[column].cardinality()
    }

    /// Number of subjects, if any.
    #[must_use]
    pub fn subjects(&self) -> Option<usize> {
        self.subjects.as_ref().map(|people| people.count)
    }

    /// Total support: subjects, or rows.
    #[must_use]
    pub fn support(&self) -> usize {
        self.subjects().unwrap_or(self.rows)
    }

    /// Returns the table with dense codes `codes[column][code]`; shares the files.
    #[must_use]
    pub fn recoded(&self, codes: &[Vec<u32>]) -> Self {
        let columns = self.columns.iter().zip(codes).map(|(column, codes)| column.recoded(codes)).collect();
        Self { columns, ..self.clone() }
    }

    /// Ends when `visit` returns false.
    pub(in crate::counting) fn for_each_block(
        &self,
        columns: &[usize],
        with_order: bool,
        mut visit: impl FnMut(&CodeBlock) -> bool,
    ) -> io::Result<()> {
        let mut block = CodeBlock { codes: vec![Vec::new(); columns.len()], ..CodeBlock::default() };
        let mut bytes = Vec::new();
        for start in (0..self.rows).step_by(READ_BLOCK_ROWS) {
            let rows = start..self.rows.min(start + READ_BLOCK_ROWS);
            for (column, codes) in columns.iter().zip(&mut block.codes) {
                self.columns[*column].read(rows.clone(), &mut bytes, codes)?;
            }
            if let Some(people) = &self.subjects {
                people.numbers.read(rows.clone(), &mut bytes, &mut block.subjects)?;
            }
            if with_order {
                match &self.subjects {
                    Some(people) => people.order.read(rows.clone(), &mut bytes, &mut block.order)?,
                    None => {
                        block.order.clear();
                        block.order.extend(rows.clone().map(|row| row as u32));
                    }
                }
            }
            if columns.is_empty() && self.subjects.is_none() && !with_order {
                block.order.resize(rows.len(), 0);
            }
            if !visit(&block) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the codes of a row.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn row_codes(&self, row: u32, columns: &[usize]) -> io::Result<Vec<u32>> {
        let mut place = row as usize;
        if self.subjects.is_some() {
            let mut start = 0;
            self.for_each_block(&[], true, |block| {
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

impl CodeBlock {
    pub fn rows(&self) -> usize {
        self.codes.first().map_or(self.subjects.len().max(self.order.len()), Vec::len)
    }
}
