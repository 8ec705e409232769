//! Random tables.

use crate::counting::CountedTable;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// A table with skewed columns of the given cardinalities; every third is a function of the one before it.
pub(super) fn skewed(rows: usize, cardinalities: &[u32], subjects: Option<u32>, dice: &mut ChaCha8Rng) -> CountedTable {
    let mut columns: Vec<Vec<u32>> = Vec::new();
    for (at, cardinality) in cardinalities.iter().enumerate() {
        let column = match columns.last() {
            Some(last) if at % 3 == 2 => last.iter().map(|code| code % cardinality).collect(),
            _ => {
                let mut roll = || dice.random_range(0..*cardinality);
                (0..rows).map(|_| roll().min(roll())).collect()
            }
        };
        columns.push(column);
    }
    let subjects = subjects.map(|count| (0..rows).map(|_| dice.random_range(0..count)).collect());
    CountedTable::new(columns, subjects).expect("columns of one length, fewer than a table may have")
}

/// Independent columns of evenly spread values.
pub(super) fn even(rows: usize, cardinalities: &[u32], subjects: Option<u32>, dice: &mut ChaCha8Rng) -> CountedTable {
    let columns = cardinalities
        .iter()
        .map(|cardinality| (0..rows).map(|_| dice.random_range(0..*cardinality)).collect())
        .collect();
    let subjects = subjects.map(|count| (0..rows).map(|_| dice.random_range(0..count)).collect());
    CountedTable::new(columns, subjects).expect("columns of one length, fewer than a table may have")
}
