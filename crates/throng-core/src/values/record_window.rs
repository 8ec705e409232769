//! Sliding window of codes for planning.

use crate::values::code_batch::CodeBatch;
use crate::values::codebook::Code;
use std::collections::VecDeque;

/// Ring buffers of the last `capacity` records, oldest first.
#[derive(Clone, Debug)]
pub struct RecordWindow {
    capacity: usize,
    columns: Vec<VecDeque<Code>>,
    subjects: VecDeque<u64>,
}

impl RecordWindow {
    /// Creates an empty window.
    pub fn new(width: usize, capacity: usize) -> Self {
        assert!(capacity > 0, "a window of at least one record");
        Self { capacity, columns: vec![VecDeque::new(); width], subjects: VecDeque::new() }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.subjects.len()
    }

    /// Returns the maximum number of rows.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Adds a batch. Returns the number of evicted earlier records.
    pub fn push(&mut self, batch: &CodeBatch) -> usize {
        assert_eq!(batch.columns.len(), self.columns.len(), "batches of one schema");
        let skip = batch.rows().saturating_sub(self.capacity);
        let left = (self.rows() + batch.rows() - skip).saturating_sub(self.capacity);
        self.evict_oldest(left);
        for (ring, codes) in self.columns.iter_mut().zip(&batch.columns) {
            ring.extend(&codes[skip..]);
        }
        self.subjects.extend(&batch.subjects[skip..]);
        left
    }

    /// Evicts the oldest records.
    pub fn evict_oldest(&mut self, rows: usize) {
        let rows = rows.min(self.rows());
        for ring in &mut self.columns {
            ring.drain(..rows);
        }
        self.subjects.drain(..rows);
    }

    /// Returns the bytes in use.
    pub fn bytes(&self) -> usize {
        let cells: usize = self.columns.iter().map(VecDeque::capacity).sum();
        cells * size_of::<Code>() + self.subjects.capacity() * size_of::<u64>()
    }

    /// Returns a column as two slices.
    pub fn column(&self, column: usize) -> (&[Code], &[Code]) {
        self.columns[column].as_slices()
    }

    /// Returns the subjects as two slices.
    pub fn subjects(&self) -> (&[u64], &[u64]) {
        self.subjects.as_slices()
    }

    /// Returns the codes of a column.
    pub fn codes(&self, column: usize) -> impl Iterator<Item = Code> + '_ {
        self.columns[column].iter().copied()
    }

    /// Returns all columns of `count` records after the `skip` oldest.
    pub fn columns(&self, skip: usize, count: usize) -> Vec<Vec<Code>> {
        let part = |column| self.codes(column).skip(skip).take(count).collect();
        (0..self.columns.len()).map(part).collect()
    }

    /// Returns the mutable codes of a column.
    pub fn codes_mut(&mut self, column: usize) -> &mut [Code] {
        self.columns[column].make_contiguous()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::raw_batch::RecordPosition;
    use proptest::prelude::*;

    fn batch(from: u32, rows: u32) -> CodeBatch {
        let codes: Vec<Code> = (from..from + rows).collect();
        let coordinates = codes
            .iter()
            .map(|&c| RecordPosition { topic: 0, partition: 0, offset: i64::from(c), element: 0 })
            .collect();
        let subjects = codes.iter().map(|&c| u64::from(c)).collect();
        CodeBatch { columns: vec![codes.clone(), codes], subjects, coordinates }
    }

    proptest! {
        #[test]
        fn record_window_equals_a_queue(capacity in 1_usize..20, sizes in proptest::collection::vec(0_u32..30, 0..12)) {
            let mut window = RecordWindow::new(2, capacity);
            let mut twin: VecDeque<u32> = VecDeque::new();
            let mut next = 0;
            for rows in sizes {
                let before: Vec<u32> = twin.iter().copied().collect();
                let left = window.push(&batch(next, rows));
                twin.extend(next..next + rows);
                next += rows;
                while twin.len() > capacity {
                    twin.pop_front();
                }
                prop_assert_eq!(left, before.iter().filter(|c| !twin.contains(c)).count());
                let codes: Vec<u32> = window.codes(1).collect();
                prop_assert_eq!(&codes, &twin.iter().copied().collect::<Vec<_>>());
                let (older, newer) = window.subjects();
                prop_assert_eq!(older.iter().chain(newer).copied().collect::<Vec<_>>(), codes.iter().map(|&c| u64::from(c)).collect::<Vec<_>>());
                prop_assert_eq!(window.columns(1, 3)[1].clone(), codes.iter().copied().skip(1).take(3).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn eviction_removes_the_oldest_records() {
        let mut window = RecordWindow::new(2, 4);
        window.push(&batch(0, 6));
        window.evict_oldest(3);
        assert_eq!((window.rows(), window.codes(1).collect::<Vec<_>>()), (1, vec![5]));
        assert_eq!(window.push(&batch(6, 2)), 0);
        assert_eq!(window.codes(0).collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(window.push(&batch(8, 3)), 2);
        assert_eq!(window.codes(0).collect::<Vec<_>>(), [7, 8, 9, 10]);
        window.evict_oldest(9);
        assert_eq!(window.rows(), 0);
        window.push(&batch(11, 1));
        assert_eq!(window.subjects().0.len() + window.subjects().1.len(), 1);
    }
}
