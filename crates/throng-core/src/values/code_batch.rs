//! Batches of codes.

use crate::values::codebook::Code;
use crate::values::raw_batch::RecordPosition;

/// Encoded records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeBatch {
    /// Codes by attribute and row.
    pub columns: Vec<Vec<Code>>,
    /// Subject digests, or `NO_SUBJECT`.
    pub subjects: Vec<u64>,
    /// Record positions.
    pub coordinates: Vec<RecordPosition>,
}

fn keep<T>(list: &mut Vec<T>, marks: &[bool]) {
    let mut row = 0;
    list.retain(|_| {
        row += 1;
        marks[row - 1]
    });
}

impl CodeBatch {
    /// Creates an empty batch.
    pub fn new(width: usize) -> Self {
        Self { columns: vec![Vec::new(); width], ..Self::default() }
    }

    /// Returns the number of records.
    pub fn rows(&self) -> usize {
        self.subjects.len()
    }

    /// Removes unmarked rows.
    pub fn retain_rows(&mut self, marks: &[bool]) {
        assert_eq!(marks.len(), self.rows(), "one mark a row");
        for column in &mut self.columns {
            keep(column, marks);
        }
        keep(&mut self.subjects, marks);
        keep(&mut self.coordinates, marks);
    }

    /// Appends one row; both batches need the same codebooks.
    pub fn append_row(&mut self, other: &Self, row: usize) {
        assert_eq!(self.columns.len(), other.columns.len(), "one schema");
        for (column, from) in self.columns.iter_mut().zip(&other.columns) {
            column.push(from[row]);
        }
        self.subjects.push(other.subjects[row]);
        self.coordinates.push(other.coordinates[row]);
    }

    /// Appends all rows; both batches need the same codebooks.
    pub fn append(&mut self, other: &Self) {
        assert_eq!(self.columns.len(), other.columns.len(), "batches of one schema");
        for (column, more) in self.columns.iter_mut().zip(&other.columns) {
            column.extend_from_slice(more);
        }
        self.subjects.extend_from_slice(&other.subjects);
        self.coordinates.extend_from_slice(&other.coordinates);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(codes: &[Code]) -> CodeBatch {
        let coordinate = |&code: &Code| RecordPosition { topic: 0, partition: 0, offset: i64::from(code), element: 0 };
        CodeBatch {
            columns: vec![codes.to_vec(), codes.iter().map(|c| c + 100).collect()],
            subjects: codes.iter().map(|&c| u64::from(c)).collect(),
            coordinates: codes.iter().map(coordinate).collect(),
        }
    }

    #[test]
    fn appended_and_retained_rows_keep_all_columns() {
        let mut all = batch(&[1, 2, 3]);
        all.append(&batch(&[4, 5]));
        assert_eq!((all.rows(), all.clone()), (5, batch(&[1, 2, 3, 4, 5])));
        all.retain_rows(&[false, true, false, true, true]);
        assert_eq!(all, batch(&[2, 4, 5]));
    }
}
