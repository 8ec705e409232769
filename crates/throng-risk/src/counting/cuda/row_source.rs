//! Rows of a device window, or of a table uploaded in tiles.

use super::device::{Device, DeviceError};
use super::resident_window::{ResidentWindow, width};
use crate::counting::CountedTable;
use std::sync::Arc;

pub(super) enum RowSource<'a> {
    Window(&'a ResidentWindow),
    Whole(ResidentWindow),
    Tiles { tile: ResidentWindow, table: &'a CountedTable },
}

/// First row, kernel arguments, and places to read.
type TileVisitor<'e> = dyn FnMut(u64, [u64; 5], u64) -> Result<(), DeviceError> + 'e;

impl<'a> RowSource<'a> {
    /// Uploads a table above `bytes` in tiles of that size.
    pub(super) fn for_table(
        device: &Arc<dyn Device>,
        table: &'a CountedTable,
        bytes: u64,
    ) -> Result<Self, DeviceError> {
        let bounds: Vec<u64> = (0..table.width()).map(|column| table.cardinality(column) as u64).collect();
        let subjects = if table.subjects().is_some() { 4 } else { 0 };
        let row_bytes = bounds.iter().map(|bound| width(*bound)).sum::<u64>() + subjects;
        let whole = row_bytes * table.rows() as u64 <= bytes;
        // A tile and its upload block, up to twice as large.
        let rows = if whole { table.rows() } else { (bytes / (4 * row_bytes)) as usize };
        let mut window = ResidentWindow::new(device, rows.max(1), &bounds, table.subjects().is_some())?;
        if !whole {
            return Ok(Self::Tiles { tile: window, table });
        }
        push(&mut window, table, 0..table.rows())?;
        Ok(Self::Whole(window))
    }

    pub(super) fn radices(&self) -> Vec<u64> {
        let of = |window: &ResidentWindow| (0..window.width()).map(|column| window.bound(column)).collect();
        match self {
            Self::Window(window) => of(window),
            Self::Whole(window) => of(window),
            Self::Tiles { table, .. } => (0..table.width()).map(|column| table.cardinality(column) as u64).collect(),
        }
    }

    pub(super) fn rows(&self) -> u64 {
        match self {
            Self::Window(window) => window.rows(),
            Self::Whole(window) => window.rows(),
            Self::Tiles { table, .. } => table.rows() as u64,
        }
    }

    pub(super) fn places(&self) -> u64 {
        match self {
            Self::Window(window) => window.capacity() as u64,
            Self::Whole(window) => window.capacity() as u64,
            Self::Tiles { tile, .. } => tile.capacity() as u64,
        }
    }

    pub(super) fn subject_bound(&self) -> Option<u64> {
        match self {
            Self::Window(window) => window.subject_bound(),
            Self::Whole(window) => window.subject_bound(),
            Self::Tiles { table, .. } => table.subjects().map(|subjects| subjects as u64),
        }
    }

    pub(super) fn visit_tiles(&mut self, each: &mut TileVisitor<'_>) -> Result<(), DeviceError> {
        match self {
            Self::Window(window) => each(0, window.arguments(), window.extent()),
            Self::Whole(window) => each(0, window.arguments(), window.extent()),
            Self::Tiles { tile, table } => {
                let mut from = 0;
                while from < table.rows() {
                    let to = table.rows().min(from + tile.capacity());
                    tile.clear();
                    push(tile, table, from..to)?;
                    each(from as u64, tile.arguments(), tile.extent())?;
                    from = to;
                }
                Ok(())
            }
        }
    }
}

fn push(window: &mut ResidentWindow, table: &CountedTable, rows: std::ops::Range<usize>) -> Result<(), DeviceError> {
    let columns: Vec<&[u32]> = (0..table.width()).map(|column| &table.column(column)[rows.clone()]).collect();
    window.push(&columns, table.subject_numbers().map(|subjects| &subjects[rows]))
}
