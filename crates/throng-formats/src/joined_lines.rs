//! Lines of a group among the attributes of all groups: null stands for those that the group does not have.

use super::line::Encoder;
use std::sync::Arc;

/// What a cell of another group says.
const NOTHING: &str = "null";

/// Writes the cells of one group into rows of all attributes, and reads them back.
///
/// A row that shows anything of another group, or leaves an attribute out, is not read. So whoever counts by this what is
/// about to leave counts the group's own cells and knows that there is nothing beside them.
#[derive(Debug)]
pub(super) struct JoinedLines {
    rows: Arc<dyn Encoder>,
    /// Cells of a row.
    width: usize,
    /// Places of the group's attributes in a row, ascending.
    places: Vec<usize>,
}

impl JoinedLines {
    /// Of rows of `width` cells, which `rows` writes, those at `places` (ascending) are the group's.
    pub fn new(rows: Arc<dyn Encoder>, width: usize, places: &[usize]) -> Self {
        debug_assert!(places.is_sorted() && places.last().is_none_or(|last| *last < width), "places are of the row");
        Self { rows, width, places: places.to_vec() }
    }
}

impl Encoder for JoinedLines {
    /// A cell cannot be left out: an empty text is written as null.
    fn encode(&self, cells: &[&str], out: &mut Vec<u8>) {
        let mut row = vec![NOTHING; self.width];
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
            } else if cells[place] != NOTHING {
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
