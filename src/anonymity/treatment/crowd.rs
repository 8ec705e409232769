//! Counting distinct subjects by equivalence class, up to k and no further.

use crate::anonymity::numbering::Numbering;
use throng_core::values::holders::Holders;
pub use throng_core::values::subject::NO_SUBJECT;

/// Equivalence classes of some rows with their distinct subjects, saturating at k. Their keys are uniform already: sums of keyed
/// digests.
pub struct CrowdTable {
    k: usize,
    rows: usize,
    numbers: Numbering<u128>,
    /// By class: its key, how many subjects are known, and room for k of them.
    keys: Vec<u128>,
    counts: Vec<u32>,
    subjects: Vec<u64>,
}

impl CrowdTable {
    /// A table for classes that need `k` subjects, among up to `rows` rows.
    pub fn new(k: usize, rows: usize) -> Self {
        let numbers = Numbering::default();
        Self { k, rows, numbers, keys: Vec::new(), counts: Vec::new(), subjects: Vec::new() }
    }

    /// Forgets all classes, in constant time.
    pub fn restart(&mut self) {
        self.numbers.restart(self.rows);
        self.keys.clear();
        self.counts.clear();
        self.subjects.clear();
    }

    /// Adds a row of `class`; returns the number of the class.
    #[inline]
    pub fn add(&mut self, class: u128, subject: u64) -> u32 {
        let (number, is_new) = self.numbers.number(class, class as usize);
        if is_new {
            self.keys.push(class);
            self.counts.push(0);
            self.subjects.resize(self.subjects.len() + self.k, 0);
        }
        self.join(number as usize, subject);
        number
    }

    #[inline]
    fn join(&mut self, class: usize, subject: u64) {
        let (k, count) = (self.k, self.counts[class] as usize);
        if count < k && subject != NO_SUBJECT {
            let known = &mut self.subjects[class * k..(class + 1) * k];
            if !known[..count].contains(&subject) {
                known[count] = subject;
                self.counts[class] += 1;
            }
        }
    }

    /// Adds the people whom classes have beside these rows. To be called when all rows are in.
    pub fn complete(&mut self, beside: &Holders) {
        for class in 0..self.counts.len() {
            for &subject in beside.of(self.keys[class]) {
                self.join(class, subject);
            }
        }
    }

    /// Whether a class has its crowd.
    #[inline]
    pub fn supported(&self, class: u32) -> bool {
        self.counts[class as usize] as usize >= self.k
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn counts_distinct_subjects_as_sets_do(
            k in 2usize..6,
            rounds in prop::collection::vec(prop::collection::vec((0u128..6, 0u64..8), 0..60), 1..4),
            beside in prop::collection::btree_map(0u128..6, prop::collection::btree_set(1u64..8, 0..8), 0..6),
        ) {
            let mut holders = Holders::default();
            beside.iter().for_each(|(class, people)| holders.add(*class, &people.iter().copied().collect::<Vec<_>>()));
            let mut table = CrowdTable::new(k, 60);
            for rows in rounds {
                table.restart();
                let classes: Vec<u32> = rows.iter().map(|(key, s)| table.add(*key, *s)).collect();
                let of_rows = |key: &u128| -> BTreeSet<u64> {
                    rows.iter().filter(|(q, s)| q == key && *s != NO_SUBJECT).map(|(_, s)| *s).collect()
                };
                for ((key, _), class) in rows.iter().zip(&classes) {
                    prop_assert_eq!(table.supported(*class), of_rows(key).len() >= k);
                }
                table.complete(&holders);
                for ((key, _), class) in rows.iter().zip(&classes) {
                    let here = of_rows(key);
                    let all = beside.get(key).map_or(here.len(), |beside| beside.union(&here).count());
                    prop_assert_eq!(table.supported(*class), all >= k);
                }
            }
        }
    }
}
