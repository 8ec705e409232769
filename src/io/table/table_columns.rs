//! Columns of a table in memory or in a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use throng_core::stream::input_batch::LongRows;
use throng_core::values::dictionary::{ABSENT, Dictionary};
use throng_core::values::record_numbers::RecordNumbers;
use throng_core::values::schema::{Attribute, AttributeOrigin};
use throng_risk::audit::PartialColumnCounts;
use throng_risk::counting::CodeWriter;

/// Column with its values.
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Name in the file or in the schema.
    pub name: String,
    /// Key path from the top of a record.
    pub key_path: Vec<String>,
    /// Message part of the column.
    pub from: AttributeOrigin,
    /// Attribute of the schema.
    pub attribute: Option<Arc<Attribute>>,
    /// One dictionary code per row.
    pub codes: Vec<u32>,
    /// Values of the codes.
    pub dictionary: Dictionary,
    /// Number of array cells, which are not examined.
    pub arrays: u64,
    /// Counts of a column given up for its distinct values.
    pub given_up: Option<PartialColumnCounts>,
}

/// Content of a file read as a table.
#[derive(Debug, Default)]
pub struct LoadedTable {
    /// Columns, each with one code per row.
    pub columns: Vec<TableColumn>,
    /// Number of readable records.
    pub rows: u64,
    /// Record number of each row, unreadable records included.
    pub numbers: RecordNumbers,
    /// Number of skipped records by reason.
    pub unreadable: BTreeMap<&'static str, u64>,
    /// Columns without any cell, not in `columns`.
    pub absent: Vec<String>,
    /// Cells outside the schema, not in `columns`.
    pub unknown_cells: u64,
    /// Rows that suggest an unclosed quote.
    pub long_rows: Option<LongRows>,
    /// True if records may follow the requested ones.
    pub cut: bool,
    /// File of the codes, if not in the columns.
    pub spilled: Option<SpilledCodes>,
}

/// Codes written to a file.
#[derive(Debug)]
pub struct SpilledCodes {
    /// Writer with all columns read.
    pub writer: CodeWriter,
    /// Number of each column in the file.
    pub numbers: Vec<usize>,
}

impl SpilledCodes {
    pub(super) fn split_absent(&mut self, columns: Vec<TableColumn>) -> (Vec<TableColumn>, Vec<TableColumn>) {
        let (mut absent, mut there) = (Vec::new(), Vec::new());
        self.numbers.clear();
        for (number, column) in columns.into_iter().enumerate() {
            let values = self.writer.counts(number).iter().skip(ABSENT as usize + 1);
            if values.copied().all(|count| count == 0) {
                absent.push(column);
            } else {
                self.numbers.push(number);
                there.push(column);
            }
        }
        (absent, there)
    }
}
