//! The cells of a group, and what lies above them.

use crate::records::codebook::{CellId, SUPPRESSED};
use std::collections::BTreeSet;

/// The labels above the cells of one column, fine to coarse, without the root. Cells without an entry have none.
pub type Above = hashbrown::HashMap<CellId, Vec<CellId>>;

/// The cells of one group that leave: `columns[i][row]` belongs to `attributes[i]`.
#[derive(Clone, Debug)]
pub struct GroupCells {
    /// The attribute of each column, by its number in the schema.
    pub attributes: Vec<usize>,
    /// A cell a row, by column.
    pub columns: Vec<Vec<CellId>>,
    /// By column.
    pub above: Vec<Above>,
    /// How many of the columns, from the first, form the class; the others stand beside it.
    pub quasi: usize,
    /// What a row's fragment is worth to a reader: the sum over its present cells of one minus their loss.
    pub worth: Vec<f32>,
}

impl GroupCells {
    /// Suppresses a row.
    pub fn withdraw(&mut self, row: u32) {
        for column in &mut self.columns {
            column[row as usize] = SUPPRESSED;
        }
    }

    /// `rows` with everyone who shares a class with one of them: a class goes whole or not at all, so that those who stay
    /// keep their crowd.
    pub(super) fn with_classes(&self, rows: BTreeSet<u32>) -> BTreeSet<u32> {
        if self.quasi == self.columns.len() || self.quasi == 0 {
            return rows;
        }
        let class = |row: u32| -> Vec<CellId> { self.columns[..self.quasi].iter().map(|c| c[row as usize]).collect() };
        let classes: BTreeSet<Vec<CellId>> = rows.iter().map(|&row| class(row)).collect();
        let all = u32::try_from(self.worth.len()).expect("a batch is bounded");
        let present = |row: &u32| self.columns[..self.quasi].iter().any(|c| c[*row as usize] != SUPPRESSED);
        (0..all).filter(|row| rows.contains(row) || (present(row) && classes.contains(&class(*row)))).collect()
    }

    pub(super) fn worth_of(&self, rows: impl Iterator<Item = u32>) -> f64 {
        rows.map(|row| f64::from(self.worth[row as usize])).sum()
    }
}
