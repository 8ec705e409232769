//! Original records, read with their schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{CellId, Code, Codebook};
use throng_core::values::schema::Schema;

/// Records of a source (4 bytes per cell) with their distinct values.
pub struct OriginalData {
    /// Record schema.
    pub schema: Arc<Schema>,
    /// Codebooks by attribute.
    pub books: Vec<Codebook>,
    /// Readable records in source order.
    pub batch: CodeBatch,
    /// Unreadable or mistyped records (dead letters).
    pub rejected: u64,
    /// Numbers and times (milliseconds) outside the hierarchy, by attribute and row.
    pub uncovered: BTreeMap<(usize, usize), f64>,
}

impl OriginalData {
    /// Returns the number of records.
    pub fn rows(&self) -> usize {
        self.batch.rows()
    }

    /// Returns the row of `element` (from 1; 0: whole message), if readable.
    pub fn row_at(&self, offset: i64, element: u32) -> Option<usize> {
        self.batch.coordinates.binary_search_by_key(&(offset, element), |place| (place.offset, place.element)).ok()
    }

    /// Returns each cell's covered codes, ascending; `ranges` are cells of ranges.
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
