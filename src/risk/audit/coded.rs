//! The table that is judged, in memory or in files.

use crate::counting::{CountedTable, SpilledTable};

/// Columns of dense codes.
#[derive(Clone, Debug)]
pub(super) enum Coded {
    /// In memory.
    Held(CountedTable),
    /// In files.
    Spilled(SpilledTable),
}

impl Coded {
    pub fn rows(&self) -> usize {
        match self {
            Self::Held(table) => table.rows(),
            Self::Spilled(table) => table.rows(),
        }
    }

    pub fn cardinality(&self, column: usize) -> usize {
        match self {
            Self::Held(table) => table.cardinality(column),
            Self::Spilled(table) => table.cardinality(column),
        }
    }

    pub fn subjects(&self) -> Option<usize> {
        match self {
            Self::Held(table) => table.subjects(),
            Self::Spilled(table) => table.subjects(),
        }
    }

    pub fn support(&self) -> usize {
        match self {
            Self::Held(table) => table.support(),
            Self::Spilled(table) => table.support(),
        }
    }
}
