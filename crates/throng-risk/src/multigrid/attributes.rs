//! Aggregation of whole attributes: columns that say nothing new.
//!
//! - *Twins* (A ⇔ B, value for value) split the rows alike: one is kept, and stands for each of them in the answer.
//! - A column *implied* by another (A → B: one value of b for each of a) splits nothing beside it. So no minimal QID
//!   holds both, and a maximal non-QID that holds A holds B. A *constant* column is implied by every other.

use crate::counting::{AttributeSet, ColumnsError, CountedTable};

/// The columns of a table that have to be looked at, and how an answer about them becomes one about all.
///
/// Kept columns are numbered by their place in [`kept`](Self::kept), cardinality descending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    kept: Vec<usize>,
    /// For each kept column, the columns that it stands for, itself first.
    twins: Vec<Vec<usize>>,
    /// For each kept column, the numbers of the kept columns that it implies, ascending. Transitive: so is →.
    implied: Vec<Vec<usize>>,
}

impl Attributes {
    /// The exact aggregation of the wanted columns.
    ///
    /// Time: rows · width for what holds, and for each other pair of columns the rows up to the first that disproves it.
    pub fn of(table: &CountedTable, wanted: &AttributeSet) -> Self {
        let mut scratch = Vec::new();
        let implies = &mut |a, b| Ok::<_, std::convert::Infallible>(implies(table, a, b, &mut scratch));
        match Self::by(wanted, &|column| table.cardinality(column), implies) {
            Ok(found) => found,
            Err(never) => match never {},
        }
    }

    /// The same for a table of which the cardinality of each column is known, and whether the values of one imply those of another.
    pub fn by<E>(
        wanted: &AttributeSet,
        cardinality: &dyn Fn(usize) -> usize,
        implies: &mut dyn FnMut(usize, usize) -> Result<bool, E>,
    ) -> Result<Self, E> {
        let mut found = Self { kept: Vec::new(), twins: Vec::new(), implied: Vec::new() };
        for column in by_cardinality(cardinality, wanted) {
            let mut by = Vec::new();
            for (at, kept) in found.kept.iter().enumerate() {
                if implies(*kept, column)? {
                    by.push(at);
                }
            }
            // As many values and one value for each: the same classes.
            let twin = by.iter().find(|at| cardinality(found.kept[**at]) == cardinality(column));
            if let Some(twin) = twin {
                found.twins[*twin].push(column);
                continue;
            }
            by.into_iter().for_each(|at| found.implied[at].push(found.kept.len()));
            found.keep(column);
        }
        Ok(found)
    }

    /// Nothing aggregated: every wanted column is kept and stands for itself. What the aggregation is measured against.
    pub fn apart(wanted: &AttributeSet, cardinality: &dyn Fn(usize) -> usize) -> Self {
        let mut found = Self { kept: Vec::new(), twins: Vec::new(), implied: Vec::new() };
        by_cardinality(cardinality, wanted).into_iter().for_each(|column| found.keep(column));
        found
    }

    fn keep(&mut self, column: usize) {
        self.kept.push(column);
        self.twins.push(vec![column]);
        self.implied.push(Vec::new());
    }

    /// The table's columns that are kept.
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// The kept columns that a kept one implies, by number.
    pub fn implied(&self, number: usize) -> &[usize] {
        &self.implied[number]
    }

    /// The columns of the table that a kept one stands for, itself first.
    pub fn twins(&self, number: usize) -> &[usize] {
        &self.twins[number]
    }

    /// Numbers of the kept columns that no other implies. Values of all the others are unions of values of these, so
    /// that counts of pairs need to be taken between these alone.
    pub fn roots(&self) -> Vec<usize> {
        let mut is_root = vec![true; self.kept.len()];
        self.implied.iter().flatten().for_each(|number| is_root[*number] = false);
        (0..self.kept.len()).filter(|number| is_root[*number]).collect()
    }

    /// The coarse table: the kept columns in their order, with the same rows and subjects.
    pub fn coarse(&self, table: &CountedTable) -> Result<CountedTable, ColumnsError> {
        let columns = self.kept.iter().map(|column| table.column(*column).to_vec()).collect();
        CountedTable::new(columns, table.subject_numbers().map(<[u32]>::to_vec))
    }

    /// A set of kept columns in the table's own, one for each.
    pub fn original(&self, set: impl IntoIterator<Item = usize>) -> AttributeSet {
        set.into_iter().map(|number| self.kept[number]).collect()
    }

    /// The minimal QIDs that one of kept columns stands for: each twin in its turn.
    pub fn minimal(&self, set: impl IntoIterator<Item = usize>) -> Vec<AttributeSet> {
        let mut found = vec![AttributeSet::new()];
        for number in set {
            let twins = &self.twins[number];
            found = found.iter().flat_map(|part| twins.iter().map(|twin| part.with(*twin))).collect();
        }
        found
    }

    /// The maximal non-QID that one of kept columns stands for: with all that they imply, all twins.
    pub fn maximal(&self, set: impl IntoIterator<Item = usize>) -> AttributeSet {
        let with_implied = set.into_iter().flat_map(|number| [number].into_iter().chain(self.implied[number].clone()));
        with_implied.flat_map(|number| self.twins[number].clone()).collect()
    }
}

fn by_cardinality(cardinality: &dyn Fn(usize) -> usize, wanted: &AttributeSet) -> Vec<usize> {
    let mut columns: Vec<usize> = wanted.iter().collect();
    columns.sort_by_key(|c| (std::cmp::Reverse(cardinality(*c)), *c));
    columns
}

/// Does every value of `a` go with one value of `b`?
fn implies(table: &CountedTable, a: usize, b: usize, with: &mut Vec<u32>) -> bool {
    if table.cardinality(b) <= 1 {
        return true;
    }
    with.clear();
    with.resize(table.cardinality(a), u32::MAX);
    table.column(a).iter().zip(table.column(b)).all(|(a, b)| {
        let known = &mut with[*a as usize];
        let fits = *known == *b || *known == u32::MAX;
        *known = *b;
        fits
    })
}
