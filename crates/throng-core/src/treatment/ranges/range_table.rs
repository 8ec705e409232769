//! Table of the divided rows.

use super::axis::{Axis, AxisExtent, RankedCell};

/// Divided rows, with the data to choose cuts.
pub(super) struct RangeTable {
    pub axes: Vec<Axis>,
    /// Cells by row and axis.
    pub cells: Vec<RankedCell>,
    /// By row: the number of its subject; `None` without a subject.
    pub subjects: Vec<Option<u32>>,
    /// Number of distinct subjects.
    pub people: usize,
    /// Minimum number of subjects of every class.
    pub k: usize,
}

impl RangeTable {
    /// Returns the extent of some rows on an axis.
    pub fn extent(&self, rows: &[u32], axis: usize) -> AxisExtent {
        let mut extent = AxisExtent::default();
        rows.iter().for_each(|&row| extent.add(self.cells[row as usize * self.axes.len() + axis]));
        extent
    }

    /// Returns the loss of a class with these extents, over all its present cells.
    pub fn loss(&self, extents: &[AxisExtent]) -> f64 {
        self.axes.iter().zip(extents).map(|(axis, extent)| axis.loss(extent)).sum()
    }
}
