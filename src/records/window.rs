//! The sliding window: the last records, as codes, from which plans are made.

use crate::records::codebook::Code;
use crate::records::table::Batch;

/// The last `capacity` records in rings of codes, oldest first. Memory: 4 bytes a cell and 8 a record.
#[derive(Clone, Debug)]
pub struct Window {
    capacity: usize,
    /// Where the oldest record is once the rings are full.
    start: usize,
    columns: Vec<Vec<Code>>,
    subjects: Vec<u64>,
}

impl Window {
    /// An empty window.
    ///
    /// # Panics
    /// When `capacity` is 0.
    #[must_use]
    pub fn new(width: usize, capacity: usize) -> Self {
        assert!(capacity > 0, "a window of at least one record");
        Self { capacity, start: 0, columns: vec![Vec::new(); width], subjects: Vec::new() }
    }

    /// Rows that it holds.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.subjects.len()
    }

    /// Rows that it holds at most.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Adds the records of a batch; the oldest make room. Returns how many of the window's earlier records left.
    ///
    /// # Panics
    /// When the batch has another width.
    pub fn push(&mut self, batch: &Batch) -> usize {
        assert_eq!(batch.columns.len(), self.columns.len(), "batches of one schema");
        let before = self.rows();
        let skip = batch.rows().saturating_sub(self.capacity);
        let added = batch.rows() - skip;
        let (start, capacity) = (self.start, self.capacity);
        for (ring, codes) in self.columns.iter_mut().zip(&batch.columns) {
            write(ring, start, capacity, &codes[skip..]);
        }
        self.start = write(&mut self.subjects, start, capacity, &batch.subjects[skip..]);
        (before + added).saturating_sub(self.capacity).min(before)
    }

    /// Forgets the oldest records.
    pub fn forget(&mut self, rows: usize) {
        let rows = rows.min(self.rows());
        for ring in &mut self.columns {
            ring.rotate_left(self.start);
            ring.drain(..rows);
        }
        self.subjects.rotate_left(self.start);
        self.subjects.drain(..rows);
        self.start = 0;
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let cells: usize = self.columns.iter().map(Vec::capacity).sum();
        cells * size_of::<Code>() + self.subjects.capacity() * size_of::<u64>()
    }

    /// The codes of a column, oldest first, as two runs.
    #[must_use]
    pub fn column(&self, column: usize) -> (&[Code], &[Code]) {
        let (newer, older) = self.columns[column].split_at(self.start);
        (older, newer)
    }

    /// The subjects, oldest first, as two runs.
    #[must_use]
    pub fn subjects(&self) -> (&[u64], &[u64]) {
        let (newer, older) = self.subjects.split_at(self.start);
        (older, newer)
    }

    /// The codes of a column, oldest first.
    pub fn codes(&self, column: usize) -> impl Iterator<Item = Code> + '_ {
        let (older, newer) = self.column(column);
        older.iter().chain(newer).copied()
    }

    /// Every column of `count` records from the `skip`-th oldest on.
    #[must_use]
    pub fn columns(&self, skip: usize, count: usize) -> Vec<Vec<Code>> {
        let part = |column| self.codes(column).skip(skip).take(count).collect();
        (0..self.columns.len()).map(part).collect()
    }

    /// Marks in `used` the codes that a column holds.
    ///
    /// # Panics
    /// When `used` is shorter than the codebook.
    pub fn mark_used(&self, column: usize, used: &mut [bool]) {
        for &code in &self.columns[column] {
            used[code as usize] = true;
        }
    }

    /// Replaces the codes of a column after its codebook was compacted; `map` is old → new.
    ///
    /// # Panics
    /// When a code is beyond `map`.
    pub fn remap(&mut self, column: usize, map: &[Code]) {
        for code in &mut self.columns[column] {
            *code = map[*code as usize];
        }
    }
}

/// Writes into a ring that grows to `capacity` and then wraps; returns where its oldest element is now.
fn write<T: Copy>(ring: &mut Vec<T>, start: usize, capacity: usize, new: &[T]) -> usize {
    let (grow, wrap) = new.split_at(new.len().min(capacity - ring.len()));
    ring.extend_from_slice(grow);
    let first = wrap.len().min(capacity - start);
    ring[start..start + first].copy_from_slice(&wrap[..first]);
    let rest = &wrap[first..];
    ring[..rest.len()].copy_from_slice(rest);
    if ring.len() < capacity { 0 } else { (start + wrap.len()) % capacity }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::raw::Coordinate;
    use proptest::prelude::*;
    use std::collections::VecDeque;

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
                let mut used = vec![false; next as usize];
                window.mark_used(0, &mut used);
                prop_assert!((0..next).all(|c| used[c as usize] == twin.contains(&c)));
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

    #[test]
    fn remapping_reaches_every_code() {
        let mut window = Window::new(2, 4);
        window.push(&batch(0, 6));
        window.remap(0, &[9, 9, 12, 13, 14, 15]);
        assert_eq!(window.codes(0).collect::<Vec<_>>(), [12, 13, 14, 15]);
        assert_eq!(window.codes(1).collect::<Vec<_>>(), [2, 3, 4, 5]);
    }
}
