//! Find-QID (docs/methods.md §3): every minimal quasi-identifier of a table and every maximal set that is none.
//!
//! A set of attributes is a *quasi-identifier* (QID) at k when some value tuple of it has a support in [1, k − 1].
//! Every superset of a QID is one, so the answer is a border with two sides, each the minimal hitting sets of the
//! complements of the other.
//!
//! The ends of the definition: the empty set has one tuple, which every record shares. Where the whole table has a
//! support below k it is a QID, the only minimal one, and no set is safe. A table without rows has no tuple at all:
//! no set is a QID, and all columns together are the only maximal one that is none. A single column can be a QID.

mod bits;
mod border;
mod exhaustive;
mod greedy;
pub mod incremental;
pub mod values;
mod witnesses;

#[cfg(test)]
mod brute_force;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod tests;

use super::compute::cpu::Matrix;
use super::compute::{AttributeSet, Columns, ComputeError, CpuCounter, GroupCounter};
use std::time::{Duration, Instant};

/// How the border is found. All give the same answer; the border strategy searches the coarse table of the
/// [multigrid](crate::risk::multigrid) and maps its answer back, the others search the table as it is, as its references.
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
    pub minimal_qids: Vec<AttributeSet>,
    pub maximal_non_qids: Vec<AttributeSet>,
    pub complete: bool,
    /// It was cut short because it met more sets than there was memory for, or than it takes.
    pub out_of_memory: bool,
    /// Sets whose groups were counted on the whole table.
    pub evaluated: u64,
    /// Sets decided without that.
    pub pruned: u64,
}

/// Searches the border of a table on this machine's cores. Columns that the table does not have are left out.
///
/// `progress` is called from this thread, now and then.
pub fn search(table: &Columns, question: &Question, progress: &dyn Fn(Progress)) -> Borders {
    let counter = CpuCounter::new(table, question.threads);
    let found = search_on(table, &counter, &|| counter.matrix(), question, true, progress);
    found.expect("the columns are the table's, and that is all that may fail here")
}

/// The same, without the coarse table: every column is searched for itself. The same answer, later; what the
/// aggregation is measured and tested against.
pub fn search_apart(table: &Columns, question: &Question, progress: &dyn Fn(Progress)) -> Borders {
    let counter = CpuCounter::new(table, question.threads);
    let found = search_on(table, &counter, &|| counter.matrix(), question, false, progress);
    found.expect("the columns are the table's, and that is all that may fail here")
}

/// The same, with sets counted and judged by another backend that holds the same table.
pub fn search_with(
    table: &Columns,
    counter: &dyn GroupCounter,
    question: &Question,
    progress: &dyn Fn(Progress),
) -> Result<Borders, ComputeError> {
    let own = CpuCounter::new(table, question.threads);
    search_on(table, counter, &|| own.matrix(), question, true, progress)
}

fn search_on<'a>(
    table: &'a Columns,
    counter: &'a dyn GroupCounter,
    matrix: &dyn Fn() -> &'a Matrix,
    question: &Question,
    aggregate: bool,
    progress: &dyn Fn(Progress),
) -> Result<Borders, ComputeError> {
    let begun = Instant::now();
    let clock = Clock { budget: question.budget, elapsed: &|| begun.elapsed() };
    search_by(&clock, table, counter, matrix, question, aggregate, progress)
}

/// The same, by a clock of the caller's.
fn search_by<'a>(
    clock: &Clock<'_>,
    table: &'a Columns,
    counter: &'a dyn GroupCounter,
    matrix: &dyn Fn() -> &'a Matrix,
    question: &Question,
    aggregate: bool,
    progress: &dyn Fn(Progress),
) -> Result<Borders, ComputeError> {
    let columns: AttributeSet = question.columns.iter().filter(|c| *c < table.width()).collect();
    if table.rows() == 0 || question.k < 2 {
        return Ok(Borders::settled(vec![], vec![columns]));
    }
    if table.support() < question.k as usize {
        return Ok(Borders::settled(vec![AttributeSet::new()], vec![]));
    }
    let question = Question { columns, ..question.clone() };
    let run = Run { table, counter, question: &question, clock, progress };
    match question.strategy {
        Strategy::Border => border::search(&run, matrix(), aggregate),
        Strategy::Greedy => greedy::search(&run),
        Strategy::Exhaustive => exhaustive::search(&run),
    }
}

/// What every strategy is given.
struct Run<'a> {
    table: &'a Columns,
    counter: &'a dyn GroupCounter,
    question: &'a Question,
    clock: &'a Clock<'a>,
    progress: &'a dyn Fn(Progress),
}

impl Borders {
    fn settled(minimal_qids: Vec<AttributeSet>, maximal_non_qids: Vec<AttributeSet>) -> Self {
        Self { minimal_qids, maximal_non_qids, complete: true, out_of_memory: false, evaluated: 0, pruned: 0 }
    }
}

/// Bytes of a set that the reference strategies hold, at most: in their lists, as a key, and in the answer.
const SET_BYTES: u64 = 512;

impl Run<'_> {
    /// Sets that a strategy without witnesses may hold.
    fn most_sets(&self) -> usize {
        let most = self.question.memory.map_or(u64::MAX, |bytes| bytes / SET_BYTES);
        usize::try_from(most).unwrap_or(usize::MAX)
    }
}

/// Candidates of one size, at most: with their witnesses they take about a kilobyte each. A search that meets more is
/// cut short.
const MOST_SETS: usize = 1 << 20;

/// When to stop.
struct Clock<'a> {
    budget: Option<Duration>,
    /// Since the search began.
    elapsed: &'a (dyn Fn() -> Duration + Sync),
}

impl Clock<'_> {
    /// Never without a time.
    fn has_reached(&self, time: Option<Duration>) -> bool {
        time.is_some_and(|time| (self.elapsed)() >= time)
    }

    fn is_over(&self) -> bool {
        self.has_reached(self.budget)
    }
}
