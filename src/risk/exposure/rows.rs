//! Sets of rows, a bit each.

use crate::counting::CountedTable;

/// Rows of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows(Vec<u64>);

impl Rows {
    /// No row of `count`.
    pub fn none(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    /// These rows of `count`.
    pub fn of(rows: &[u32], count: usize) -> Self {
        let mut set = Self::none(count);
        for &row in rows {
            set.0[row as usize / 64] |= 1 << (row % 64);
        }
        set
    }

    /// Adds the rows of another set of the same table.
    pub fn add(&mut self, more: &Self) {
        self.0.iter_mut().zip(&more.0).for_each(|(word, more)| *word |= more);
    }

    /// Takes the rows of another set of the same table out.
    pub fn remove(&mut self, less: &Self) {
        self.0.iter_mut().zip(&less.0).for_each(|(word, less)| *word &= !less);
    }

    /// Is the row among them?
    pub fn contains(&self, row: u32) -> bool {
        self.0[row as usize / 64] >> (row % 64) & 1 == 1
    }

    /// The rows, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().zip(0_u32..).flat_map(|(&word, at)| {
            let rest = std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)));
            rest.take_while(|left| *left != 0).map(move |left| at * 64 + left.trailing_zeros())
        })
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Distinct subjects of the rows, or the rows where the table has none.
    pub fn people(&self, table: &CountedTable) -> u64 {
        let Some(subjects) = table.subject_numbers() else { return self.len() };
        let mut seen = Self::none(table.support());
        for (row, &subject) in subjects.iter().enumerate() {
            if self.0[row / 64] >> (row % 64) & 1 == 1 {
                seen.0[subject as usize / 64] |= 1 << (subject % 64);
            }
        }
        seen.len()
    }
}
