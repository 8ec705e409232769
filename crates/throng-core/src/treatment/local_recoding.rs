//! Local recoding: every record takes the first node of a ladder at which its class has support.

use super::subject_counting::SubjectCountTable;
use crate::plan::LadderNode;
use crate::values::codebook::{CellId, Code, Codebook, SUPPRESSED};
use crate::values::subjects_by_value::SubjectsByValue;

struct DigestColumn<'a> {
    codes: &'a [Code],
    digests: Vec<&'a [u128]>,
}

/// Quasi-identifiers of one group over the rows of a batch.
///
/// A class key is a sum (mod 2^128) of the group's digest and a keyed coverage digest per attribute
/// (docs/internals/methods.md §11.2).
pub struct QuasiColumns<'a> {
    base: u128,
    suppressed: u128,
    columns: Vec<DigestColumn<'a>>,
    subjects: &'a [u64],
}

/// Node of a row without support.
pub const UNRELEASED_NODE: u32 = u32::MAX;

/// Node and class of each row in one group.
pub struct ClassAssignment {
    /// Index into the ladder, or [`UNRELEASED_NODE`].
    pub node: Vec<u32>,
    /// Class key, by row.
    pub class: Vec<u128>,
    /// Rows beyond the budget, which count for no subject. Empty: none.
    pub muted_rows: Vec<bool>,
    /// Cells by quasi-identifier and row, if not those of the node.
    pub range_cells: Option<Vec<Vec<CellId>>>,
}

impl ClassAssignment {
    /// Returns an assignment without released rows.
    pub fn none_released(rows: usize) -> Self {
        Self { node: vec![UNRELEASED_NODE; rows], class: vec![0; rows], muted_rows: Vec::new(), range_cells: None }
    }
}

impl<'a> QuasiColumns<'a> {
    /// Creates the columns of `attributes` from all columns of the batch; `base` identifies the attribute set.
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
                DigestColumn { codes: &columns[a], digests }
            })
            .collect();
        Self { base, suppressed, columns, subjects }
    }

    /// The outer loop is over attributes: only one digest table is in the cache.
    fn write_class_keys(&self, rows: &[u32], levels: &[u8], keys: &mut Vec<u128>) {
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

/// Assigns each of `rows` to the first node at which its class has `k` distinct subjects among the rows that reached
/// it.
///
/// No raw tuple of a released class could have been released at a finer node (docs/internals/methods.md §11.4).
///
/// Time: O(Σ over nodes of the remaining rows × attributes). Memory: O(rows × k).
pub fn recode(columns: &QuasiColumns<'_>, ladder: &[LadderNode], rows: &[u32], k: usize) -> ClassAssignment {
    recode_with_holders(columns, ladder, rows, k, &SubjectsByValue::default())
}

/// Recodes like [`recode`]; classes also count holders outside the rows.
pub fn recode_with_holders(
    columns: &QuasiColumns<'_>,
    ladder: &[LadderNode],
    rows: &[u32],
    k: usize,
    beside: &SubjectsByValue,
) -> ClassAssignment {
    let mut assignment = ClassAssignment::none_released(columns.rows());
    let mut left = rows.to_vec();
    let mut crowds = SubjectCountTable::new(k, left.len());
    let (mut keys, mut classes) = (Vec::with_capacity(left.len()), Vec::with_capacity(left.len()));
    for (index, node) in (0u32..).zip(ladder) {
        if left.is_empty() {
            break;
        }
        crowds.restart();
        columns.write_class_keys(&left, &node.levels, &mut keys);
        classes.clear();
        classes.extend(keys.iter().zip(&left).map(|(&key, &row)| crowds.add(key, columns.subjects[row as usize])));
        crowds.add_holders(beside);
        let mut at = 0;
        left.retain(|&row| {
            let here = at;
            at += 1;
            if keys[here] == columns.suppressed || !crowds.reaches_k(classes[here]) {
                return true;
            }
            assignment.node[row as usize] = index;
            assignment.class[row as usize] = keys[here];
            false
        });
    }
    assignment
}
