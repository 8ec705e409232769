//! Group counting on the processor's cores.

mod classes;
mod clusters;
mod keys;
mod matrix;
mod narrow;
mod slice;
mod slices;
#[cfg(test)]
mod tests;
mod threads;

use super::{AttributeSet, ComputeError, CountedTable, GroupCount, GroupCounter};
use classes::ClassCounter;
use keys::Keys;
pub(crate) use keys::Mixed;
pub(crate) use matrix::{Field, Matrix};
use narrow::Narrow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
pub(crate) use threads::in_threads;

/// Counts over [`CountedTable`] with some threads.
///
/// Memory: the columns once more in their narrowest width for counting and again for judging, and for each thread at work at
/// most 24 bytes a row.
pub struct CpuCounter<'a> {
    table: &'a CountedTable,
    threads: usize,
    /// For counting.
    columns: OnceLock<Vec<Narrow>>,
    /// For judging.
    matrix: OnceLock<Matrix>,
    /// Subjects of the rows, ascending: rows are ordered by them, so that a class meets each subject in one run.
    subjects: Option<Vec<u32>>,
    /// The table's row at each place of that order.
    order: Option<Vec<u32>>,
}

impl<'a> CpuCounter<'a> {
    /// A counter with `threads` threads, at least one.
    #[must_use]
    pub fn new(table: &'a CountedTable, threads: usize) -> Self {
        let order = table.subject_numbers().map(|subjects| {
            let mut order: Vec<u32> = (0..table.rows() as u32).collect();
            order.sort_by_key(|row| subjects[*row as usize]);
            order
        });
        let subjects = table
            .subject_numbers()
            .zip(order.as_ref())
            .map(|(subjects, order)| order.iter().map(|row| subjects[*row as usize]).collect());
        let (columns, matrix) = (OnceLock::new(), OnceLock::new());
        Self { table, threads: threads.max(1), columns, matrix, subjects, order }
    }

    fn columns(&self) -> &[Narrow] {
        let narrow = |c| Narrow::new(self.table.column(c), self.table.cardinality(c), self.order.as_deref());
        self.columns.get_or_init(|| (0..self.table.width()).map(narrow).collect())
    }

    /// The table row by row, in the order of subjects where there are some.
    pub(crate) fn matrix(&self) -> &Matrix {
        self.matrix.get_or_init(|| Matrix::new(self.table, self.order.as_deref()))
    }

    fn check(&self, set: &AttributeSet) -> Result<(), ComputeError> {
        let width = self.table.width();
        match set.last() {
            Some(attribute) if attribute >= width => Err(ComputeError::UnknownAttribute { attribute, width }),
            _ => Ok(()),
        }
    }

    fn keys(&self, attributes: impl Iterator<Item = usize>) -> Keys {
        let mut keys = Keys::none(self.table.rows());
        for attribute in attributes {
            keys.extend(&self.columns()[attribute], self.table.cardinality(attribute));
        }
        keys
    }

    /// Counts the sets of one family: all but the last attribute in common.
    fn family(&self, sets: &[AttributeSet], k: u32, tally: &mut ClassCounter, put: &mut dyn FnMut(usize, GroupCount)) {
        let Some(last) = sets[0].last() else {
            let keys = Keys::none(self.table.rows());
            return (0..sets.len()).for_each(|at| put(at, tally.count(&keys, None, self.subjects.as_deref(), k)));
        };
        let mut parent = self.keys(sets[0].iter().filter(|a| *a != last));
        if sets.len() > 1 {
            parent.make_dense();
        }
        for (at, set) in sets.iter().enumerate() {
            let last = set.last().expect("a family shares its size");
            let extension = (&self.columns()[last], self.table.cardinality(last));
            put(at, tally.count(&parent, Some(extension), self.subjects.as_deref(), k));
        }
    }
}

impl GroupCounter for CpuCounter<'_> {
    fn count(&self, sets: &[AttributeSet], k: u32) -> Result<Vec<GroupCount>, ComputeError> {
        sets.iter().try_for_each(|set| self.check(set))?;
        let mut order: Vec<usize> = (0..sets.len()).collect();
        let parent = |at: &usize| {
            let set = &sets[*at];
            set.last().map(|last| set.without(last))
        };
        order.sort_by_cached_key(|at| (parent(at), sets[*at].last()));
        let sorted: Vec<AttributeSet> = order.iter().map(|at| sets[*at].clone()).collect();
        let mut families = Vec::new();
        let mut start = 0;
        for at in 1..=order.len() {
            if at == order.len() || parent(&order[at]) != parent(&order[start]) {
                families.push(start..at);
                start = at;
            }
        }
        let counts = Mutex::new(vec![GroupCount::default(); sets.len()]);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut tally = ClassCounter::default();
            while let Some(range) = families.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut done = Vec::with_capacity(range.len());
                self.family(&sorted[range.clone()], k, &mut tally, &mut |at, count| done.push((at, count)));
                let mut counts = counts.lock().expect("no counter panics with the lock");
                done.into_iter().for_each(|(at, count)| counts[order[range.start + at]] = count);
            }
        };
        in_threads(self.threads.min(families.len()), &work);
        Ok(counts.into_inner().expect("no counter panicked"))
    }

    fn judge(
        &self,
        sets: &[AttributeSet],
        k: u32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Option<bool>>, ComputeError> {
        sets.iter().try_for_each(|set| self.check(set))?;
        if k < 2 {
            return Ok(vec![Some(false); sets.len()]);
        }
        // What slices do not hold is counted whole.
        let wide = |set: &AttributeSet| set.iter().filter(|c| self.table.cardinality(*c) > 1 << 16).count() > 1;
        let (whole, sliced): (Vec<usize>, Vec<usize>) =
            (0..sets.len()).partition(|at| sets[*at].is_empty() || k > slices::LARGEST_K || wide(&sets[*at]));
        let mut verdicts = vec![None; sets.len()];
        for at in whole {
            if !stop() {
                let count = self.count(&sets[at..=at], k)?;
                verdicts[at] = count.first().map(GroupCount::is_qid);
            }
        }
        let chosen: Vec<AttributeSet> = sliced.iter().map(|at| sets[*at].clone()).collect();
        let judged = slices::judge(self.matrix(), &chosen, k, self.threads, stop);
        sliced.into_iter().zip(judged).for_each(|(at, verdict)| verdicts[at] = verdict);
        Ok(verdicts)
    }

    fn records_below(&self, set: &AttributeSet, k: u32) -> Result<Vec<u32>, ComputeError> {
        self.check(set)?;
        let mut rows = ClassCounter::default().rows_below(&self.keys(set.iter()), self.subjects.as_deref(), k);
        if let Some(order) = &self.order {
            rows.iter_mut().for_each(|row| *row = order[*row as usize]);
            rows.sort_unstable();
        }
        Ok(rows)
    }
}
