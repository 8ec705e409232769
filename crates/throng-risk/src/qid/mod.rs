//! Find-QID (docs/internals/methods.md §3): finds every minimal quasi-identifier of a table, and every maximal set that is
//! none.
//!
//! A set of attributes is a *quasi-identifier* (QID) at k if one of its value tuples has a support in [1, k − 1].
//! Every superset of a QID is a QID, so the answer is a border with two sides. Each side consists of the minimal
//! hitting sets of the complements of the other.
//!
//! Edge cases: the empty set has one tuple, which every record shares. If the support of the whole table is below k,
//! the empty set is the only minimal QID, and no set is safe. A table without rows has no tuples, so no set is a QID.
//! All columns together are then the only maximal non-QID. A single column can be a QID.

mod border;
mod column_bits;
mod exhaustive;
mod greedy;
mod search_request;
mod table_classes;
mod witnesses;

#[cfg(test)]
mod brute_force;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod tests;

use crate::counting::cpu::RowMatrix;
use crate::counting::{ComputeError, CountedTable, CpuCounter, GroupCounter};
use crate::multigrid::AttributeAggregation;
use std::time::Instant;
use table_classes::TableClasses;
use witnesses::WitnessStore;

pub use search_request::{QidBorders, QidSearchProgress, QidSearchRequest, QidStrategy};
use search_request::{QidSearchClock, QidSearchContext};

/// Searches the border of a table on the CPU. Columns that the table does not have are ignored.
///
/// `progress` is called from this thread repeatedly.
pub fn search(table: &CountedTable, question: &QidSearchRequest, progress: &dyn Fn(QidSearchProgress)) -> QidBorders {
    let counter = CpuCounter::new(table, question.threads);
    search_timed(&counter, &counter, question, true, progress).expect(IN_MEMORY_SEARCH_SUCCEEDS)
}

/// Searches like [`search`], but without the coarse table: every column is searched separately.
///
/// The result is the same but takes longer. Reference for tests and measurements of the aggregation.
pub fn search_without_aggregation(
    table: &CountedTable,
    question: &QidSearchRequest,
    progress: &dyn Fn(QidSearchProgress),
) -> QidBorders {
    let counter = CpuCounter::new(table, question.threads);
    search_timed(&counter, &counter, question, false, progress).expect(IN_MEMORY_SEARCH_SUCCEEDS)
}

/// Searches like [`search`], but another backend with the same table counts and judges sets.
pub fn search_on_backend(
    table: &CountedTable,
    counter: &dyn GroupCounter,
    question: &QidSearchRequest,
    progress: &dyn Fn(QidSearchProgress),
) -> Result<QidBorders, ComputeError> {
    search_with_witness_counter(&CpuCounter::new(table, question.threads), counter, question, progress)
}

/// Searches like [`search_on_backend`], but `own` reads the witnesses from the table and uses a quarter of its memory for
/// them.
pub fn search_with_witness_counter(
    own: &CpuCounter<'_>,
    counter: &dyn GroupCounter,
    question: &QidSearchRequest,
    progress: &dyn Fn(QidSearchProgress),
) -> Result<QidBorders, ComputeError> {
    search_timed(own, counter, question, true, progress)
}

const IN_MEMORY_SEARCH_SUCCEEDS: &str = "the columns are the table's, it is held, and that is all that may fail here";

fn search_timed(
    own: &CpuCounter<'_>,
    counter: &dyn GroupCounter,
    question: &QidSearchRequest,
    aggregate: bool,
    progress: &dyn Fn(QidSearchProgress),
) -> Result<QidBorders, ComputeError> {
    let begun = Instant::now();
    let clock = QidSearchClock { budget: question.budget, elapsed: &|| begun.elapsed() };
    search_by_clock(&clock, own, counter, question, aggregate, progress)
}

/// Searches with a clock given by the caller.
fn search_by_clock(
    clock: &QidSearchClock<'_>,
    own: &CpuCounter<'_>,
    counter: &dyn GroupCounter,
    question: &QidSearchRequest,
    aggregate: bool,
    progress: &dyn Fn(QidSearchProgress),
) -> Result<QidBorders, ComputeError> {
    let table = own.table();
    let asked = match question.trivial_result(table.width(), table.rows(), table.support()) {
        Ok(borders) => return Ok(borders),
        Err(asked) => asked,
    };
    let cardinalities: Vec<usize> = (0..table.width()).map(|column| table.cardinality(column)).collect();
    let run = QidSearchContext { cardinalities: &cardinalities, counter, question: &asked, clock, progress };
    match asked.strategy {
        QidStrategy::Border => {
            let cardinality = |column: usize| cardinalities[column];
            let attributes = if aggregate {
                AttributeAggregation::from_implications(&asked.columns, &cardinality, &mut |a, b| own.implies(a, b))?
            } else {
                AttributeAggregation::unaggregated(&asked.columns, &cardinality)
            };
            let witnesses =
                WitnessStore::new(RowMatrix::with_row_layout(&cardinalities, table.subjects()), attributes.kept());
            let classes = TableClasses { counter: own, k: asked.k, max_witness_bytes: own.memory() / 4 };
            border::search(&run, &attributes, witnesses, &classes)
        }
        QidStrategy::Greedy => greedy::search(&run),
        QidStrategy::Exhaustive => exhaustive::search(&run),
    }
}
