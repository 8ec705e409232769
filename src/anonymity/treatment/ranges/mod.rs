//! Ranges: a batch is divided into classes that show their own extent (docs/methods.md §10.7).
//!
//! The division is a tree of cuts. A cut divides a class along one attribute: numbers between two intervals of the public grid,
//! labels into the children of the label that all share, or values from missing ones. Parts without a crowd stay together. The cut
//! that saves most loss is made first, and a class is final when no cut saves any.
//!
//! Nobody of a class would have left in another: the first cut that parts two classes stands between their extents, or the one is of parts
//! without a crowd, of which nobody has a value of the other.

mod axis;
mod cuts;
mod table;

use super::crowd::NO_SUBJECT;
use super::recode::{Assignment, UNRELEASED};
use axis::{Axis, Cell};
use cuts::{Node, People};
use table::Table;
use throng_core::values::codebook::{CellId, Code, Codebook, SUPPRESSED};

/// The quasi attributes of one group over the rows of a batch.
pub struct RangeColumns<'a> {
    /// Digest that names the attribute set.
    pub base: u128,
    /// The attributes, by position in the schema.
    pub attributes: &'a [usize],
    /// Those of them that identify by themselves: they are suppressed.
    pub identifiers: &'a [usize],
    /// The codes of all attributes, by attribute and row of the batch.
    pub columns: &'a [Vec<Code>],
    /// By row of the batch, the subject that it counts for.
    pub subjects: &'a [u64],
    /// By attribute.
    pub books: &'a [Codebook],
}

/// Divides `rows` into classes of `k` subjects at least. Where all of them together have fewer, nothing is released, nor is a
/// class of which every cell is suppressed.
///
/// Time: O(rows × attributes² × depth of the tree); the tree is about log₂(rows / k) deep. Neither the order of the rows nor the
/// numbers of codes decide anything.
pub fn divide(columns: &RangeColumns<'_>, rows: &[u32], k: usize) -> Assignment {
    let all = columns.subjects.len();
    let mut assignment = Assignment::nothing(all);
    let mut shown = vec![vec![SUPPRESSED; all]; columns.attributes.len()];
    let table = table(columns, rows, k);
    for class in classes(&table) {
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
    debug_assert!(assignment.node.iter().all(|node| matches!(*node, 0 | UNRELEASED)));
    Assignment { shown: Some(shown), ..assignment }
}

/// The table of `rows`.
fn table(columns: &RangeColumns<'_>, rows: &[u32], k: usize) -> Table {
    let axis = |&attribute: &usize| {
        let suppressed = columns.identifiers.contains(&attribute);
        Axis::of(attribute, suppressed, &columns.books[attribute], &columns.columns[attribute], rows)
    };
    let axes: Vec<(Axis, Vec<Cell>)> = columns.attributes.iter().map(axis).collect();
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
    Table { axes: axes.into_iter().map(|(axis, _)| axis).collect(), cells, subjects, people, k }
}

/// The final classes, as rows of the table.
fn classes(table: &Table) -> Vec<Vec<u32>> {
    if table.people < table.k {
        return Vec::new();
    }
    let rows = u32::try_from(table.subjects.len()).expect("a batch is bounded");
    let (mut open, mut classes) = (vec![Node::new((0..rows).collect(), table)], Vec::new());
    let mut counted = People::new(table.people);
    while let Some(node) = open.pop() {
        match node.best_cut(table, &mut counted) {
            Some(parts) => open.extend(parts.into_iter().map(|rows| Node::new(rows, table))),
            None => classes.push(node.into_rows()),
        }
    }
    classes
}

#[cfg(test)]
mod tests;
