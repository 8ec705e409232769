//! Divides a batch into classes that show the ranges of their values (docs/internals/methods.md §10.7).

mod axis;
mod class_cuts;
mod range_table;

use super::local_recoding::{ClassAssignment, UNRELEASED_NODE};
use super::subject_counting::NO_SUBJECT;
use crate::values::codebook::{CellId, Code, Codebook, SUPPRESSED};
use axis::{Axis, RankedCell};
use class_cuts::{CutNode, SeenSubjects};
use range_table::RangeTable;

/// Quasi-identifiers of one group over the rows of a batch.
pub struct RangeColumns<'a> {
    /// Digest of the attribute set.
    pub base: u128,
    /// Positions in the schema.
    pub attributes: &'a [usize],
    /// Suppressed attributes.
    pub identifiers: &'a [usize],
    /// Codes by attribute and row.
    pub columns: &'a [Vec<Code>],
    /// Subject that each row counts for.
    pub subjects: &'a [u64],
    /// Codebooks, by attribute.
    pub books: &'a [Codebook],
}

/// Divides `rows` into classes of at least `k` subjects; classes of suppressed cells are not released.
///
/// The order of the rows and the numbers of the codes have no effect. Time: O(rows × attributes² × log₂(rows / k)).
pub fn divide_into_ranges(columns: &RangeColumns<'_>, rows: &[u32], k: usize) -> ClassAssignment {
    let all = columns.subjects.len();
    let mut assignment = ClassAssignment::none_released(all);
    let mut shown = vec![vec![SUPPRESSED; all]; columns.attributes.len()];
    let table = build_table(columns, rows, k);
    for class in final_classes(&table) {
        let cells: Vec<CellId> = table
            .axes
            .iter()
            .enumerate()
            .map(|(at, axis)| axis.shown(&table.extent(&class, at), columns.books))
            .collect();
        if cells.iter().all(|cell| *cell == SUPPRESSED) {
            continue;
        }
        let digests = columns.attributes.iter().zip(&cells).map(|(&a, &cell)| columns.books[a].digest(cell));
        let key = digests.fold(columns.base, u128::wrapping_add);
        for &local in &class {
            let row = rows[local as usize] as usize;
            assignment.node[row] = 0;
            assignment.class[row] = key;
            shown.iter_mut().zip(&cells).for_each(|(column, &cell)| column[row] = cell);
        }
    }
    debug_assert!(assignment.node.iter().all(|node| matches!(*node, 0 | UNRELEASED_NODE)));
    ClassAssignment { range_cells: Some(shown), ..assignment }
}

fn build_table(columns: &RangeColumns<'_>, rows: &[u32], k: usize) -> RangeTable {
    let axis = |&attribute: &usize| {
        let suppressed = columns.identifiers.contains(&attribute);
        Axis::from_codes(attribute, suppressed, &columns.books[attribute], &columns.columns[attribute], rows)
    };
    let axes: Vec<(Axis, Vec<RankedCell>)> = columns.attributes.iter().map(axis).collect();
    let mut cells = Vec::with_capacity(rows.len() * axes.len());
    for row in 0..rows.len() {
        cells.extend(axes.iter().map(|(_, column)| column[row]));
    }
    let mut numbers = hashbrown::HashMap::<u64, u32>::new();
    let mut number = |subject: u64| {
        let next = u32::try_from(numbers.len()).expect("a batch is bounded");
        (subject != NO_SUBJECT).then(|| *numbers.entry(subject).or_insert(next))
    };
    let subjects: Vec<Option<u32>> = rows.iter().map(|&row| number(columns.subjects[row as usize])).collect();
    let people = numbers.len();
    RangeTable { axes: axes.into_iter().map(|(axis, _)| axis).collect(), cells, subjects, people, k }
}

fn final_classes(table: &RangeTable) -> Vec<Vec<u32>> {
    if table.people < table.k {
        return Vec::new();
    }
    let rows = u32::try_from(table.subjects.len()).expect("a batch is bounded");
    let (mut open, mut classes) = (vec![CutNode::new((0..rows).collect(), table)], Vec::new());
    let mut counted = SeenSubjects::new(table.people);
    while let Some(node) = open.pop() {
        match node.best_cut(table, &mut counted) {
            Some(parts) => open.extend(parts.into_iter().map(|rows| CutNode::new(rows, table))),
            None => classes.push(node.into_rows()),
        }
    }
    classes
}

#[cfg(test)]
mod tests;
