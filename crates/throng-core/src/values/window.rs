//! The sliding window: the last records, as codes, from which plans are made.

use crate::values::codebook::Code;
use crate::values::table::Batch;
use std::collections::VecDeque;

/// The last `capacity` records in rings of codes, oldest first. Memory: 4 bytes a cell and 8 a record.
#[derive(Clone, Debug)]
pub struct Window {
    capacity: usize,
    columns: Vec<VecDeque<Code>>,
    subjects: VecDeque<u64>,
}

impl Window {
    /// An empty window of at least one record.
    pub fn new(width: usize, capacity: usize) -> Self {
        assert!(capacity > 0, "a window of at least one record");
        Self { capacity, columns: vec![VecDeque::new(); width], subjects: VecDeque::new() }
    }

    /// Rows that it holds.
    pub fn rows(&self) -> usize {
        self.subjects.len()
    }

    /// Rows that it holds at most.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Adds the records of a batch; the oldest make room. Returns how many of the window's earlier records left.
    pub fn push(&mut self, batch: &Batch) -> usize {
        assert_eq!(batch.columns.len(), self.columns.len(), "batches of one schema");
        let skip = batch.rows().saturating_sub(self.capacity);
        let left = (self.rows() + batch.rows() - skip).saturating_sub(self.capacity);
        self.forget(left);
        for (ring, codes) in self.columns.iter_mut().zip(&batch.columns) {
            ring.extend(&codes[skip..]);
        }
        self.subjects.extend(&batch.subjects[skip..]);
        left
    }

    /// Forgets the oldest records.
    pub fn forget(&mut self, rows: usize) {
        let rows = rows.min(self.rows());
        for ring in &mut self.columns {
            ring.drain(..rows);
        }
        self.subjects.drain(..rows);
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        let cells: usize = self.columns.iter().map(VecDeque::capacity).sum();
        cells * size_of::<Code>() + self.subjects.capacity() * size_of::<u64>()
    }

    /// The codes of a column, oldest first, as two runs.
    pub fn column(&self, column: usize) -> (&[Code], &[Code]) {
        self.columns[column].as_slices()
    }

    /// The subjects, oldest first, as two runs.
    pub fn subjects(&self) -> (&[u64], &[u64]) {
        self.subjects.as_slices()
    }

    /// The codes of a column, oldest first.
    pub fn codes(&self, column: usize) -> impl Iterator<Item = Code> + '_ {
        self.columns[column].iter().copied()
    }

    /// Every column of `count` records from the `skip`-th oldest on.
    pub fn columns(&self, skip: usize, count: usize) -> Vec<Vec<Code>> {
        let part = |column| self.codes(column).skip(skip).take(count).collect();
        (0..self.columns.len()).map(part).collect()
    }

    /// The codes of a column, in no order.
    pub fn codes_mut(&mut self, column: usize) -> &mut [Code] {
        self.columns[column].make_contiguous()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::raw::Coordinate;
    use proptest::prelude::*;

    fn batch(from: u32, rows: u32) -> Batch {
        let codes: Vec<Code> = (from..from + rows).collect();
        let coordinates =
            codes.iter().map(|&c| Coordinate { topic: 0, partition: 0, offset: i64::from(c), element: 0 }).collect();
        let subjects = codes.iter().map(|&c| u64::from(c)).collect();
        Batch { columns: vec![codes.clone(), codes], subjects, coordinates }
    }

    proptest! {
        #[test]
        fn agrees_with_a_queue(capacity in 1_usize..20, sizes in proptest::collection::vec(0_u32..30, 0..12)) {
            let mut window = Window::new(2, capacity);
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
    fn what_is_forgotten_is_the_oldest() {
        let mut window = Window::new(2, 4);
        window.push(&batch(0, 6));
        window.forget(3);
        assert_eq!((window.rows(), window.codes(1).collect::<Vec<_>>()), (1, vec![5]));
        assert_eq!(window.push(&batch(6, 2)), 0);
        assert_eq!(window.codes(0).collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(window.push(&batch(8, 3)), 2);
        assert_eq!(window.codes(0).collect::<Vec<_>>(), [7, 8, 9, 10]);
        window.forget(9);
        assert_eq!(window.rows(), 0);
        window.push(&batch(11, 1));
        assert_eq!(window.subjects().0.len() + window.subjects().1.len(), 1);
    }
}
