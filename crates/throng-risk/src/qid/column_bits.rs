//! Column sets of fixed size.

use crate::counting::cpu::FoldBuildHasher;
use hashbrown::{HashMap, HashSet};

/// Column numbers below `64 · W`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ColumnBits<const W: usize>([u64; W]);

pub(super) type ColumnBitsMap<const W: usize, V> = HashMap<ColumnBits<W>, V, FoldBuildHasher>;
pub(super) type ColumnBitsSet<const W: usize> = HashSet<ColumnBits<W>, FoldBuildHasher>;

impl<const W: usize> ColumnBits<W> {
    pub(super) const EMPTY: Self = Self([0; W]);

    pub(super) fn of(columns: impl IntoIterator<Item = usize>) -> Self {
        columns.into_iter().fold(Self::EMPTY, Self::with)
    }

    pub(super) fn with(mut self, column: usize) -> Self {
        self.0[column / 64] |= 1 << (column % 64);
        self
    }

    pub(super) fn without(mut self, column: usize) -> Self {
        self.0[column / 64] &= !(1 << (column % 64));
        self
    }

    pub(super) fn contains(&self, column: usize) -> bool {
        self.0[column / 64] >> (column % 64) & 1 == 1
    }

    pub(super) fn union(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
        self
    }

    pub(super) fn minus(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(word, less)| *word &= !less);
        self
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + use<W> {
        let words = self.0;
        (0..W).flat_map(move |at| {
            let rest = |word: &u64| Some(word & (word - 1)).filter(|w| *w != 0);
            std::iter::successors(Some(words[at]).filter(|w| *w != 0), rest)
                .map(move |word| at * 64 + word.trailing_zeros() as usize)
        })
    }

    pub(super) fn last(&self) -> Option<usize> {
        let at = self.0.iter().rposition(|w| *w != 0)?;
        Some(at * 64 + 63 - self.0[at].leading_zeros() as usize)
    }
}

/// Returns the sets one larger with all subsets in the level, which must be sorted by [`sort_by_columns`].
///
/// `None` above `most`, or if stopped.
pub(super) fn join_level<const W: usize>(
    level: &[ColumnBits<W>],
    most: usize,
    stop: &dyn Fn() -> bool,
) -> Option<Vec<ColumnBits<W>>> {
    let known: ColumnBitsSet<W> = level.iter().copied().collect();
    let split = |set: &ColumnBits<W>| set.last().map_or((*set, 0), |last| (set.without(last), last));
    let mut found = Vec::new();
    for family in level.chunk_by(|a, b| split(a).0 == split(b).0) {
        for (at, set) in family.iter().enumerate() {
            if found.len() > most || stop() {
                return None;
            }
            for other in &family[at + 1..] {
                let candidate = set.union(other);
                // The candidate without one of its last columns is in this family.
                let (_, x) = split(set);
                let (_, y) = split(other);
                if candidate.iter().all(|c| c == x || c == y || known.contains(&candidate.without(c))) {
                    found.push(candidate);
                }
            }
        }
    }
    Some(found)
}

pub(super) fn sort_by_columns<const W: usize>(sets: &mut [ColumnBits<W>]) {
    // The lowest differing bit decides.
    sets.sort_unstable_by(|a, b| {
        let differs = a.0.iter().zip(&b.0).find(|(x, y)| x != y);
        differs.map_or(std::cmp::Ordering::Equal, |(x, y)| {
            let lowest = (x ^ y).trailing_zeros();
            (y >> lowest & 1).cmp(&(x >> lowest & 1))
        })
    });
}
