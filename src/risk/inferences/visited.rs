//! The rows of a table, person after person, wherever it lies.

use crate::counting::{CountedTable, SpilledCounter};

/// Bytes of the counts of a pair, in a map that grows.
const PAIR_BYTES: u64 = 64;

/// A table whose rows can be visited in the order of people.
pub(super) trait Visited: Sync {
    fn rows(&self) -> usize;
    fn width(&self) -> usize;
    fn cardinality(&self, column: usize) -> usize;
    /// Counts that each of some threads may hold at once.
    fn most_cells(&self, threads: usize) -> usize;
    /// Each row's codes of two columns and its person, person after person. Without people every record is one.
    fn each(&self, a: usize, b: usize, visit: impl FnMut(u32, u32, u32));
}

/// A table in memory.
pub(super) struct ByPeople<'a> {
    pub table: &'a CountedTable,
    /// Rows by subject.
    pub order: Option<&'a [u32]>,
}

impl Visited for ByPeople<'_> {
    fn rows(&self) -> usize {
        self.table.rows()
    }

    fn width(&self) -> usize {
        self.table.width()
    }

    fn cardinality(&self, column: usize) -> usize {
        self.table.cardinality(column)
    }

    fn most_cells(&self, _: usize) -> usize {
        usize::MAX
    }

    fn each(&self, a: usize, b: usize, mut visit: impl FnMut(u32, u32, u32)) {
        let (a, b) = (self.table.column(a), self.table.column(b));
        match (self.order, self.table.subject_numbers()) {
            (Some(order), Some(subjects)) => {
                order.iter().map(|row| *row as usize).for_each(|row| visit(a[row], b[row], subjects[row]));
            }
            _ => (0..self.table.rows()).for_each(|row| visit(a[row], b[row], row as u32)),
        }
    }
}

impl Visited for SpilledCounter<'_> {
    fn rows(&self) -> usize {
        self.table().rows()
    }

    fn width(&self) -> usize {
        self.table().width()
    }

    fn cardinality(&self, column: usize) -> usize {
        self.table().cardinality(column)
    }

    fn most_cells(&self, threads: usize) -> usize {
        usize::try_from(self.memory() / threads.max(1) as u64 / PAIR_BYTES).unwrap_or(usize::MAX).max(1)
    }

    fn each(&self, a: usize, b: usize, visit: impl FnMut(u32, u32, u32)) {
        self.remember(self.each_pair(a, b, visit));
    }
}
