//! The different values of a column, and how many people hold each.

use super::people::{NOBODY, People};
use crate::io::table::TableColumn;
use throng_core::values::dictionary::FIRST_VALUE;

/// A text as the records spell it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    pub text: &'a str,
    /// Cells that hold it.
    pub cells: u64,
    /// People who hold it at least once.
    pub people: u64,
}

/// A column of texts.
#[derive(Clone, Debug)]
pub(super) struct Values<'a> {
    pub column: &'a TableColumn,
    /// In the order of their codes.
    pub texts: Vec<Text<'a>>,
    /// Cells without a value.
    pub missing: u64,
    /// People with at least one value.
    pub people: u64,
}

impl<'a> Values<'a> {
    pub fn of(column: &'a TableColumn, people: &People) -> Self {
        let mut texts: Vec<Text> = column.dictionary.texts().map(|text| Text { text, cells: 0, people: 0 }).collect();
        let mut missing = 0;
        let mut pairs = Vec::new();
        for (&code, &person) in column.codes.iter().zip(&people.of_row) {
            if code < FIRST_VALUE {
                missing += 1;
                continue;
            }
            texts[(code - FIRST_VALUE) as usize].cells += 1;
            if person != NOBODY {
                pairs.push(u64::from(code - FIRST_VALUE) << 32 | u64::from(person));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        for pair in &pairs {
            texts[(pair >> 32) as usize].people += 1;
        }
        let mut holders: Vec<u32> = pairs.iter().map(|pair| *pair as u32).collect();
        holders.sort_unstable();
        holders.dedup();
        Self { column, texts, missing, people: holders.len() as u64 }
    }

    /// Cells with a value.
    pub fn cells(&self) -> u64 {
        self.texts.iter().map(|text| text.cells).sum()
    }

    /// Share of the cells whose value at least `k` people hold; 0 without cells.
    pub fn crowded(&self, k: u64) -> f64 {
        let crowded: u64 = self.texts.iter().filter(|text| text.people >= k).map(|text| text.cells).sum();
        crowded as f64 / self.cells().max(1) as f64
    }
}

/// The number that a cell says, by its code: none where the cell has none.
pub(super) fn number_of(told: &[Option<f64>], code: u32) -> Option<f64> {
    if code < FIRST_VALUE { None } else { told[(code - FIRST_VALUE) as usize] }
}
