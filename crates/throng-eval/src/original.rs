//! Original records before the release, read with the schema of their configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{CellId, Code, Codebook};
use throng_core::values::schema::Schema;

/// Records of a source. Memory: 4 bytes per cell, plus every distinct value with its generalizations.
pub struct OriginalData {
    /// Record schema.
    pub schema: Arc<Schema>,
    /// Codebook of each attribute: values to codes and labels.
    pub books: Vec<Codebook>,
    /// Readable records, in the order of the source.
    pub batch: CodeBatch,
    /// Number of records that are unreadable or have a cell of the wrong type. The daemon makes dead letters of them.
    pub rejected: u64,
    /// By attribute and row: numbers and times (in milliseconds) without a code because they are outside the range of
    /// the hierarchy.
    pub uncovered: BTreeMap<(usize, usize), f64>,
}

impl OriginalData {
    /// Returns the number of records.
    pub fn rows(&self) -> usize {
        self.batch.rows()
    }

    /// Returns the row of the record at `offset` of the source and at `element` of that message (from 1; 0: the whole
    /// message). Returns none for an unreadable record.
    pub fn row_at(&self, offset: i64, element: u32) -> Option<usize> {
        self.batch.coordinates.binary_search_by_key(&(offset, element), |place| (place.offset, place.element)).ok()
    }

    /// Returns for each cell of an attribute the codes of the occurring values that it covers, ascending. `ranges`
    /// are cells of ranges.
    pub fn covered_codes(&self, attribute: usize, ranges: &BTreeSet<CellId>) -> BTreeMap<CellId, Vec<Code>> {
        let book = &self.books[attribute];
        let mut occurring = vec![false; book.codes()];
        self.batch.columns[attribute].iter().for_each(|&code| occurring[code as usize] = true);
        let mut covers: BTreeMap<CellId, Vec<Code>> = BTreeMap::new();
        for code in (0..book.codes() as Code).filter(|&code| occurring[code as usize]) {
            for level in 0..book.levels() {
                let codes = covers.entry(book.cell(code, level)).or_default();
                if codes.last() != Some(&code) {
                    codes.push(code);
                }
            }
        }
        for &range in ranges {
            let codes = (0..book.codes() as Code).filter(|&code| occurring[code as usize] && book.covers(range, code));
            covers.insert(range, codes.collect());
        }
        covers
    }
}
