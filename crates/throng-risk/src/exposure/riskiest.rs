//! Records of the highest risk (docs/internals/methods.md §3; \[ELL]).

use super::subset_walk::{SubsetWalk, SubsetWalkScope};
use crate::counting::{AttributeSet, CpuCounter, RowSet};
use std::time::Instant;

/// Most attributes of a combination.
const MAX_RISKY_SIZE: usize = 5;

const WORDS_PER_PASS: usize = 1 << 12;

/// Records of the highest risk and their minimal infrequent combinations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RiskiestRecords {
    /// Records with scores, highest first.
    pub rows: Vec<(u32, f64)>,
    /// Largest size of a checked combination.
    pub largest: usize,
    /// True if all sizes up to five were checked.
    pub complete: bool,
    /// Records with a combination.
    pub at_risk: u64,
    /// Sets that are minimal for some records, smaller ones first.
    sets: Vec<(AttributeSet, RowSet)>,
}

impl RiskiestRecords {
    /// Returns the combinations of a record, smaller ones first.
    pub fn combinations(&self, row: u32) -> impl Iterator<Item = &AttributeSet> {
        self.sets.iter().filter(move |(_, rows)| rows.contains(row)).map(|(set, _)| set)
    }
}

/// Finds the `most` records of the highest score. `qids` are as for [`subset_reach`](super::subset_reach).
pub fn riskiest_records(
    counter: &CpuCounter<'_>,
    searched: &AttributeSet,
    qids: Option<&[AttributeSet]>,
    k: u32,
    most: usize,
    until: Option<Instant>,
    progress: &dyn Fn(usize, usize),
) -> RiskiestRecords {
    let mut walk = SubsetWalk::new(SubsetWalkScope { counter, qids, k, until, progress }, searched);
    let mut sets: Vec<(AttributeSet, RowSet)> = Vec::new();
    let sizes = MAX_RISKY_SIZE.min(searched.len());
    while walk.size < sizes {
        let known = sets.len();
        if !walk.check_next_size(&mut |set, minimal| sets.push((set.clone(), minimal.clone()))) {
            // A size is used completely or not at all.
            sets.truncate(known);
            break;
        }
    }
    let weights: Vec<f64> =
        sets.iter().map(|(set, _)| combination_weight(set.len(), searched.len(), walk.size)).collect();
    let mut rows: Vec<(u32, f64)> = Vec::new();
    let mut at_risk = 0;
    let words = sets.first().map_or(0, |(_, rows)| rows.words());
    let mut scores = vec![0.0; 64 * WORDS_PER_PASS];
    for from in (0..words).step_by(WORDS_PER_PASS) {
        let some = from..words.min(from + WORDS_PER_PASS);
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
    RiskiestRecords { rows, largest: walk.size, complete: walk.size == sizes, at_risk, sets }
}

/// Returns `Π (attributes − i)` for i from `size` to `largest`, and to `attributes − 1` at most.
fn combination_weight(size: usize, attributes: usize, largest: usize) -> f64 {
    let last = largest.min(attributes.saturating_sub(1));
    (size..=last).map(|i| (attributes - i) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::combination_weight;

    #[test]
    fn smaller_combinations_have_larger_weights() {
        // 5·4·3, 4·3, 3.
        assert_eq!([1, 2, 3].map(|size| combination_weight(size, 6, 3)), [60.0, 12.0, 3.0]);
        assert_eq!([1, 2, 3].map(|size| combination_weight(size, 3, 3)), [2.0, 1.0, 1.0]);
    }
}
