//! Distinct values of a column, with subjects.

use super::subject_choice::{MISSING_SUBJECT, TableSubjects};
use crate::io::table::TableColumn;
use throng_core::values::dictionary::FIRST_VALUE;

#[derive(Clone, Copy, Debug)]
pub(super) struct DistinctText<'a> {
    pub text: &'a str,
    /// Cells with this text.
    pub cells: u64,
    /// Subjects with this text.
    pub people: u64,
}

#[derive(Clone, Debug)]
pub(super) struct ColumnTexts<'a> {
    pub column: &'a TableColumn,
    /// In the order of codes.
    pub texts: Vec<DistinctText<'a>>,
    /// Cells without a value.
    pub missing: u64,
    /// Subjects with a value.
    pub people: u64,
}

impl<'a> ColumnTexts<'a> {
    pub fn of(column: &'a TableColumn, people: &TableSubjects) -> Self {
        let mut texts: Vec<DistinctText> =
            column.dictionary.texts().map(|text| DistinctText { text, cells: 0, people: 0 }).collect();
        let mut missing = 0;
        let mut pairs = Vec::new();
        for (&code, &person) in column.codes.iter().zip(&people.of_row) {
            if code < FIRST_VALUE {
                missing += 1;
                continue;
            }
            texts[(code - FIRST_VALUE) as usize].cells += 1;
            if person != MISSING_SUBJECT {
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

    /// Share of cells with a value of at least `k` subjects.
    pub fn frequent_cell_share(&self, k: u64) -> f64 {
        let crowded: u64 = self.texts.iter().filter(|text| text.people >= k).map(|text| text.cells).sum();
        crowded as f64 / self.cells().max(1) as f64
    }
}

pub(super) fn number_of_code(told: &[Option<f64>], code: u32) -> Option<f64> {
    if code < FIRST_VALUE { None } else { told[(code - FIRST_VALUE) as usize] }
}
