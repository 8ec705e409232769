//! Counts distinct subjects per equivalence class, up to k.

use crate::numbering::KeyNumbering;
pub use crate::values::subject_digest::NO_SUBJECT;
use crate::values::subjects_by_value::SubjectsByValue;

/// Equivalence classes with their distinct subjects, saturating at k; keys must be uniform.
pub struct SubjectCountTable {
    k: usize,
    rows: usize,
    numbers: KeyNumbering<u128>,
    /// By class; k slots for subjects.
    keys: Vec<u128>,
    counts: Vec<u32>,
    subjects: Vec<u64>,
}

impl SubjectCountTable {
    /// Creates a table for `k` subjects per class and at most `rows` rows.
    pub fn new(k: usize, rows: usize) -> Self {
        let numbers = KeyNumbering::default();
        Self { k, rows, numbers, keys: Vec::new(), counts: Vec::new(), subjects: Vec::new() }
    }

    /// Removes all classes, in constant time.
    pub fn restart(&mut self) {
        self.numbers.restart(self.rows);
        self.keys.clear();
        self.counts.clear();
        self.subjects.clear();
    }

    /// Adds a row and returns the number of its class.
    #[inline]
    pub fn add(&mut self, class: u128, subject: u64) -> u32 {
        let (number, is_new) = self.numbers.number(class, class as usize);
        if is_new {
            self.keys.push(class);
            self.counts.push(0);
            self.subjects.resize(self.subjects.len() + self.k, 0);
        }
        self.add_subject(number as usize, subject);
        number
    }

    #[inline]
    fn add_subject(&mut self, class: usize, subject: u64) {
        let (k, count) = (self.k, self.counts[class] as usize);
        if count < k && subject != NO_SUBJECT {
            let known = &mut self.subjects[class * k..(class + 1) * k];
            if !known[..count].contains(&subject) {
                known[count] = subject;
                self.counts[class] += 1;
            }
        }
    }

    /// Adds subjects outside these rows; must follow all calls of [`Self::add`].
    pub fn add_holders(&mut self, beside: &SubjectsByValue) {
        for class in 0..self.counts.len() {
            for &subject in beside.subjects_with(self.keys[class]) {
                self.add_subject(class, subject);
            }
        }
    }

    /// Returns true if a class has at least k distinct subjects.
    #[inline]
    pub fn reaches_k(&self, class: u32) -> bool {
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
        fn subject_counts_match_set_sizes(
            k in 2usize..6,
            rounds in prop::collection::vec(prop::collection::vec((0u128..6, 0u64..8), 0..60), 1..4),
            beside in prop::collection::btree_map(0u128..6, prop::collection::btree_set(1u64..8, 0..8), 0..6),
        ) {
            let mut holders = SubjectsByValue::default();
            beside.iter().for_each(|(class, people)| holders.add(*class, &people.iter().copied().collect::<Vec<_>>()));
            let mut table = SubjectCountTable::new(k, 60);
            for rows in rounds {
                table.restart();
                let classes: Vec<u32> = rows.iter().map(|(key, s)| table.add(*key, *s)).collect();
                let of_rows = |key: &u128| -> BTreeSet<u64> {
                    rows.iter().filter(|(q, s)| q == key && *s != NO_SUBJECT).map(|(_, s)| *s).collect()
                };
                for ((key, _), class) in rows.iter().zip(&classes) {
                    prop_assert_eq!(table.reaches_k(*class), of_rows(key).len() >= k);
                }
                table.add_holders(&holders);
                for ((key, _), class) in rows.iter().zip(&classes) {
                    let here = of_rows(key);
                    let all = beside.get(key).map_or(here.len(), |beside| beside.union(&here).count());
                    prop_assert_eq!(table.reaches_k(*class), all >= k);
                }
            }
        }
    }
}
