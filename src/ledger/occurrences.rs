//! What strict recoding must remember of a batch: which class each fragment left in, and from which raw tuple.

use crate::records::codebook::{CellId, Codebook, SUPPRESSED};
use crate::records::subject::NO_SUBJECT;
use crate::records::table::Batch;

/// Attributes whose values make one kind of class: those of a group, or a single one that stands beside a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// The digest that class keys begin with.
    pub base: u128,
    /// Positions in the schema.
    pub attributes: Vec<usize>,
}

/// A fragment, or a value beside a class, that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// Key of the class that it left in.
    pub class: u128,
    /// Whose it is.
    pub subject: u64,
    /// Key of its raw tuple: that of its class at the raw node.
    pub raw: u128,
    /// Position of its space.
    pub space: usize,
    /// Row of the batch.
    pub row: u32,
}

/// The occurrences of a treated batch: sorted, one for each class, subject and raw tuple. `cells` are those that leave, by
/// attribute and row.
#[must_use]
pub fn occurrences(spaces: &[Space], batch: &Batch, cells: &[Vec<CellId>], books: &[Codebook]) -> Vec<Occurrence> {
    let mut found = Vec::new();
    for (number, space) in spaces.iter().enumerate() {
        for row in 0..batch.rows() {
            let subject = batch.subjects[row];
            if subject == NO_SUBJECT || space.attributes.iter().all(|&a| cells[a][row] == SUPPRESSED) {
                continue;
            }
            let key = |digest: &dyn Fn(usize) -> u128| {
                space.attributes.iter().fold(space.base, |key, &a| key.wrapping_add(digest(a)))
            };
            found.push(Occurrence {
                class: key(&|a| books[a].digest(cells[a][row])),
                subject,
                raw: key(&|a| books[a].digests(0)[batch.columns[a][row] as usize]),
                space: number,
                row: u32::try_from(row).expect("a batch is bounded"),
            });
        }
    }
    found.sort_unstable();
    found.dedup_by_key(|s| (s.class, s.subject, s.raw));
    found
}
