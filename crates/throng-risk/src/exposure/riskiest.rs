//! Which records are most at risk, and what singles them out (docs/methods.md §3; [ELL]).

use super::walk::{Scope, Walk};
use crate::counting::{AttributeSet, CpuCounter, RowSet};
use std::time::Instant;

/// Attributes of a combination at most: whoever knows more of a person needs no list.
const LARGEST: usize = 5;

/// Words of 64 rows that are scored at once.
const WORDS: usize = 1 << 12;

/// Minimal infrequent combinations of the records, and the records that they put at risk most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Riskiest {
    /// The records of highest score, highest first, of equal ones the earlier record first. Only records with a
    /// combination are among them.
    pub rows: Vec<(u32, f64)>,
    /// Attributes of a combination, as far as was looked: M of the score.
    pub largest: usize,
    /// Combinations of all sizes up to five, or of all attributes, were looked at.
    pub complete: bool,
    /// Records with a combination.
    pub at_risk: u64,
    /// Every set that is minimal for some record, smaller ones first, and those records.
    sets: Vec<(AttributeSet, RowSet)>,
}

impl Riskiest {
    /// The minimal infrequent combinations of a record, smaller ones first.
    pub fn combinations(&self, row: u32) -> impl Iterator<Item = &AttributeSet> {
        self.sets.iter().filter(move |(_, rows)| rows.contains(row)).map(|(set, _)| set)
    }
}

/// Looks for the `most` records of highest score. `qids` as for [`reach`](super::reach).
///
/// Time: a walk through the sets. Memory: that of the walk, and an eighth of a byte more for each of its visits at most.
pub fn riskiest(
    counter: &CpuCounter<'_>,
    searched: &AttributeSet,
    qids: Option<&[AttributeSet]>,
    k: u32,
    most: usize,
    until: Option<Instant>,
    progress: &dyn Fn(usize, usize),
) -> Riskiest {
    let mut walk = Walk::new(Scope { counter, qids, k, until, progress }, searched);
    let mut sets: Vec<(AttributeSet, RowSet)> = Vec::new();
    let sizes = LARGEST.min(searched.len());
    while walk.size < sizes {
        let known = sets.len();
        if !walk.step(&mut |set, minimal| sets.push((set.clone(), minimal.clone()))) {
            // A size is looked at as a whole or not at all.
            sets.truncate(known);
            break;
        }
    }
    let weights: Vec<f64> = sets.iter().map(|(set, _)| weight(set.len(), searched.len(), walk.size)).collect();
    let mut rows: Vec<(u32, f64)> = Vec::new();
    let mut at_risk = 0;
    let words = sets.first().map_or(0, |(_, rows)| rows.words());
    let mut scores = vec![0.0; 64 * WORDS];
    for from in (0..words).step_by(WORDS) {
        let some = from..words.min(from + WORDS);
        let first = 64 * from as u32;
        for ((_, rows), weight) in sets.iter().zip(&weights) {
            rows.within(some.clone()).for_each(|row| scores[(row - first) as usize] += weight);
        }
        let found = (first..).zip(&mut scores).map(|(row, score)| (row, std::mem::take(score)));
        let before = rows.len();
        rows.extend(found.filter(|(_, score)| *score > 0.0));
        at_risk += (rows.len() - before) as u64;
        rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        rows.truncate(most);
    }
    Riskiest { rows, largest: walk.size, complete: walk.size == sizes, at_risk, sets }
}

/// What a combination of `size` of `attributes` adds to the score of a record, where combinations of up to `largest` were
/// looked at: `Π (attributes − i)` for i from `size` to `largest`, and to `attributes − 1` at most. At least 1; the fewer
/// attributes single a record out, the more.
fn weight(size: usize, attributes: usize, largest: usize) -> f64 {
    let last = largest.min(attributes.saturating_sub(1));
    (size..=last).map(|i| (attributes - i) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::weight;

    #[test]
    fn weights_grow_as_combinations_shrink() {
        // Π (6 − i) for i from the size to 3: 5·4·3, 4·3, 3.
        assert_eq!([1, 2, 3].map(|size| weight(size, 6, 3)), [60.0, 12.0, 3.0]);
        // All attributes together are one combination.
        assert_eq!([1, 2, 3].map(|size| weight(size, 3, 3)), [2.0, 1.0, 1.0]);
    }
}
