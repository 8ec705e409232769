//! Square grid of coordinates.

use super::{HierarchyFlaw, ValueCover};
use crate::values::canonical::Rounding;
use crate::values::decimal::{MAX_DECIMALS, decimals_of, exact_ticks, floor_ticks, push_ticks};
use crate::values::json::{quoted, unquoted};

/// Cells from 0°, 0° such as `47.3..47.4,8.5..8.6`, with southern and western edges.
#[derive(Clone, Debug)]
pub struct Grid {
    decimals: u32,
    /// Edges in ticks.
    cells: Vec<i128>,
}

impl Grid {
    /// Creates the hierarchy from sizes in degrees.
    ///
    /// # Errors
    /// Fails if a size is at most the rounding step, over 90°, or no multiple of the previous one.
    pub fn build(rounding: Rounding, sizes: &[f64]) -> Result<Self, Vec<HierarchyFlaw>> {
        let mut flaws = Vec::new();
        let mut decimals = if let Rounding::Step { decimals, .. } = rounding { decimals } else { 0 };
        if sizes.is_empty() {
            flaws.push(HierarchyFlaw::new("cells", "no sizes: list at least one"));
        }
        for &size in sizes {
            if !(size > 0.0 && size <= 90.0) || decimals_of(size) > MAX_DECIMALS {
                flaws.push(HierarchyFlaw::new(
                    "cells",
                    "a size is not between 0 and 90 degrees with at most 9 decimals",
                ));
            }
            decimals = decimals.max(decimals_of(size));
        }
        let ticks: Option<Vec<i128>> = sizes.iter().map(|&size| exact_ticks(size, decimals)).collect();
        let Some(cells) = ticks.filter(|_| flaws.is_empty()) else {
            return Err(flaws);
        };
        if cells.windows(2).any(|pair| pair[1] % pair[0] != 0 || pair[1] == pair[0]) {
            flaws.push(HierarchyFlaw::new("cells", "a size is not a multiple of the previous one: cells must nest"));
        }
        if let Rounding::Step { ticks, decimals: d } = rounding
            && cells[0] <= i128::from(ticks) * 10_i128.pow(decimals - d)
        {
            flaws.push(HierarchyFlaw::new(
                "cells",
                "the first size is not larger than round: a cell would be a single value",
            ));
        }
        if flaws.is_empty() { Ok(Self { decimals, cells }) } else { Err(flaws) }
    }

    pub(super) fn inner_levels(&self) -> usize {
        self.cells.len()
    }

    pub(super) fn label(&self, index: usize) -> String {
        let mut label = String::new();
        push_ticks(&mut label, self.cells[index], self.decimals);
        label + "° cells"
    }

    pub(super) fn covers(&self, canonical: &str) -> Option<Vec<ValueCover>> {
        let value = unquoted(canonical)?;
        let (latitude, longitude) = value.split_once(',')?;
        let latitude = floor_ticks(latitude, self.decimals)?.ticks;
        let longitude = floor_ticks(longitude, self.decimals)?.ticks;
        Some(self.cells.iter().map(|&size| self.cover(size, latitude, longitude)).collect())
    }

    fn cover(&self, size: i128, latitude: i128, longitude: i128) -> ValueCover {
        let mut text = String::new();
        self.push_side(&mut text, size, latitude);
        text.push(',');
        self.push_side(&mut text, size, longitude);
        ValueCover::Set { text: quoted(&text), set: format!("grid {text}"), loss: None }
    }

    fn push_side(&self, out: &mut String, size: i128, at: i128) {
        let low = at - at.rem_euclid(size);
        push_ticks(out, low, self.decimals);
        out.push_str("..");
        push_ticks(out, low + size, self.decimals);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grid_cells_nest_and_include_south_west_edges() {
        let grid = Grid::build(Rounding::None, &[0.1, 1.0]).unwrap();
        let texts = |value: &str| super::super::texts(grid.covers(&quoted(value)));
        assert_eq!(texts("47.3769,8.5"), ["47.3..47.4,8.5..8.6", "47..48,8..9"]);
        assert_eq!(texts("-0.05,-180"), ["-0.1..0,-180..-179.9", "-1..0,-180..-179"]);
        assert!(grid.covers("\"here\"").is_none());
    }

    #[test]
    fn grid_sizes_that_do_not_nest_are_refused() {
        assert!(Grid::build(Rounding::None, &[0.1, 0.25]).is_err());
        assert!(Grid::build(Rounding::step(0.1).unwrap(), &[0.1, 1.0]).is_err());
        assert!(Grid::build(Rounding::None, &[0.0]).is_err());
        assert!(Grid::build(Rounding::None, &[]).is_err());
        assert!(Grid::build(Rounding::None, &[f64::NAN]).is_err());
    }
}
