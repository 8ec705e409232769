//! Columns as they were read, and the table that they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::io::file::LongRows;
use throng_core::values::dictionary::{ABSENT, Dictionary};
use throng_core::values::numbers::RecordNumbers;
use throng_core::values::schema::{Attribute, Origin};
use throng_risk::audit::GivenUp;
use throng_risk::counting::CodeWriter;

/// A column with its values.
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Its name in the file or in the schema.
    pub name: String,
    /// The keys from the top of a record down to it; its name alone where nothing is nested, or a schema says where it is.
    pub way: Vec<String>,
    /// The part of a message that has it.
    pub from: Origin,
    /// What the schema says about it.
    pub attribute: Option<Arc<Attribute>>,
    /// A code of the dictionary a row.
    pub codes: Vec<u32>,
    /// The values behind the codes.
    pub dictionary: Dictionary,
    /// Cells that are arrays: each is one text, and what is in it is not looked at.
    pub arrays: u64,
    /// It has more different values than can be held: what was counted until then. It has no codes.
    pub given_up: Option<GivenUp>,
}

/// A file that has been read.
#[derive(Debug, Default)]
pub struct WholeTable {
    /// Its columns, each with a code for every row.
    pub columns: Vec<TableColumn>,
    /// Records that could be read.
    pub rows: u64,
    /// Which record of the file each row is; unreadable ones count.
    pub numbers: RecordNumbers,
    /// Records left out, by reason.
    pub unreadable: BTreeMap<&'static str, u64>,
    /// Columns that no readable record has a cell of; they are not among the columns.
    pub absent: Vec<String>,
    /// Cells of columns that the schema does not know; they are not among the columns either.
    pub unknown_cells: u64,
    /// Rows in which a quote is likely to be open by mistake.
    pub long_rows: Option<LongRows>,
    /// Only the first records were asked for, and there may be more.
    pub cut: bool,
    /// Where the codes of the columns lie, if not in these.
    pub spilled: Option<Spilled>,
}

/// Codes that were written to a file.
#[derive(Debug)]
pub struct Spilled {
    /// All columns that were read.
    pub writer: CodeWriter,
    /// The number there of each column of the table; of those that were given up it says nothing.
    pub numbers: Vec<usize>,
}

impl Spilled {
    /// The columns that no row has a cell of, and the others, whose numbers are kept.
    pub(super) fn without_absent(&mut self, columns: Vec<TableColumn>) -> (Vec<TableColumn>, Vec<TableColumn>) {
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
