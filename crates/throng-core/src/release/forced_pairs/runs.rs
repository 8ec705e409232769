//! Tuples of one group and the rows that carry them.

#[derive(Default)]
pub(super) struct TupleRuns {
    pub(super) width: usize,
    /// `width` per run, different between columns; 0 is no cell.
    pub(super) cells: Vec<u32>,
    /// Ends of the runs in `rows`.
    pub(super) ends: Vec<usize>,
    pub(super) rows: Vec<u32>,
    /// Rows by cell number.
    pub(super) carried: Vec<u32>,
}

impl TupleRuns {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .enumerate()
            .map(|(run, (start, &end))| (&self.cells[run * self.width..(run + 1) * self.width], &self.rows[start..end]))
    }

    /// Maximum number of tuples from each column on.
    pub(super) fn remainders(&self) -> Vec<usize> {
        let mut distinct = vec![1usize; self.width + 1];
        let mut met = vec![false; self.carried.len()];
        for (place, &cell) in self.cells.iter().enumerate() {
            if cell != 0 && !std::mem::replace(&mut met[cell as usize], true) {
                distinct[place % self.width] += 1;
            }
        }
        distinct[self.width] = 1;
        for column in (0..self.width).rev() {
            distinct[column] = distinct[column].saturating_mul(distinct[column + 1]);
        }
        distinct
    }

    /// Rows of each cell with more than half of `most` rows, heaviest first.
    pub(super) fn heavy(&self, most: usize, batch: usize) -> Vec<RowBitSet> {
        let mut cells: Vec<usize> =
            (1..self.carried.len()).filter(|&cell| 2 * self.carried[cell] as usize > most).collect();
        cells.sort_by_key(|&cell| (std::cmp::Reverse(self.carried[cell]), cell));
        let mut found = vec![RowBitSet::none(batch); cells.len()];
        for (tuple, rows) in self.iter() {
            for (&cell, bits) in cells.iter().zip(&mut found) {
                if tuple.contains(&(cell as u32)) {
                    for &row in rows {
                        bits.insert(row);
                    }
                }
            }
        }
        found
    }

    /// Keeps cells with at least `floor` rows, merges equal tuples, and may reorder columns.
    pub(super) fn narrowed(&self, floor: usize) -> Self {
        let mut carried = vec![0];
        let mut renumbered = vec![0; self.carried.len()];
        for (&count, number) in self.carried.iter().zip(&mut renumbered).skip(1) {
            if count as usize >= floor {
                *number = carried.len() as u32;
                carried.push(count);
            }
        }
        // Many cells first, so that few different remainders follow.
        let mut kept: Vec<u32> = self.cells.iter().map(|&cell| renumbered[cell as usize]).collect();
        let mut order: Vec<(usize, usize)> = (0..self.width).map(|column| (0, column)).collect();
        let mut met = vec![false; carried.len()];
        for (place, &cell) in kept.iter().enumerate() {
            if cell != 0 && !std::mem::replace(&mut met[cell as usize], true) {
                order[place % self.width].0 += 1;
            }
        }
        order.sort_unstable_by_key(|&(cells, column)| (std::cmp::Reverse(cells), column));
        let mut unordered = vec![0; self.width];
        for tuple in kept.chunks_mut(self.width.max(1)) {
            unordered.copy_from_slice(tuple);
            for (own, &(_, column)) in tuple.iter_mut().zip(&order) {
                *own = unordered[column];
            }
        }
        let mut classes: KeyNumbers<&[u32]> = KeyNumbers::default();
        let mut cells = Vec::new();
        let mut ends: Vec<usize> = Vec::new();
        let mut class_of = Vec::with_capacity(self.ends.len());
        for (run, (_, rows)) in self.iter().enumerate() {
            let tuple = &kept[run * self.width..(run + 1) * self.width];
            if tuple.iter().all(|&cell| cell == 0) {
                class_of.push(None);
                continue;
            }
            let class = *classes.entry(tuple).or_insert(ends.len() as u32) as usize;
            if class == ends.len() {
                ends.push(0);
                cells.extend_from_slice(tuple);
            }
            ends[class] += rows.len();
            class_of.push(Some(class));
        }
        let mut next = 0;
        let mut place: Vec<usize> = Vec::with_capacity(ends.len());
        for end in &mut ends {
            place.push(next);
            next += *end;
            *end = next;
        }
        let mut rows = vec![0; next];
        for ((_, own), class) in self.iter().zip(class_of) {
            if let Some(class) = class {
                rows[place[class]..place[class] + own.len()].copy_from_slice(own);
                place[class] += own.len();
            }
        }
        Self { width: self.width, cells, ends, rows, carried }
    }
}

#[derive(Clone)]
pub(super) struct RowBitSet(Vec<u64>);

impl RowBitSet {
    pub(super) fn none(batch: usize) -> Self {
        Self(vec![0; batch.div_ceil(64)])
    }

    /// Returns true if the row was missing.
    pub(super) fn insert(&mut self, row: u32) -> bool {
        let word = &mut self.0[row as usize / 64];
        let bit = 1 << (row % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    pub(super) fn contains(&self, row: u32) -> bool {
        self.0[row as usize / 64] >> (row % 64) & 1 == 1
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }

    pub(super) fn or(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a | b).collect())
    }

    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }
}

pub(super) type KeyNumbers<K> = hashbrown::HashMap<K, u32>;
