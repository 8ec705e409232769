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
mod classes;
mod exhaustive;
mod greedy;
mod question;
mod witnesses;

#[cfg(test)]
mod brute_force;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod tests;

use crate::counting::cpu::Matrix;
use crate::counting::{ComputeError, CountedTable, CpuCounter, GroupCounter};
use crate::multigrid::Attributes;
use classes::TableClasses;
use std::time::Instant;
use witnesses::Witnesses;

pub use question::{Borders, Progress, Question, Strategy};
use question::{Clock, Run};

/// Searches the border of a table on this machine's cores. Columns that the table does not have are left out.
///
/// `progress` is called from this thread, now and then.
pub fn search(table: &CountedTable, question: &Question, progress: &dyn Fn(Progress)) -> Borders {
    let counter = CpuCounter::new(table, question.threads);
    search_on(&counter, &counter, question, true, progress).expect(NO_FAULT)
}

/// The same, without the coarse table: every column is searched for itself. The same answer, later; what the
/// aggregation is measured and tested against.
pub fn search_apart(table: &CountedTable, question: &Question, progress: &dyn Fn(Progress)) -> Borders {
    let counter = CpuCounter::new(table, question.threads);
    search_on(&counter, &counter, question, false, progress).expect(NO_FAULT)
}

/// The same, with sets counted and judged by another backend that holds the same table.
pub fn search_with(
    table: &CountedTable,
    counter: &dyn GroupCounter,
    question: &Question,
    progress: &dyn Fn(Progress),
) -> Result<Borders, ComputeError> {
    search_over(&CpuCounter::new(table, question.threads), counter, question, progress)
}

/// The same, of a table that `own` reads witnesses from; a quarter of its memory is for these.
pub fn search_over(
    own: &CpuCounter<'_>,
    counter: &dyn GroupCounter,
    question: &Question,
    progress: &dyn Fn(Progress),
) -> Result<Borders, ComputeError> {
    search_on(own, counter, question, true, progress)
}

const NO_FAULT: &str = "the columns are the table's, it is held, and that is all that may fail here";

fn search_on(
    own: &CpuCounter<'_>,
    counter: &dyn GroupCounter,
    question: &Question,
    aggregate: bool,
    progress: &dyn Fn(Progress),
) -> Result<Borders, ComputeError> {
    let begun = Instant::now();
    let clock = Clock { budget: question.budget, elapsed: &|| begun.elapsed() };
    search_by(&clock, own, counter, question, aggregate, progress)
}

/// The same, by a clock of the caller's.
fn search_by(
    clock: &Clock<'_>,
    own: &CpuCounter<'_>,
    counter: &dyn GroupCounter,
    question: &Question,
    aggregate: bool,
    progress: &dyn Fn(Progress),
) -> Result<Borders, ComputeError> {
    let table = own.table();
    let asked = match question.settled(table.width(), table.rows(), table.support()) {
        Ok(borders) => return Ok(borders),
        Err(asked) => asked,
    };
    let cardinalities: Vec<usize> = (0..table.width()).map(|column| table.cardinality(column)).collect();
    let run = Run { cardinalities: &cardinalities, counter, question: &asked, clock, progress };
    match asked.strategy {
        Strategy::Border => {
            let cardinality = |column: usize| cardinalities[column];
            let attributes = if aggregate {
                Attributes::by(&asked.columns, &cardinality, &mut |a, b| own.implies(a, b))?
            } else {
                Attributes::apart(&asked.columns, &cardinality)
            };
            let witnesses = Witnesses::new(Matrix::none(&cardinalities, table.subjects()), attributes.kept());
            let classes = TableClasses { counter: own, k: asked.k, kept: own.memory() / 4 };
            border::search(&run, &attributes, witnesses, &classes)
        }
        Strategy::Greedy => greedy::search(&run),
        Strategy::Exhaustive => exhaustive::search(&run),
    }
}
