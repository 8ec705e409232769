//! What Find-QID is asked, and what it answers.

use crate::counting::{AttributeSet, GroupCounter};
use std::time::Duration;

/// How the border is found. All give the same answer; the border strategy searches the coarse table of the
/// [multigrid](crate::multigrid) and maps its answer back, the others search the table as it is, as its references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Both sides at once, judged by witnesses first. The fastest.
    #[default]
    Border,
    /// Sets of high cardinality first, thresholds lowered until all is covered ([POD] Alg. 3).
    Greedy,
    /// Level by level, supersets of QIDs left out. The reference.
    Exhaustive,
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The support that every tuple must have; 0 and 1 find nothing.
    pub k: u32,
    /// How the border is found.
    pub strategy: Strategy,
    /// Threads, at least one. The answer does not depend on them.
    pub threads: usize,
    /// Time after which the search is cut short.
    pub budget: Option<Duration>,
    /// Bytes that the search may hold beside the table, after which it is cut short.
    pub memory: Option<u64>,
    /// The columns to search. Standalone identifiers are left out by the caller.
    pub columns: AttributeSet,
}

impl Question {
    /// The answer where nothing has to be searched; else the question about the columns that the table has.
    pub(super) fn settled(&self, width: usize, rows: usize, support: usize) -> Result<Borders, Self> {
        let columns: AttributeSet = self.columns.iter().filter(|c| *c < width).collect();
        if rows == 0 || self.k < 2 {
            return Ok(Borders::settled(vec![], vec![columns]));
        }
        if support < self.k as usize {
            return Ok(Borders::settled(vec![AttributeSet::new()], vec![]));
        }
        Err(Self { columns, ..self.clone() })
    }
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Sets counted.
    pub evaluated: u64,
    /// Sets decided without a count.
    pub pruned: u64,
    /// QIDs found, minimal or not.
    pub found: usize,
    /// Sets that wait to be decided, as far as known.
    pub open: usize,
}

/// Both sides of the border, each in canonical order: by size, then lexicographically.
///
/// Where the search was cut short, `complete` is false and the lists hold only what is proved: sets that are QIDs, those
/// of them that no other proved one is a subset of, and sets that are none, the largest proved ones. Whatever is not
/// below a set of the second list is then to be treated as unsafe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Borders {
    /// Sets that are QIDs, and no subset of which is one.
    pub minimal_qids: Vec<AttributeSet>,
    /// Sets that are none, and every superset of which is one.
    pub maximal_non_qids: Vec<AttributeSet>,
    /// False where the search was cut short.
    pub complete: bool,
    /// It was cut short because it met more sets than there was memory for, or than it takes.
    pub out_of_memory: bool,
    /// Sets whose groups were counted on the whole table.
    pub evaluated: u64,
    /// Sets decided without that.
    pub pruned: u64,
}

/// What every strategy is given.
pub(super) struct Run<'a> {
    /// Distinct values of each column of the table.
    pub cardinalities: &'a [usize],
    pub counter: &'a dyn GroupCounter,
    pub question: &'a Question,
    pub clock: &'a Clock<'a>,
    pub progress: &'a dyn Fn(Progress),
}

impl Borders {
    pub(super) fn settled(minimal_qids: Vec<AttributeSet>, maximal_non_qids: Vec<AttributeSet>) -> Self {
        Self { minimal_qids, maximal_non_qids, complete: true, out_of_memory: false, evaluated: 0, pruned: 0 }
    }
}

/// Bytes of a set that the reference strategies hold, at most: in their lists, as a key, and in the answer.
pub(super) const SET_BYTES: u64 = 512;

impl Run<'_> {
    /// Sets that a strategy without witnesses may hold.
    pub(super) fn most_sets(&self) -> usize {
        let most = self.question.memory.map_or(u64::MAX, |bytes| bytes / SET_BYTES);
        usize::try_from(most).unwrap_or(usize::MAX)
    }
}

/// Candidates of one size, at most: with their witnesses they take about a kilobyte each. A search that meets more is
/// cut short.
pub(super) const MOST_SETS: usize = 1 << 20;

/// When to stop.
pub(super) struct Clock<'a> {
    pub budget: Option<Duration>,
    /// Since the search began.
    pub elapsed: &'a (dyn Fn() -> Duration + Sync),
}

impl Clock<'_> {
    /// Never without a time.
    pub(super) fn has_reached(&self, time: Option<Duration>) -> bool {
        time.is_some_and(|time| (self.elapsed)() >= time)
    }

    pub(super) fn is_over(&self) -> bool {
        self.has_reached(self.budget)
    }
}
