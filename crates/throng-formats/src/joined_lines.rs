//! Rows with one column per attribute of any group; other groups' cells are null.

use std::sync::Arc;
use throng_core::line_encoder::LineEncoder;

const FOREIGN_CELL: &str = "null";

/// Refuses a row with a value of another group or a missing attribute when reading.
#[derive(Debug)]
pub(super) struct JoinedLines {
    rows: Arc<dyn LineEncoder>,
    width: usize,
    places: Vec<usize>,
}

impl JoinedLines {
    /// Cells of the group are at `places` (ascending) of `width`.
    pub fn new(rows: Arc<dyn LineEncoder>, width: usize, places: &[usize]) -> Self {
        debug_assert!(
            places.is_sorted() && places.last().is_none_or(|last| *last < width),
            "places are columns of the row"
        );
        Self { rows, width, places: places.to_vec() }
    }
}

impl LineEncoder for JoinedLines {
    /// Writes an omitted cell as null.
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>) {
        let mut row = vec![FOREIGN_CELL; self.width];
        for (place, cell) in self.places.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
            row[*place] = cell;
        }
        self.rows.encode(&row, out);
    }

    fn read(&self, line: &[u8], cells: &mut Vec<String>) -> Option<()> {
        self.rows.read(line, cells)?;
        let mut own = 0;
        for place in 0..self.width {
            if self.places.get(own) == Some(&place) {
                cells.swap(own, place);
                own += 1;
            } else if cells[place] != FOREIGN_CELL {
                return None;
            }
        }
        cells.truncate(own);
        cells.iter().all(|cell| !cell.is_empty()).then_some(())
    }

    fn is_joined(&self) -> bool {
        true
    }
}
