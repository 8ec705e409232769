//! Request and result of Find-QID.

use crate::counting::{AttributeSet, GroupCounter};
use std::time::Duration;

/// Search strategy; all return the same result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QidStrategy {
    /// Both sides together, by witnesses first.
    #[default]
    Border,
    /// High cardinality first (\[POD] Alg. 3).
    Greedy,
    /// Level by level without supersets of QIDs.
    Exhaustive,
}

/// Request of a search.
#[derive(Clone, Debug)]
pub struct QidSearchRequest {
    /// Required support of every tuple; 0 and 1 find no QID.
    pub k: u32,
    /// Search strategy.
    pub strategy: QidStrategy,
    /// Number of threads, at least one; the result does not depend on it.
    pub threads: usize,
    /// Time limit.
    pub budget: Option<Duration>,
    /// Memory limit in bytes, in addition to the table.
    pub memory: Option<u64>,
    /// Columns to search, without standalone identifiers.
    pub columns: AttributeSet,
}

impl QidSearchRequest {
    /// Returns the result, or if a search is needed, the request for existing columns.
    pub(super) fn trivial_result(&self, width: usize, rows: usize, support: usize) -> Result<QidBorders, Self> {
        let columns: AttributeSet = self.columns.iter().filter(|c| *c < width).collect();
        if rows == 0 || self.k < 2 {
            return Ok(QidBorders::of_finished_search(vec![], vec![columns]));
        }
        if support < self.k as usize {
            return Ok(QidBorders::of_finished_search(vec![AttributeSet::new()], vec![]));
        }
        Err(Self { columns, ..self.clone() })
    }
}

/// Progress of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QidSearchProgress {
    /// Counted sets.
    pub evaluated: u64,
    /// Sets decided without counting.
    pub pruned: u64,
    /// QIDs found, minimal or not.
    pub found: usize,
    /// Known undecided sets.
    pub open: usize,
}

/// Both sides of the border, each by size, then lexicographically.
///
/// If `complete` is false, both hold only proved sets. Treat a set as unsafe unless a proved non-QID contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QidBorders {
    /// QIDs of which no proper subset is a QID.
    pub minimal_qids: Vec<AttributeSet>,
    /// Non-QIDs of which every proper superset is a QID.
    pub maximal_non_qids: Vec<AttributeSet>,
    /// False if the search was cut short.
    pub complete: bool,
    /// True if cut short by memory or too many sets.
    pub out_of_memory: bool,
    /// Sets counted on the whole table.
    pub evaluated: u64,
    /// Sets decided without counting.
    pub pruned: u64,
}

pub(super) struct QidSearchContext<'a> {
    pub cardinalities: &'a [usize],
    pub counter: &'a dyn GroupCounter,
    pub question: &'a QidSearchRequest,
    pub clock: &'a QidSearchClock<'a>,
    pub progress: &'a dyn Fn(QidSearchProgress),
}

impl QidBorders {
    pub(super) fn of_finished_search(minimal_qids: Vec<AttributeSet>, maximal_non_qids: Vec<AttributeSet>) -> Self {
        Self { minimal_qids, maximal_non_qids, complete: true, out_of_memory: false, evaluated: 0, pruned: 0 }
    }
}

pub(super) const SET_BYTES: u64 = 512;

impl QidSearchContext<'_> {
    pub(super) fn max_held_sets(&self) -> usize {
        let most = self.question.memory.map_or(u64::MAX, |bytes| bytes / SET_BYTES);
        usize::try_from(most).unwrap_or(usize::MAX)
    }
}

/// Each takes about a kilobyte. A larger search is cut short.
pub(super) const MAX_LEVEL_SETS: usize = 1 << 20;

pub(super) struct QidSearchClock<'a> {
    pub budget: Option<Duration>,
    /// Time since the start.
    pub elapsed: &'a (dyn Fn() -> Duration + Sync),
}

impl QidSearchClock<'_> {
    pub(super) fn has_reached(&self, time: Option<Duration>) -> bool {
        time.is_some_and(|time| (self.elapsed)() >= time)
    }

    pub(super) fn is_over(&self) -> bool {
        self.has_reached(self.budget)
    }
}
