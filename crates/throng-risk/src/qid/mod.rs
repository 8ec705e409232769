//! Find-QID (docs/internals/methods.md §3): all minimal quasi-identifiers of a table, and all maximal sets that are
//! none.
//!
//! A set of attributes is a *quasi-identifier* (QID) at k if one of its value tuples has a support in [1, k − 1].
//!
//! If the total support is below k, the empty set is the only minimal QID, and no set is safe. Without rows, all
//! columns together are the only maximal non-QID.

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

/// Searches the border of a table on the CPU; ignores unknown columns.
///
/// Calls `progress` repeatedly from this thread.
pub fn search(table: &CountedTable, question: &QidSearchRequest, progress: &dyn Fn(QidSearchProgress)) -> QidBorders {
    let counter = CpuCounter::new(table, question.threads);
    search_timed(&counter, &counter, question, true, progress).expect(IN_MEMORY_SEARCH_SUCCEEDS)
}

/// Searches like [`search`] without the coarse table, for tests and measurements.
pub fn search_without_aggregation(
    table: &CountedTable,
    question: &QidSearchRequest,
    progress: &dyn Fn(QidSearchProgress),
) -> QidBorders {
    let counter = CpuCounter::new(table, question.threads);
    search_timed(&counter, &counter, question, false, progress).expect(IN_MEMORY_SEARCH_SUCCEEDS)
}

/// Searches like [`search`] on another backend with the same table.
pub fn search_on_backend(
    table: &CountedTable,
    counter: &dyn GroupCounter,
    question: &QidSearchRequest,
    progress: &dyn Fn(QidSearchProgress),
) -> Result<QidBorders, ComputeError> {
    search_with_witness_counter(&CpuCounter::new(table, question.threads), counter, question, progress)
}

/// Searches like [`search_on_backend`]; `own` reads the witnesses with a quarter of its memory.
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
