//! Rows with one column per attribute of any group; attributes of other groups are null.

use std::sync::Arc;
use throng_core::line_encoder::LineEncoder;

/// JSON text of a cell of another group.
const FOREIGN_CELL: &str = "null";

/// Writes the cells of one group into rows of all attributes, and reads them back.
///
/// Reading refuses a row that has a value of another group or omits an attribute. A successful read therefore returns
/// every value of the row.
#[derive(Debug)]
pub(super) struct JoinedLines {
    rows: Arc<dyn LineEncoder>,
    width: usize,
    /// Positions of the group's attributes in a row, ascending.
    places: Vec<usize>,
}

impl JoinedLines {
    /// Creates lines for the group with its cells at `places` (ascending) in rows of `width` cells, encoded by `rows`.
    pub fn new(rows: Arc<dyn LineEncoder>, width: usize, places: &[usize]) -> Self {
        debug_assert!(
            places.is_sorted() && places.last().is_none_or(|last| *last < width),
            "places are columns of the row"
        );
        Self { rows, width, places: places.to_vec() }
    }
}

impl LineEncoder for JoinedLines {
    /// Writes an empty text as null, because a cell cannot be omitted.
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
