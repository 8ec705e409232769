//! Supports of the classes of one set: in an array of cells, or by sorting.

use super::keys::Keys;
use super::narrow::{Narrow, with_codes};
use crate::counting::GroupCount;

/// Cells of the largest array of counters: 4 MiB of them. Arrays are ahead of all else up to here (docs/methods.md §6).
const CELLS: u64 = 1 << 20;

/// Scratch of one thread, reused from set to set.
#[derive(Default)]
pub(crate) struct ClassCounter {
    cells: Vec<u32>,
    last: Vec<u32>,
    sorted: Vec<u32>,
    spare: Vec<u32>,
    exposed: Vec<u32>,
}

impl ClassCounter {
    /// Counts the classes of `parent`, refined by one more column.
    pub(crate) fn count(
        &mut self,
        parent: &Keys,
        extension: Option<(&Narrow, usize)>,
        subjects: Option<&[u32]>,
        k: u32,
    ) -> GroupCount {
        let radix = extension.map_or(1, |(_, cardinality)| cardinality.max(1)) as u64;
        match parent.domain.checked_mul(radix).filter(|domain| *domain <= CELLS) {
            Some(domain) => match extension {
                None => self.in_cells(&parent.keys, domain, |key, ()| key, std::iter::repeat(()), subjects, k),
                Some((column, _)) => with_codes!(column, codes => {
                    let radix = radix as u32;
                    let key = |key: u32, code: &_| key * radix + u32::from(*code);
                    self.in_cells(&parent.keys, domain, key, codes.iter(), subjects, k)
                }),
            },
            None => {
                let mut keys = Keys { keys: std::mem::take(&mut self.sorted), domain: parent.domain };
                keys.keys.clone_from(&parent.keys);
                if let Some((column, cardinality)) = extension {
                    keys.extend(column, cardinality);
                }
                let count = self.by_sorting(&mut keys, subjects, k);
                self.sorted = keys.keys;
                count
            }
        }
    }

    fn in_cells<C>(
        &mut self,
        keys: &[u32],
        domain: u64,
        key: impl Fn(u32, C) -> u32,
        codes: impl Iterator<Item = C> + Clone,
        subjects: Option<&[u32]>,
        k: u32,
    ) -> GroupCount {
        self.cells.clear();
        self.cells.resize(domain as usize, 0);
        let cells = &mut self.cells;
        let Some(subjects) = subjects else {
            keys.iter().zip(codes).for_each(|(k, c)| cells[key(*k, c) as usize] += 1);
            let mut count = summary(cells.iter().copied().filter(|n| *n > 0), k);
            count.records_below = cells.iter().filter(|n| **n < k).map(|n| u64::from(*n)).sum();
            count.subjects_below = count.records_below;
            return count;
        };
        self.last.clear();
        self.last.resize(domain as usize, u32::MAX);
        for ((k, c), subject) in keys.iter().zip(codes.clone()).zip(subjects) {
            let cell = key(*k, c) as usize;
            if self.last[cell] != *subject {
                self.last[cell] = *subject;
                cells[cell] += 1;
            }
        }
        let mut count = summary(cells.iter().copied().filter(|n| *n > 0), k);
        let mut before = u32::MAX;
        for ((key_, c), subject) in keys.iter().zip(codes).zip(subjects) {
            if cells[key(*key_, c) as usize] < k {
                count.records_below += 1;
                count.subjects_below += u64::from(before != *subject);
                before = *subject;
            }
        }
        count
    }

    /// Keys with the row's subject beside it, sorted: classes are runs, subjects runs within them.
    fn by_sorting(&mut self, keys: &mut Keys, subjects: Option<&[u32]>, k: u32) -> GroupCount {
        let Some(subjects) = subjects else {
            sort(&mut keys.keys, keys.domain, &mut self.spare);
            let runs = || keys.keys.chunk_by(|a, b| a == b).map(|run| run.len() as u32);
            let mut count = summary(runs(), k);
            count.records_below = runs().filter(|n| *n < k).map(u64::from).sum();
            count.subjects_below = count.records_below;
            return count;
        };
        let mut pairs: Vec<(u32, u32)> = keys.keys.iter().copied().zip(subjects.iter().copied()).collect();
        pairs.sort_unstable();
        self.exposed.clear();
        let support = |run: &[(u32, u32)]| run.chunk_by(|a, b| a.1 == b.1).count() as u32;
        let runs = || pairs.chunk_by(|a, b| a.0 == b.0);
        let mut count = summary(runs().map(support), k);
        for run in runs().filter(|run| support(run) < k) {
            count.records_below += run.len() as u64;
            self.exposed.extend(run.iter().map(|(_, subject)| *subject));
        }
        self.exposed.sort_unstable();
        self.exposed.dedup();
        count.subjects_below = self.exposed.len() as u64;
        count
    }

    /// The places of the rows in classes below k, ascending.
    pub(crate) fn rows_below(&mut self, keys: &Keys, subjects: Option<&[u32]>, k: u32) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..keys.keys.len() as u32).collect();
        rows.sort_by_key(|row| keys.keys[*row as usize]);
        let runs = rows.chunk_by(|a, b| keys.keys[*a as usize] == keys.keys[*b as usize]);
        let below = |run: &&[u32]| match subjects {
            None => run.len() < k as usize,
            // The sort is stable, so a run still meets each subject once.
            Some(subjects) => run.chunk_by(|a, b| subjects[*a as usize] == subjects[*b as usize]).count() < k as usize,
        };
        let mut found: Vec<u32> = runs.filter(below).flatten().copied().collect();
        found.sort_unstable();
        found
    }
}

/// What the supports of the classes say; records and subjects below k are the caller's.
fn summary(supports: impl Iterator<Item = u32>, k: u32) -> GroupCount {
    let mut count = GroupCount { smallest: u64::MAX, ..GroupCount::default() };
    for support in supports {
        count.classes += 1;
        count.classes_below += u64::from(support < k);
        count.smallest = count.smallest.min(u64::from(support));
    }
    if count.classes == 0 {
        count.smallest = 0;
    }
    count
}

/// Sorts keys below `domain`, eleven bits a pass from the lowest.
fn sort(keys: &mut Vec<u32>, domain: u64, spare: &mut Vec<u32>) {
    const BITS: u32 = 11;
    // Below this a comparison sort is done before the tables of a radix sort are cleared.
    if keys.len() < 1 << 12 {
        return keys.sort_unstable();
    }
    spare.clear();
    spare.resize(keys.len(), 0);
    let used = u64::BITS - domain.saturating_sub(1).leading_zeros();
    for shift in (0..used).step_by(BITS as usize) {
        let digit = |key: u32| (key >> shift) as usize & ((1 << BITS) - 1);
        let mut starts = [0_u32; 1 << BITS];
        keys.iter().for_each(|key| starts[digit(*key)] += 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += std::mem::replace(start, sum);
        }
        for key in keys.iter() {
            let place = &mut starts[digit(*key)];
            spare[*place as usize] = *key;
            *place += 1;
        }
        std::mem::swap(keys, spare);
    }
}
