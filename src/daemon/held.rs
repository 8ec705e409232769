//! Records that wait for a better class: consumed, not released, and kept in the state until they are settled.

use super::state::records::KeptRow;
use crate::records::codebook::Codebook;
use crate::records::raw::Coordinate;
use crate::records::table::Batch;

/// The rows that wait, oldest first.
#[derive(Clone, Debug)]
pub struct Held {
    pub batch: Batch,
    pub ordinals: Vec<u64>,
    pub waited: Vec<u8>,
}

impl Held {
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self { batch: Batch::new(width), ordinals: Vec::new(), waited: Vec::new() }
    }

    #[must_use]
    pub fn rows(&self) -> usize {
        self.ordinals.len()
    }

    pub fn push(&mut self, row: &KeptRow, books: &mut [Codebook]) {
        for ((column, book), cell) in self.batch.columns.iter_mut().zip(books).zip(&row.cells) {
            column.push(book.encode_canonical(cell));
        }
        self.batch.subjects.push(row.subject);
        self.batch.coordinates.push(row.coordinate);
        self.ordinals.push(row.ordinal);
        self.waited.push(row.waited);
    }

    /// Takes out the rows for which `keep` says no, by coordinate.
    #[must_use]
    pub fn split(&self, take: impl Fn(Coordinate) -> bool) -> (Self, Self) {
        let marks: Vec<bool> = self.batch.coordinates.iter().map(|c| take(*c)).collect();
        let part = |wanted: bool| {
            let marks: Vec<bool> = marks.iter().map(|m| *m == wanted).collect();
            let mut batch = self.batch.clone();
            batch.retain_rows(&marks);
            let kept = |at: &usize| marks[*at];
            let rows: Vec<usize> = (0..self.rows()).filter(kept).collect();
            Self {
                batch,
                ordinals: rows.iter().map(|r| self.ordinals[*r]).collect(),
                waited: rows.iter().map(|r| self.waited[*r]).collect(),
            }
        };
        (part(true), part(false))
    }
}

/// A row as it is written to the state.
#[must_use]
pub fn kept(batch: &Batch, row: usize, ordinal: u64, waited: u8, books: &[Codebook]) -> KeptRow {
    KeptRow {
        ordinal,
        subject: batch.subjects[row],
        coordinate: batch.coordinates[row],
        waited,
        cells: batch.columns.iter().zip(books).map(|(c, book)| book.canonical(c[row]).to_owned()).collect(),
    }
}
