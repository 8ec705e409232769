//! Local recoding: every record takes the cheapest node of a ladder at which its class has support.

use super::crowd::CrowdTable;
use crate::anonymity::plan::Node;
use throng_core::values::codebook::{CellId, Code, Codebook, SUPPRESSED};
use throng_core::values::holders::Holders;

/// One quasi attribute of a batch: its codes by row, and the coverage digests by level and code.
struct Column<'a> {
    codes: &'a [Code],
    digests: Vec<&'a [u128]>,
}

/// The quasi attributes of one group over the rows of a batch.
///
/// The key of a row's class at a node is the sum (mod 2^128) of the group's digest and of one keyed coverage digest
/// an attribute (docs/methods.md §11.2): equal exactly when the printed tuples are equal, up to a collision of 128
/// keyed bits.
pub struct QuasiColumns<'a> {
    base: u128,
    suppressed: u128,
    columns: Vec<Column<'a>>,
    subjects: &'a [u64],
}

/// `node` of a row that no node of the ladder supports.
pub const UNRELEASED: u32 = u32::MAX;

/// Where the rows of a batch ended up, in one group.
pub struct Assignment {
    /// Index into the ladder, by row of the batch; [`UNRELEASED`] where there was none.
    pub node: Vec<u32>,
    /// Class key, by row of the batch.
    pub class: Vec<u128>,
    /// Rows that count for nobody here, by row: their subjects have spent their budgets. Empty where none has.
    pub muted: Vec<bool>,
    /// The cells by quasi attribute of the group and row, where they are not those of the node.
    pub shown: Option<Vec<Vec<CellId>>>,
}

impl Assignment {
    /// Nothing is released of `rows` rows.
    pub fn nothing(rows: usize) -> Self {
        Self { node: vec![UNRELEASED; rows], class: vec![0; rows], muted: Vec::new(), shown: None }
    }
}

impl<'a> QuasiColumns<'a> {
    /// `columns` and `subjects` are the batch's (all attributes, all rows); `base` names the set of attributes.
    pub fn new(
        base: u128,
        attributes: &[usize],
        columns: &'a [Vec<Code>],
        subjects: &'a [u64],
        books: &'a [Codebook],
    ) -> Self {
        let mut suppressed = base;
        let columns = attributes
            .iter()
            .map(|&a| {
                let book = &books[a];
                suppressed = suppressed.wrapping_add(book.digest(SUPPRESSED));
                let digests = (0..book.levels()).map(|level| book.digests(level)).collect();
                Column { codes: &columns[a], digests }
            })
            .collect();
        Self { base, suppressed, columns, subjects }
    }

    /// Class keys of `rows` at `levels`, in their order. Attribute after attribute, so that only one table of digests at a
    /// time competes for the cache.
    fn keys(&self, rows: &[u32], levels: &[u8], keys: &mut Vec<u128>) {
        keys.clear();
        keys.resize(rows.len(), self.base);
        for (column, &level) in self.columns.iter().zip(levels) {
            let (digests, codes) = (&column.digests[level as usize], column.codes);
            for (key, &row) in keys.iter_mut().zip(rows) {
                *key = key.wrapping_add(digests[codes[row as usize] as usize]);
            }
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.subjects.len()
    }
}

/// Assigns each of `rows` the first node of `ladder` at which its class has `k` distinct subjects among the rows that reached
/// this node. Rows that took a finer node do not count: their printed tuple is another one.
///
/// No class is narrowed by exclusion (docs/methods.md §12.3). A level of a hierarchy is a partition, so the rows that are in a
/// class C at a later node are some of those that were in it at the first node that prints it, where all of them together were
/// too few; and had C left there, each of its rows would have left with it. So no raw tuple of a class that leaves could have left
/// finer in this batch. `release::narrowing` recounts it.
///
/// Time: O(Σ over nodes of the rows left × attributes); memory: O(rows × k).
pub fn recode(columns: &QuasiColumns<'_>, ladder: &[Node], rows: &[u32], k: usize) -> Assignment {
    recode_beside(columns, ladder, rows, k, &Holders::default())
}

/// As [`recode`], where classes also count the people whom they have `beside` the rows.
pub fn recode_beside(
    columns: &QuasiColumns<'_>,
    ladder: &[Node],
    rows: &[u32],
    k: usize,
    beside: &Holders,
) -> Assignment {
    let mut assignment = Assignment::nothing(columns.rows());
    let mut left = rows.to_vec();
    let mut crowds = CrowdTable::new(k, left.len());
    let (mut keys, mut classes) = (Vec::with_capacity(left.len()), Vec::with_capacity(left.len()));
    for (index, node) in (0u32..).zip(ladder) {
        if left.is_empty() {
            break;
        }
        crowds.restart();
        columns.keys(&left, &node.levels, &mut keys);
        classes.clear();
        classes.extend(keys.iter().zip(&left).map(|(&key, &row)| crowds.add(key, columns.subjects[row as usize])));
        crowds.complete(beside);
        let mut at = 0;
        left.retain(|&row| {
            let here = at;
            at += 1;
            if keys[here] == columns.suppressed || !crowds.supported(classes[here]) {
                return true;
            }
            assignment.node[row as usize] = index;
            assignment.class[row as usize] = keys[here];
            false
        });
    }
    assignment
}
