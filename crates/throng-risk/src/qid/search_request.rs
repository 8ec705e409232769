//! Request and result of Find-QID.

use crate::counting::{AttributeSet, GroupCounter};
use std::time::Duration;

/// Search strategy. All strategies return the same result.
///
/// The border strategy searches the coarse table of the [multigrid](crate::multigrid) and maps its result back. The
/// others are references and search the table directly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QidStrategy {
    /// Both sides together, judged by witnesses first. The fastest strategy.
    #[default]
    Border,
    /// Sets of high cardinality first, with falling thresholds until all sets are covered (\[POD] Alg. 3).
    Greedy,
    /// Level by level without supersets of QIDs. The reference.
    Exhaustive,
}

/// Request of a search.
#[derive(Clone, Debug)]
pub struct QidSearchRequest {
    /// Support that every tuple must have; 0 and 1 find no QID.
    pub k: u32,
    /// Search strategy.
    pub strategy: QidStrategy,
    /// Number of threads, at least one. The result does not depend on it.
    pub threads: usize,
    /// Time limit of the search.
    pub budget: Option<Duration>,
    /// Memory limit of the search in bytes, in addition to the table.
    pub memory: Option<u64>,
    /// Columns to search. The caller leaves out standalone identifiers.
    pub columns: AttributeSet,
}

impl QidSearchRequest {
    /// Returns the result if no search is needed, or otherwise the request limited to existing columns.
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
    /// Number of counted sets.
    pub evaluated: u64,
    /// Sets decided without counting.
    pub pruned: u64,
    /// Number of QIDs found, minimal or not.
    pub found: usize,
    /// Known number of sets that are not yet decided.
    pub open: usize,
}

/// Both sides of the border, each in canonical order: by size, then lexicographically.
///
/// If the search was cut short, `complete` is false and the lists hold only proved sets. `minimal_qids` then holds
/// proved QIDs without a proved proper subset, and `maximal_non_qids` the largest proved non-QIDs. Treat a set as
/// unsafe if it is not a subset of one of the latter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QidBorders {
    /// QIDs of which no proper subset is a QID.
    pub minimal_qids: Vec<AttributeSet>,
    /// Non-QIDs of which every proper superset is a QID.
    pub maximal_non_qids: Vec<AttributeSet>,
    /// False if the search was cut short.
    pub complete: bool,
    /// True if the search was cut short because of its memory limit, or because it met too many sets.
    pub out_of_memory: bool,
    /// Sets counted on the whole table.
    pub evaluated: u64,
    /// Sets decided without counting.
    pub pruned: u64,
}

/// Inputs of every strategy.
pub(super) struct QidSearchContext<'a> {
    /// Number of distinct values per column of the table.
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

/// Most bytes of a set held by the reference strategies: in their lists, as a key, and in the answer.
pub(super) const SET_BYTES: u64 = 512;

impl QidSearchContext<'_> {
    /// Number of sets that a strategy without witnesses may hold.
    pub(super) fn max_held_sets(&self) -> usize {
        let most = self.question.memory.map_or(u64::MAX, |bytes| bytes / SET_BYTES);
        usize::try_from(most).unwrap_or(usize::MAX)
    }
}

/// Most candidates of one size. Each takes about a kilobyte with its witnesses. A search that exceeds it is cut
/// short.
pub(super) const MAX_LEVEL_SETS: usize = 1 << 20;

/// Clock with the time limit of a search.
pub(super) struct QidSearchClock<'a> {
    pub budget: Option<Duration>,
    /// Returns the time since the start of the search.
    pub elapsed: &'a (dyn Fn() -> Duration + Sync),
}

impl QidSearchClock<'_> {
    /// Returns true if the time is reached; always false for `None`.
    pub(super) fn has_reached(&self, time: Option<Duration>) -> bool {
        time.is_some_and(|time| (self.elapsed)() >= time)
    }

    pub(super) fn is_over(&self) -> bool {
        self.has_reached(self.budget)
    }
}
