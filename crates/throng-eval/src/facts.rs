//! Facts about cells.

use super::original::OriginalData;
use crate::released_lines::{ReleasedGroup, is_foreign};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::{ABSENT, CellId, Code, NULL, SUPPRESSED, is_range};

/// Facts about one cell.
#[derive(Clone, Debug)]
pub struct CellFacts {
    /// Covered occurring codes, ascending.
    pub codes: Vec<Code>,
    /// Original records with such a value.
    pub records: u64,
    /// Iyengar's loss (docs/internals/methods.md §9), in [0, 1].
    pub loss: f64,
    /// True if exactly one value is covered.
    pub exact: bool,
    /// Finest level that prints the cell ÷ highest level.
    pub height: f64,
    /// Entropy of the value given the cell, in bits.
    pub bits: f64,
}

/// Facts about the cells of one attribute.
pub struct AttributeFacts {
    cells: BTreeMap<CellId, CellFacts>,
    /// Original records by code.
    pub counts: Vec<u64>,
}

static UNKNOWN: CellFacts =
    CellFacts { codes: Vec::new(), records: 0, loss: 1.0, exact: false, height: 1.0, bits: 0.0 };

impl AttributeFacts {
    /// Collects the facts of an attribute, with ranges of `groups`.
    pub fn from_original(original: &OriginalData, attribute: usize, groups: &[ReleasedGroup]) -> Self {
        let columns = groups.iter().filter_map(|group| group.column(attribute));
        let ranges: BTreeSet<CellId> = columns.flatten().copied().filter(|cell| is_range(*cell)).collect();
        let book = &original.books[attribute];
        let mut counts = vec![0_u64; book.codes()];
        original.batch.columns[attribute].iter().for_each(|&code| counts[code as usize] += 1);
        let top = (book.levels() - 1).max(1) as f64;
        let mut lowest: BTreeMap<CellId, usize> = BTreeMap::new();
        for level in (0..book.levels()).rev() {
            for &cell in book.cells(level) {
                lowest.insert(cell, level);
            }
        }
        let facts = |(cell, codes): (CellId, Vec<Code>)| {
            let records: u64 = codes.iter().map(|&code| counts[code as usize]).sum();
            let share = |code: &Code| counts[*code as usize] as f64 / records.max(1) as f64;
            let bits = codes.iter().map(share).filter(|share| *share > 0.0).map(|share| -share * share.log2()).sum();
            let loss = f64::from(book.loss(cell));
            // A range has the finest level without a wider label.
            let as_wide = || {
                let wide = |level: &usize| {
                    codes.first().is_some_and(|&code| f64::from(book.losses(*level)[code as usize]) >= loss)
                };
                (1..book.levels()).find(wide)
            };
            let level = if is_range(cell) { as_wide() } else { lowest.get(&cell).copied() };
            let height = level.map_or(1.0, |level| level as f64 / top);
            (cell, CellFacts { codes, records, loss, exact: book.is_exact(cell), height, bits })
        };
        let cells = original.covered_codes(attribute, &ranges).into_iter().map(facts).collect();
        Self { cells, counts }
    }

    /// Returns the facts of a cell.
    pub fn get(&self, cell: CellId) -> &CellFacts {
        self.cells.get(&cell).unwrap_or(&UNKNOWN)
    }

    /// Returns true if `cell` covers `code`.
    pub fn holds(&self, cell: CellId, code: Code) -> bool {
        cell == SUPPRESSED || !is_foreign(cell) && self.get(cell).codes.binary_search(&code).is_ok()
    }
}

/// Returns true unless absent or null.
pub fn is_present(code: Code) -> bool {
    !matches!(code, ABSENT | NULL)
}
