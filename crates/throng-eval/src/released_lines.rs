//! Released lines of a group, as cells of the codebooks of the original.

use throng_core::values::codebook::CellId;

/// First cell identifier of foreign texts, which no generalization of an occurring value prints: a falsified value or
/// another file. Each distinct text gets its own cell, so that different texts never share a class.
pub const FIRST_FOREIGN_CELL: CellId = CellId::MAX / 2;

/// Returns true if no generalization prints the text of a cell.
pub fn is_foreign(cell: CellId) -> bool {
    cell >= FIRST_FOREIGN_CELL
}

/// Lines of one group.
pub struct ReleasedGroup {
    /// Name of the group.
    pub name: String,
    /// Attributes of the group, in the order of the schema.
    pub attributes: Vec<usize>,
    /// By attribute of the group, one cell per line; foreign texts are numbered [from](FIRST_FOREIGN_CELL) this constant.
    pub cells: Vec<Vec<CellId>>,
    /// Number of lines.
    pub lines: usize,
    /// Line numbers in the output, ascending, if the output also holds lines of other groups.
    pub output_lines: Option<Vec<u64>>,
    /// Source record and batch of each line; none without a lineage.
    pub origin: Option<Vec<LineOrigin>>,
}

/// Source of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineOrigin {
    /// Row of the original.
    pub row: u32,
    /// Sequence number of the batch.
    pub batch: u64,
}

impl ReleasedGroup {
    /// Returns the line of the group at number `place` of its output; none if that line belongs to another group.
    pub fn line_at(&self, place: u64) -> Option<usize> {
        match &self.output_lines {
            None => usize::try_from(place).ok(),
            Some(places) => places.binary_search(&place).ok(),
        }
    }

    /// Returns the cells of an attribute; none if the group does not have it.
    pub fn column(&self, attribute: usize) -> Option<&[CellId]> {
        self.attributes.iter().position(|a| *a == attribute).map(|at| self.cells[at].as_slice())
    }
}
