//! What need not be searched: columns that say nothing new.
//!
//! - A *constant* column splits no class: it is in every maximal non-QID and in no minimal QID.
//! - *Twins* split the rows alike: one is searched, and stands for each of them in the answer.
//! - A column *implied* by another (one value of a, one value of b) splits nothing beside it. So no minimal QID holds
//!   both, and a maximal non-QID that holds a holds b.

use super::bits::Bits;
use crate::risk::compute::{AttributeSet, Columns};

/// The columns to search, and how an answer about them is one about all.
pub(super) struct Reduced {
    /// The table's columns that are searched, cardinality descending.
    pub(super) columns: Vec<usize>,
    /// For each, the columns that it stands for, itself among them.
    twins: Vec<Vec<usize>>,
    constants: Vec<usize>,
    /// For each, the searched columns that it implies.
    implied: Vec<Vec<usize>>,
}

impl Reduced {
    /// Time: rows · width in all, and for each pair of columns the rows up to the first that disproves the implication.
    pub(super) fn new(table: &Columns, wanted: &AttributeSet) -> Self {
        let (constants, mut varied): (Vec<usize>, Vec<usize>) = wanted.iter().partition(|c| table.cardinality(*c) == 1);
        varied.sort_by_key(|c| (std::cmp::Reverse(table.cardinality(*c)), *c));
        let mut columns: Vec<usize> = Vec::new();
        let mut twins: Vec<Vec<usize>> = Vec::new();
        let mut implied: Vec<Vec<usize>> = Vec::new();
        let mut scratch = Vec::new();
        for column in varied {
            let by: Vec<usize> =
                (0..columns.len()).filter(|s| implies(table, columns[*s], column, &mut scratch)).collect();
            // As many values and one value for each: the same classes.
            let twin = by.iter().find(|s| table.cardinality(columns[**s]) == table.cardinality(column));
            if let Some(twin) = twin {
                twins[*twin].push(column);
                continue;
            }
            by.into_iter().for_each(|s| implied[s].push(columns.len()));
            columns.push(column);
            twins.push(vec![column]);
            implied.push(Vec::new());
        }
        Self { columns, twins, constants, implied }
    }

    pub(super) fn implied<const W: usize>(&self) -> Vec<Bits<W>> {
        self.implied.iter().map(|columns| Bits::of(columns.iter().copied())).collect()
    }

    /// The set in the table's own columns, one for each.
    pub(super) fn original<const W: usize>(&self, set: Bits<W>) -> AttributeSet {
        set.iter().map(|c| self.columns[c]).collect()
    }

    /// The minimal QIDs that one of searched columns stands for: each twin in its turn.
    pub(super) fn minimal<const W: usize>(&self, set: Bits<W>, found: &mut Vec<AttributeSet>) {
        let start = found.len();
        found.push(AttributeSet::new());
        for column in set.iter() {
            let twins = &self.twins[column];
            for at in start..found.len() {
                found.extend(twins[1..].iter().map(|twin| found[at].with(*twin)).collect::<Vec<_>>());
                found[at].insert(twins[0]);
            }
        }
    }

    /// The maximal non-QID that one of searched columns, with all they imply, stands for.
    pub(super) fn maximal<const W: usize>(&self, closed: Bits<W>) -> AttributeSet {
        closed.iter().flat_map(|c| self.twins[c].iter().copied()).chain(self.constants.iter().copied()).collect()
    }
}

/// Does every value of `a` go with one value of `b`?
fn implies(table: &Columns, a: usize, b: usize, with: &mut Vec<u32>) -> bool {
    with.clear();
    with.resize(table.cardinality(a), u32::MAX);
    table.column(a).iter().zip(table.column(b)).all(|(a, b)| {
        let known = &mut with[*a as usize];
        let fits = *known == *b || *known == u32::MAX;
        *known = *b;
        fits
    })
}
