//! Spill of column codes to a file.

use super::table_columns::{SpilledCodes, TableColumn};
use super::table_read_error::TableReadError;
use super::table_request::{SpillSettings, TableRequest};
use crate::config::format_size;
use throng_risk::audit::PartialColumnCounts;
use throng_risk::counting::CodeWriter;

/// 16 MiB.
const MAX_HELD_CODES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct CodeSpiller<'a> {
    pub spill_limits: SpillSettings<'a>,
    pub writer: Option<CodeWriter>,
    /// Rows already written.
    pub rows: usize,
}

impl CodeSpiller<'_> {
    /// Writes the codes of the first `rows` rows at the memory limit; gives up large columns.
    pub fn spill_if_needed(
        &mut self,
        columns: &mut [TableColumn],
        rows: usize,
        is_full: bool,
        request: &TableRequest<'_>,
        records: u64,
    ) -> Result<(), TableReadError> {
        let cells = (rows - self.rows) * columns.len();
        let crowded = dictionaries(columns) > self.spill_limits.dictionaries;
        if is_full && self.writer.is_none() || self.writer.is_some() && (crowded || cells >= MAX_HELD_CODES) {
            self.write(columns, rows)?;
        }
        while self.writer.is_some() && dictionaries(columns) > self.spill_limits.dictionaries {
            self.give_up(columns, request, records)?;
        }
        Ok(())
    }

    fn write(&mut self, columns: &mut [TableColumn], rows: usize) -> Result<(), TableReadError> {
        let fault = |source| TableReadError::Temporary { directory: self.spill_limits.directory.to_owned(), source };
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => CodeWriter::new(Some(self.spill_limits.directory), columns.len()).map_err(fault)?,
        };
        for (number, column) in columns.iter_mut().enumerate() {
            writer.append(number, &column.codes).map_err(fault)?;
            column.codes.clear();
        }
        self.writer = Some(writer);
        self.rows = rows;
        Ok(())
    }

    fn give_up(
        &self,
        columns: &mut [TableColumn],
        request: &TableRequest<'_>,
        records: u64,
    ) -> Result<(), TableReadError> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let heaviest = columns.iter_mut().enumerate().max_by_key(|(_, column)| column.dictionary.bytes());
        let Some((number, column)) = heaviest else { return Ok(()) };
        let given_up = PartialColumnCounts::of(writer.counts(number), &column.dictionary, column.attribute.is_some());
        let is_recodable = column.attribute.as_ref().is_some_and(|a| a.hierarchy.levels() > 2);
        let is_identifier = given_up.profile.cardinality() >= self.spill_limits.identifier_cardinality && !is_recodable;
        if !is_identifier || self.spill_limits.people == Some(column.name.as_str()) {
            return Err(TableReadError::ManyValues {
                path: request.named(),
                column: column.name.clone(),
                records,
                limit: format_size(self.spill_limits.dictionaries),
            });
        }
        column.given_up = Some(given_up);
        column.dictionary = column.dictionary.without_values();
        Ok(())
    }

    /// `None` if all codes are in memory.
    pub fn finish(&mut self, columns: &mut [TableColumn], rows: usize) -> Result<Option<SpilledCodes>, TableReadError> {
        if self.writer.is_some() {
            self.write(columns, rows)?;
        }
        let numbers = (0..columns.len()).collect();
        Ok(self.writer.take().map(|writer| SpilledCodes { writer, numbers }))
    }
}

fn dictionaries(columns: &[TableColumn]) -> u64 {
    columns.iter().map(|column| column.dictionary.bytes() as u64).sum()
}
