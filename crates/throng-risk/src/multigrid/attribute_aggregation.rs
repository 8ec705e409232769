//! Finds columns that add no information: *twins* (A ⇔ B), and columns *implied* by another (A → B).

use crate::counting::{AttributeSet, ColumnsError, CountedTable};

/// Columns to search, with the mapping from their answer to the answer for all columns.
///
/// Kept columns are numbered by their index in [`kept`](Self::kept), by descending cardinality.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeAggregation {
    kept: Vec<usize>,
    twins: Vec<Vec<usize>>,
    /// Numbers of kept columns, ascending and transitively closed.
    implied: Vec<Vec<usize>>,
}

impl AttributeAggregation {
    /// Computes the exact aggregation of the wanted columns.
    ///
    /// Time: rows · width for implications that hold, else rows up to a counterexample.
    pub fn of(table: &CountedTable, wanted: &AttributeSet) -> Self {
        let mut scratch = Vec::new();
        let implies = &mut |a, b| Ok::<_, std::convert::Infallible>(implies(table, a, b, &mut scratch));
        match Self::from_implications(wanted, &|column| table.cardinality(column), implies) {
            Ok(found) => found,
            Err(never) => match never {},
        }
    }

    /// Computes the aggregation from cardinalities and a test of implications.
    pub fn from_implications<E>(
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
            // Equal cardinality: both columns have the same classes.
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

    /// Keeps every wanted column, for measurements.
    pub fn unaggregated(wanted: &AttributeSet, cardinality: &dyn Fn(usize) -> usize) -> Self {
        let mut found = Self { kept: Vec::new(), twins: Vec::new(), implied: Vec::new() };
        by_cardinality(cardinality, wanted).into_iter().for_each(|column| found.keep(column));
        found
    }

    fn keep(&mut self, column: usize) {
        self.kept.push(column);
        self.twins.push(vec![column]);
        self.implied.push(Vec::new());
    }

    /// Kept columns.
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// Numbers of the kept columns that a kept column implies.
    pub fn implied(&self, number: usize) -> &[usize] {
        &self.implied[number]
    }

    /// Columns of the table that a kept column represents, starting with itself.
    pub fn twins(&self, number: usize) -> &[usize] {
        &self.twins[number]
    }

    /// Numbers of the kept columns that no other implies; only their pairs must be counted.
    pub fn roots(&self) -> Vec<usize> {
        let mut is_root = vec![true; self.kept.len()];
        self.implied.iter().flatten().for_each(|number| is_root[*number] = false);
        (0..self.kept.len()).filter(|number| is_root[*number]).collect()
    }

    /// Returns the table of kept columns, with the same rows and subjects.
    pub fn coarse_table(&self, table: &CountedTable) -> Result<CountedTable, ColumnsError> {
        let columns = self.kept.iter().map(|column| table.column(*column).to_vec()).collect();
        CountedTable::new(columns, table.subject_numbers().map(<[u32]>::to_vec))
    }

    /// Converts kept columns to columns of the table.
    pub fn to_table_columns(&self, set: impl IntoIterator<Item = usize>) -> AttributeSet {
        set.into_iter().map(|number| self.kept[number]).collect()
    }

    /// Returns the minimal QIDs that a minimal QID of kept columns represents, with twins exchanged.
    pub fn expand_minimal_qid(&self, set: impl IntoIterator<Item = usize>) -> Vec<AttributeSet> {
        let mut found = vec![AttributeSet::new()];
        for number in set {
            let twins = &self.twins[number];
            found = found.iter().flat_map(|part| twins.iter().map(|twin| part.with(*twin))).collect();
        }
        found
    }

    /// Returns the maximal non-QID that one of kept columns represents, with implied columns and twins.
    pub fn expand_maximal_non_qid(&self, set: impl IntoIterator<Item = usize>) -> AttributeSet {
        let with_implied = set.into_iter().flat_map(|number| [number].into_iter().chain(self.implied[number].clone()));
        with_implied.flat_map(|number| self.twins[number].clone()).collect()
    }
}

fn by_cardinality(cardinality: &dyn Fn(usize) -> usize, wanted: &AttributeSet) -> Vec<usize> {
    let mut columns: Vec<usize> = wanted.iter().collect();
    columns.sort_by_key(|c| (std::cmp::Reverse(cardinality(*c)), *c));
    columns
}

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
