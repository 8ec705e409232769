//! Fragments of one group and the labels of their cells.

use super::runs::{KeyNumbers, RowBitSet, TupleRuns};

/// Separates a printed cell from the label of the same coverage.
const PRINTED: u128 = 0x5bd1_e995_9e37_79b9_7f4a_7c15_f39c_c060;

/// Fragments of one group of a batch.
pub struct GroupFragments {
    /// Label numbers from 1, different between columns.
    numbers: Vec<KeyNumbers<u128>>,
    /// Labels above, fine to coarse; none until the cell itself has been printed.
    above: Vec<Option<Vec<u32>>>,
    runs: TupleRuns,
    misfit: bool,
}

impl GroupFragments {
    /// Creates an empty group with `width` cells per fragment.
    #[must_use]
    pub fn new(width: usize) -> Self {
        let numbers = (0..width).map(|_| KeyNumbers::default()).collect();
        let runs = TupleRuns { width, carried: vec![0], ..TupleRuns::default() };
        Self { numbers, above: vec![None], runs, misfit: false }
    }

    /// Adds a fragment to each of `rows`, at most one per row. `cells` are coverage digests by column; `None` is
    /// suppressed. `above` returns the coverages above a cell, fine to coarse, without the root.
    pub fn add<A: IntoIterator<Item = u128>>(
        &mut self,
        cells: &[Option<u128>],
        rows: &[u32],
        above: impl Fn(usize) -> A,
    ) {
        if cells.len() != self.runs.width {
            self.misfit = true;
            return;
        }
        for (column, cell) in cells.iter().enumerate() {
            let number = cell.map_or(0, |digest| {
                let number = self.number(column, digest.wrapping_add(PRINTED));
                if self.above[number as usize].is_none() {
                    let labels = std::iter::once(digest).chain(above(column));
                    let labels = labels.map(|digest| self.number(column, digest)).collect();
                    self.above[number as usize] = Some(labels);
                }
                self.runs.carried[number as usize] += rows.len() as u32;
                number
            });
            self.runs.cells.push(number);
        }
        self.runs.rows.extend_from_slice(rows);
        self.runs.ends.push(self.runs.rows.len());
    }

    fn number(&mut self, column: usize, digest: u128) -> u32 {
        let next = self.above.len() as u32;
        let number = *self.numbers[column].entry(digest).or_insert(next);
        if number == next {
            self.above.push(None);
            self.runs.carried.push(0);
        }
        number
    }

    /// Rows with a fragment; none if one has two, or is not in the batch.
    pub(super) fn taken(&self, batch: usize) -> Option<RowBitSet> {
        let mut taken = RowBitSet::none(batch);
        let sound = !self.misfit && self.runs.rows.iter().all(|&row| (row as usize) < batch && taken.insert(row));
        sound.then_some(taken)
    }

    /// Rows below each label.
    pub(super) fn totals(&self) -> Vec<u32> {
        let mut totals = self.runs.carried.clone();
        for (&own, above) in self.runs.carried.iter().zip(&self.above) {
            for &label in above.iter().flatten() {
                totals[label as usize] += own;
            }
        }
        totals
    }

    /// One column per depth of the labels with at least `floor` rows. Of labels with equal rows, only the finest is
    /// kept.
    pub(super) fn by_depth(&self, totals: &[u32], floor: usize) -> TupleRuns {
        // Kept labels from each one upwards, coarse to fine.
        let mut kept: Vec<Vec<u32>> = vec![Vec::new(); totals.len()];
        let mut equalled = vec![false; totals.len()];
        let frequent = |label: u32| totals[label as usize] as usize >= floor;
        for (number, above) in (0..).zip(&self.above) {
            let Some(above) = above else { continue };
            let path: Vec<u32> = std::iter::once(number).chain(above.iter().copied()).collect();
            for step in path.windows(2) {
                equalled[step[1] as usize] |= totals[step[0] as usize] == totals[step[1] as usize];
            }
            kept[number as usize] = path.into_iter().rev().filter(|&label| frequent(label)).collect();
        }
        for path in &mut kept {
            path.retain(|&label| !equalled[label as usize]);
        }
        let mut depths = vec![0; self.runs.width];
        for tuple in self.runs.cells.chunks(self.runs.width.max(1)) {
            for (depth, &cell) in depths.iter_mut().zip(tuple) {
                *depth = kept[cell as usize].len().max(*depth);
            }
        }
        let width: usize = depths.iter().sum();
        let mut cells = Vec::with_capacity(width * self.runs.ends.len());
        for tuple in self.runs.cells.chunks(self.runs.width.max(1)) {
            for (&depth, &cell) in depths.iter().zip(tuple) {
                let path = &kept[cell as usize];
                cells.extend_from_slice(path);
                cells.resize(cells.len() + depth - path.len(), 0);
            }
        }
        TupleRuns { width, cells, ends: self.runs.ends.clone(), rows: self.runs.rows.clone(), carried: totals.to_vec() }
    }
}
