//! Codes of columns on their way to a file, where they would need more memory than they may have.

use super::column::{Spilled, TableColumn};
use super::error::TableError;
use super::request::{Request, Spill};
use crate::config::format_size;
use throng_risk::audit::GivenUp;
use throng_risk::counting::CodeWriter;

/// Codes that are held until they are written: 16 MiB.
const CELLS_AT_ONCE: usize = 4 << 20;

/// A table that goes to a file once it has to.
#[derive(Debug)]
pub(super) struct Spilling<'a> {
    pub asked: Spill<'a>,
    pub writer: Option<CodeWriter>,
    /// Rows that have been written.
    pub rows: usize,
}

impl Spilling<'_> {
    /// Writes the codes of columns of `rows` rows, where it is time; `is_full`: memory cannot hold them any longer. Columns with too
    /// many values are given up.
    pub fn keep(
        &mut self,
        columns: &mut [TableColumn],
        rows: usize,
        is_full: bool,
        request: &Request<'_>,
        records: u64,
    ) -> Result<(), TableError> {
        let cells = (rows - self.rows) * columns.len();
        let crowded = dictionaries(columns) > self.asked.dictionaries;
        if is_full && self.writer.is_none() || self.writer.is_some() && (crowded || cells >= CELLS_AT_ONCE) {
            self.write(columns, rows)?;
        }
        while self.writer.is_some() && dictionaries(columns) > self.asked.dictionaries {
            self.give_up(columns, request, records)?;
        }
        Ok(())
    }

    fn write(&mut self, columns: &mut [TableColumn], rows: usize) -> Result<(), TableError> {
        let fault = |source| TableError::Temporary { directory: self.asked.directory.to_owned(), source };
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => CodeWriter::new(Some(self.asked.directory), columns.len()).map_err(fault)?,
        };
        for (number, column) in columns.iter_mut().enumerate() {
            writer.append(number, &column.codes).map_err(fault)?;
            column.codes.clear();
        }
        self.writer = Some(writer);
        self.rows = rows;
        Ok(())
    }

    /// Gives up the column whose values take most.
    fn give_up(&self, columns: &mut [TableColumn], request: &Request<'_>, records: u64) -> Result<(), TableError> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let heaviest = columns.iter_mut().enumerate().max_by_key(|(_, column)| column.dictionary.bytes());
        let Some((number, column)) = heaviest else { return Ok(()) };
        let given_up = GivenUp::of(writer.counts(number), &column.dictionary, column.attribute.is_some());
        let is_recodable = column.attribute.as_ref().is_some_and(|a| a.hierarchy.levels() > 2);
        let is_identifier = given_up.profile.cardinality() >= self.asked.identifier_cardinality && !is_recodable;
        if !is_identifier || self.asked.people == Some(column.name.as_str()) {
            return Err(TableError::ManyValues {
                path: request.named(),
                column: column.name.clone(),
                records,
                limit: format_size(self.asked.dictionaries),
            });
        }
        column.given_up = Some(given_up);
        column.dictionary = column.dictionary.emptied();
        Ok(())
    }

    /// Writes the rest, and gives what was written; none where memory held everything.
    pub fn finish(&mut self, columns: &mut [TableColumn], rows: usize) -> Result<Option<Spilled>, TableError> {
        if self.writer.is_some() {
            self.write(columns, rows)?;
        }
        let numbers = (0..columns.len()).collect();
        Ok(self.writer.take().map(|writer| Spilled { writer, numbers }))
    }
}

fn dictionaries(columns: &[TableColumn]) -> u64 {
    columns.iter().map(|column| column.dictionary.bytes() as u64).sum()
}
