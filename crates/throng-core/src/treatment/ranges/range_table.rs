//! Table of the divided rows.

use super::axis::{Axis, AxisExtent, RankedCell};

pub(super) struct RangeTable {
    pub axes: Vec<Axis>,
    /// By row and axis.
    pub cells: Vec<RankedCell>,
    /// Number of each row's subject, if any.
    pub subjects: Vec<Option<u32>>,
    pub people: usize,
    pub k: usize,
}

impl RangeTable {
    pub fn extent(&self, rows: &[u32], axis: usize) -> AxisExtent {
        let mut extent = AxisExtent::default();
        rows.iter().for_each(|&row| extent.add(self.cells[row as usize * self.axes.len() + axis]));
        extent
    }

    pub fn loss(&self, extents: &[AxisExtent]) -> f64 {
        self.axes.iter().zip(extents).map(|(axis, extent)| axis.loss(extent)).sum()
    }
}
