//! Columns of a table read into memory or to a file.

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
    /// Key path from the top of a record; the name alone for flat files or with a schema.
    pub key_path: Vec<String>,
    /// Message part that contains the column.
    pub from: AttributeOrigin,
    /// Attribute in the schema.
    pub attribute: Option<Arc<Attribute>>,
    /// One dictionary code per row.
    pub codes: Vec<u32>,
    /// Values of the codes.
    pub dictionary: Dictionary,
    /// Number of array cells; each array counts as one text and is not examined.
    pub arrays: u64,
    /// Counts up to the point where the column had too many distinct values to hold. It then has no codes.
    pub given_up: Option<PartialColumnCounts>,
}

/// Content of a file that was read as a table.
#[derive(Debug, Default)]
pub struct LoadedTable {
    /// Columns, each with one code per row.
    pub columns: Vec<TableColumn>,
    /// Number of readable records.
    pub rows: u64,
    /// Record number in the file of each row; unreadable records count.
    pub numbers: RecordNumbers,
    /// Number of skipped records by reason.
    pub unreadable: BTreeMap<&'static str, u64>,
    /// Names of columns without a cell in any readable record; they are not in `columns`.
    pub absent: Vec<String>,
    /// Cells of columns that the schema does not contain; they are not in `columns` either.
    pub unknown_cells: u64,
    /// Rows that suggest an unclosed quote.
    pub long_rows: Option<LongRows>,
    /// True if only the first records were requested and more may follow.
    pub cut: bool,
    /// File with the codes, if they are not in the columns.
    pub spilled: Option<SpilledCodes>,
}

/// Codes written to a file.
#[derive(Debug)]
pub struct SpilledCodes {
    /// Writer with all columns read.
    pub writer: CodeWriter,
    /// Number in the file of each column of the table; meaningless for columns that were given up.
    pub numbers: Vec<usize>,
}

impl SpilledCodes {
    /// Separates the columns without any cell from the others, and keeps the numbers of the others.
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
