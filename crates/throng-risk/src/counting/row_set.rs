//! Bitmap of rows.

use std::ops::Range;

/// Rows of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSet(Vec<u64>);

impl RowSet {
    /// Creates an empty set for `count` rows.
    pub fn none(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    /// Adds one row.
    pub fn insert(&mut self, row: u32) {
        self.0[row as usize / 64] |= 1 << (row % 64);
    }

    /// Adds another set.
    pub fn add(&mut self, more: &Self) {
        self.0.iter_mut().zip(&more.0).for_each(|(word, more)| *word |= more);
    }

    /// Removes another set.
    pub fn remove(&mut self, less: &Self) {
        self.0.iter_mut().zip(&less.0).for_each(|(word, less)| *word &= !less);
    }

    /// Tests membership.
    pub fn contains(&self, row: u32) -> bool {
        self.0[row as usize / 64] >> (row % 64) & 1 == 1
    }

    /// Rows in a range of words, ascending.
    pub fn within(&self, words: Range<usize>) -> impl Iterator<Item = u32> + '_ {
        let first = words.start as u32;
        self.0[words].iter().zip(first..).flat_map(|(&word, at)| {
            let rest = std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)));
            rest.take_while(|left| *left != 0).map(move |left| at * 64 + left.trailing_zeros())
        })
    }

    /// Number of 64-row words.
    pub fn words(&self) -> usize {
        self.0.len()
    }

    /// Returns true without rows.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}
