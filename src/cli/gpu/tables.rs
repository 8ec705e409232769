//! Random tables, sets of their columns, and their size on a device.

use crate::counting::{AttributeSet, CountedTable};
use rand::Rng;
use rand::seq::IndexedRandom;
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

/// Of independent columns, from 2 to 100.
pub(super) fn cardinalities(width: u32) -> Vec<u32> {
    (0..width).map(|at| 2 + at * 98 / (width - 1).max(1)).collect()
}

/// Sets of so many of the columns.
pub(super) fn some_sets(width: usize, size: usize, count: usize, dice: &mut ChaCha8Rng) -> Vec<AttributeSet> {
    let columns: Vec<usize> = (0..width).collect();
    (0..count).map(|_| columns.choose_multiple(dice, size).copied().collect()).collect()
}

/// Bytes a code of a column of so many values.
pub(super) fn code_bytes(values: usize) -> u64 {
    match values {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// Bytes of a row of these columns, with its subject where there is one.
pub(super) fn bytes_a_row(table: &CountedTable, set: &AttributeSet) -> u64 {
    let width = |column| code_bytes(table.cardinality(column));
    set.iter().map(width).sum::<u64>() + if table.subjects().is_some() { 4 } else { 0 }
}
