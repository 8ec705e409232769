//! Released lines as cells of the original's codebooks.

use throng_core::values::codebook::CellId;

/// First identifier of foreign texts, which no generalization prints; each text has one.
pub const FIRST_FOREIGN_CELL: CellId = CellId::MAX / 2;

/// Returns true for a foreign cell.
pub fn is_foreign(cell: CellId) -> bool {
    cell >= FIRST_FOREIGN_CELL
}

/// Lines of one group.
pub struct ReleasedGroup {
    /// Group name.
    pub name: String,
    /// Attributes in schema order.
    pub attributes: Vec<usize>,
    /// Cells by attribute and line; foreign ones start at [`FIRST_FOREIGN_CELL`].
    pub cells: Vec<Vec<CellId>>,
    /// Number of lines.
    pub lines: usize,
    /// Output line numbers, ascending, if shared with other groups.
    pub output_lines: Option<Vec<u64>>,
    /// Origin of each line; none without a lineage.
    pub origin: Option<Vec<LineOrigin>>,
}

/// Source of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineOrigin {
    /// Row of the original.
    pub row: u32,
    /// Batch sequence number.
    pub batch: u64,
}

impl ReleasedGroup {
    /// Returns the line at output line `place`, if of this group.
    pub fn line_at(&self, place: u64) -> Option<usize> {
        match &self.output_lines {
            None => usize::try_from(place).ok(),
            Some(places) => places.binary_search(&place).ok(),
        }
    }

    /// Returns an attribute's cells.
    pub fn column(&self, attribute: usize) -> Option<&[CellId]> {
        self.attributes.iter().position(|a| *a == attribute).map(|at| self.cells[at].as_slice())
    }
}
