//! Counting distinct subjects by equivalence class, up to k and no further: in this batch, and with what has been released.

pub use crate::records::subject::NO_SUBJECT;

/// The crowd that every class needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Distinct subjects in this batch and inside the support window together.
    pub k: usize,
    /// Distinct subjects in this batch, for readers who see when a batch arrives; at most `k`. 0: the window is enough.
    pub batch: usize,
}

impl Floor {
    /// Whether `here` subjects of the batch are a crowd, `all` with those of the window.
    #[must_use]
    pub fn is_met(self, here: usize, all: usize) -> bool {
        here >= self.batch && all >= self.k
    }

    /// Whether earlier releases can make a crowd of what is none by itself.
    #[must_use]
    pub fn asks_the_window(self) -> bool {
        self.batch < self.k
    }
}

/// Equivalence classes of some rows with their distinct subjects, saturating at k.
///
/// An open-addressing table over class keys that are already uniform (sums of keyed digests), reused from one
/// lattice node to the next without being cleared: a slot counts only if it carries the current epoch.
pub struct CrowdTable {
    floor: Floor,
    mask: usize,
    epoch: u32,
    slots: Vec<Slot>,
    /// By class: its key, how many subjects are known, and room for k of them.
    keys: Vec<u128>,
    counts: Vec<u32>,
    /// By class: how many of them are of this batch.
    here: Vec<u32>,
    subjects: Vec<u64>,
    /// Room for the other subjects of one class.
    others: Vec<u64>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    key: u128,
    epoch: u32,
    class: u32,
}

impl CrowdTable {
    /// A table for classes that need `floor`, among up to `rows` rows.
    #[must_use]
    pub fn new(floor: Floor, rows: usize) -> Self {
        let capacity = (rows.max(8) * 2).next_power_of_two();
        Self {
            floor,
            mask: capacity - 1,
            epoch: 0,
            slots: vec![Slot::default(); capacity],
            keys: Vec::new(),
            counts: Vec::new(),
            here: Vec::new(),
            subjects: Vec::new(),
            others: vec![0; floor.k],
        }
    }

    /// Forgets all classes, in constant time.
    pub fn restart(&mut self) {
        self.epoch += 1;
        self.keys.clear();
        self.counts.clear();
        self.here.clear();
        self.subjects.clear();
    }

    /// Adds a row of `class`; returns the number of the class.
    #[inline]
    pub fn add(&mut self, class: u128, subject: u64) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "the low bits of a uniform key are its hash")]
        let mut at = class as usize & self.mask;
        let number = loop {
            let slot = self.slots[at];
            if slot.epoch != self.epoch {
                break self.open(at, class);
            }
            if slot.key == class {
                break slot.class;
            }
            at = (at + 1) & self.mask;
        };
        self.join(number as usize, subject);
        number
    }

    fn open(&mut self, at: usize, class: u128) -> u32 {
        let number = u32::try_from(self.counts.len()).expect("fewer classes than rows, fewer rows than 2^32");
        self.slots[at] = Slot { key: class, epoch: self.epoch, class: number };
        self.keys.push(class);
        self.counts.push(0);
        self.subjects.resize(self.subjects.len() + self.floor.k, 0);
        number
    }

    #[inline]
    fn join(&mut self, class: usize, subject: u64) {
        let (k, count) = (self.floor.k, self.counts[class] as usize);
        if count < k && subject != NO_SUBJECT {
            let known = &mut self.subjects[class * k..(class + 1) * k];
            if !known[..count].contains(&subject) {
                known[count] = subject;
                self.counts[class] += 1;
            }
        }
    }

    /// Adds the subjects that classes have without these rows, where they are still below k. `others` writes distinct ones of
    /// a class to the front of its slice, as many as fit, and gives their number, such as
    /// [`LedgerAt::fresh_subjects`](crate::ledger::at::LedgerAt::fresh_subjects). To be called when all rows are in: the
    /// lookups, far apart in memory, then wait for each other no longer, and those of large classes are not needed. None is
    /// where the batch alone must have the crowd.
    pub fn complete(&mut self, others: impl Fn(u128, &mut [u64]) -> usize) {
        self.here.clone_from(&self.counts);
        if !self.floor.asks_the_window() {
            return;
        }
        for class in 0..self.counts.len() {
            if (self.counts[class] as usize) < self.floor.k {
                let known = others(self.keys[class], &mut self.others);
                for at in 0..known {
                    self.join(class, self.others[at]);
                }
            }
        }
    }

    /// Number of classes since the last [`restart`](Self::restart).
    #[must_use]
    pub fn classes(&self) -> usize {
        self.counts.len()
    }

    /// Distinct subjects of a class, at most k.
    #[must_use]
    pub fn count(&self, class: u32) -> usize {
        self.counts[class as usize] as usize
    }

    /// Whether a completed class has its crowd.
    #[inline]
    #[must_use]
    pub fn supported(&self, class: u32) -> bool {
        self.floor.is_met(self.here[class as usize] as usize, self.counts[class as usize] as usize)
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
            (k, batch) in (2usize..6, 0usize..6).prop_map(|(k, batch)| (k, batch.min(k))),
            rounds in prop::collection::vec(prop::collection::vec((0u128..6, 0u64..8), 0..60), 1..4),
            past in prop::collection::btree_map(0u128..6, prop::collection::btree_set(1u64..8, 0..8), 0..6),
        ) {
            let earlier = |class: u128, out: &mut [u64]| {
                past.get(&class).into_iter().flatten().zip(out).map(|(s, o)| *o = *s).count()
            };
            let mut table = CrowdTable::new(Floor { k, batch }, 60);
            for rows in rounds {
                table.restart();
                let classes: Vec<u32> = rows.iter().map(|(key, s)| table.add(*key, *s)).collect();
                table.complete(earlier);
                for ((key, _), class) in rows.iter().zip(classes) {
                    let here: BTreeSet<u64> =
                        rows.iter().filter(|(q, s)| q == key && *s != NO_SUBJECT).map(|(_, s)| *s).collect();
                    let all = past.get(key).map_or(here.len(), |past| past.union(&here).count());
                    prop_assert_eq!(table.supported(class), all >= k && here.len() >= batch);
                }
            }
        }
    }
}
