//! The rows that are divided, and the loss of a class of them.

use super::axis::{Axis, Cell, Extent};

/// The rows that a tree of cuts divides, with what cuts are chosen by.
pub(super) struct Table {
    pub axes: Vec<Axis>,
    /// By row and axis.
    pub cells: Vec<Cell>,
    /// By row, the number of its subject; none for nobody.
    pub subjects: Vec<Option<u32>>,
    /// Number of subjects.
    pub people: usize,
    /// Subjects that every class needs.
    pub k: usize,
}

impl Table {
    /// What an axis shows of some rows.
    pub fn extent(&self, rows: &[u32], axis: usize) -> Extent {
        let mut extent = Extent::default();
        rows.iter().for_each(|&row| extent.add(self.cells[row as usize * self.axes.len() + axis]));
        extent
    }

    /// The loss of a class with these extents, over all its present cells.
    pub fn loss(&self, extents: &[Extent]) -> f64 {
        self.axes.iter().zip(extents).map(|(axis, extent)| axis.loss(extent)).sum()
    }
}
