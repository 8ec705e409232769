//! Dictionary-encoded table, the input of group counting.

use super::attribute_set::MAX_ATTRIBUTES;

/// Columns of dense codes, with subjects. A missing value has a code.
///
/// Memory: 4 bytes per cell, and 4 per row for subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedTable {
    rows: usize,
    columns: Vec<Vec<u32>>,
    cardinalities: Vec<usize>,
    subjects: Option<(Vec<u32>, usize)>,
}

/// Invalid columns of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum ColumnsError {
    #[error("column {column} has {found} rows, but the others have {expected}: pass columns of the same length")]
    Ragged { column: usize, found: usize, expected: usize },
    #[error("{found} subjects for {expected} rows: pass one subject per row")]
    Subjects { found: usize, expected: usize },
    #[error("{found} columns, but at most {MAX_ATTRIBUTES} can be searched together: select fewer")]
    TooWide { found: usize },
    #[error("{found} rows, but at most {} can be counted together: use a sample or a shorter window", u32::MAX - 1)]
    TooLong { found: usize },
}

impl CountedTable {
    /// Creates a table; renumbers codes and subjects densely in ascending order.
    ///
    /// Omit records without a subject: they support no class.
    pub fn new(columns: Vec<Vec<u32>>, subjects: Option<Vec<u32>>) -> Result<Self, ColumnsError> {
        if columns.len() > MAX_ATTRIBUTES {
            return Err(ColumnsError::TooWide { found: columns.len() });
        }
        let rows = columns.first().or(subjects.as_ref()).map_or(0, Vec::len);
        if rows >= u32::MAX as usize {
            return Err(ColumnsError::TooLong { found: rows });
        }
        if let Some((column, found)) = columns.iter().map(Vec::len).enumerate().find(|(_, found)| *found != rows) {
            return Err(ColumnsError::Ragged { column, found, expected: rows });
        }
        if let Some(found) = subjects.as_ref().map(Vec::len).filter(|found| *found != rows) {
            return Err(ColumnsError::Subjects { found, expected: rows });
        }
        let (columns, cardinalities) = columns.into_iter().map(renumber_densely).unzip();
        Ok(Self { rows, columns, cardinalities, subjects: subjects.map(renumber_densely) })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Number of distinct values, including the missing value.
    pub fn cardinality(&self, column: usize) -> usize {
        self.cardinalities[column]
    }

    /// Number of subjects, if any.
    pub fn subjects(&self) -> Option<usize> {
        self.subjects.as_ref().map(|(_, count)| *count)
    }

    /// Subject of each row, below [`Self::subjects`].
    pub fn subject_numbers(&self) -> Option<&[u32]> {
        self.subjects.as_ref().map(|(numbers, _)| numbers.as_slice())
    }

    /// Codes of a column.
    pub fn column(&self, column: usize) -> &[u32] {
        &self.columns[column]
    }

    /// Total support: subjects, or rows.
    pub fn support(&self) -> usize {
        self.subjects().unwrap_or(self.rows)
    }

    /// Returns the table with `singletons = mask` (docs/internals/methods.md §3).
    ///
    /// Values with support below k get one common code per column, which may itself stay below k.
    #[must_use]
    pub fn masked(&self, k: u32) -> Self {
        let mask = |(codes, &cardinality): (&Vec<u32>, &usize)| {
            let supports = self.supports(codes, cardinality);
            let star = cardinality as u32;
            renumber_densely(codes.iter().map(|&c| if supports[c as usize] < k { star } else { c }).collect())
        };
        let (columns, cardinalities) = self.columns.iter().zip(&self.cardinalities).map(mask).unzip();
        Self { columns, cardinalities, ..self.without_columns() }
    }

    fn without_columns(&self) -> Self {
        Self { rows: self.rows, columns: Vec::new(), cardinalities: Vec::new(), subjects: self.subjects.clone() }
    }

    fn supports(&self, codes: &[u32], cardinality: usize) -> Vec<u32> {
        let mut supports = vec![0; cardinality];
        match &self.subjects {
            None => codes.iter().for_each(|&c| supports[c as usize] += 1),
            Some((numbers, _)) => {
                let mut pairs: Vec<(u32, u32)> = codes.iter().copied().zip(numbers.iter().copied()).collect();
                pairs.sort_unstable();
                pairs.dedup();
                pairs.iter().for_each(|(c, _)| supports[*c as usize] += 1);
            }
        }
        supports
    }
}

fn renumber_densely(mut codes: Vec<u32>) -> (Vec<u32>, usize) {
    let largest = codes.iter().copied().max().map_or(0, |c| c as usize + 1);
    // A lookup table if small, else binary search.
    if largest <= 4 * codes.len() + 1024 {
        let mut numbers = vec![0_u32; largest];
        codes.iter().for_each(|&c| numbers[c as usize] = 1);
        let mut next = 0;
        for number in &mut numbers {
            let used = *number;
            *number = next;
            next += used;
        }
        codes.iter_mut().for_each(|c| *c = numbers[*c as usize]);
        (codes, next as usize)
    } else {
        let mut known = codes.clone();
        known.sort_unstable();
        known.dedup();
        codes.iter_mut().for_each(|c| *c = known.partition_point(|k| *k < *c) as u32);
        (codes, known.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_table_renumbers_small_and_large_codes() {
        let table = CountedTable::new(vec![vec![7, 3, 7], vec![u32::MAX, 0, 5]], Some(vec![9, 9, 4])).expect("a table");
        assert_eq!((table.column(0), table.cardinality(0)), (&[1, 0, 1][..], 2));
        assert_eq!((table.column(1), table.cardinality(1)), (&[2, 0, 1][..], 3));
        assert_eq!((table.subjects(), table.subject_numbers()), (Some(2), Some(&[1, 1, 0][..])));
        assert_eq!((table.rows(), table.width(), table.support()), (3, 2, 2));
    }

    #[test]
    fn counted_table_rejects_invalid_columns() {
        let ragged = CountedTable::new(vec![vec![1, 2], vec![1]], None);
        assert_eq!(ragged, Err(ColumnsError::Ragged { column: 1, found: 1, expected: 2 }));
        let subjects = CountedTable::new(vec![vec![1, 2]], Some(vec![1]));
        assert_eq!(subjects, Err(ColumnsError::Subjects { found: 1, expected: 2 }));
        assert_eq!(CountedTable::new(vec![vec![]; 1025], None), Err(ColumnsError::TooWide { found: 1025 }));
        let empty = CountedTable::new(vec![], None).expect("nothing is a table");
        assert_eq!((empty.rows(), empty.width(), empty.support()), (0, 0, 0));
    }

    #[test]
    fn masking_uses_distinct_subjects_if_present() {
        let codes = vec![vec![0, 0, 1, 2, 3, 3]];
        let by_record = CountedTable::new(codes.clone(), None).expect("a table").masked(2);
        assert_eq!(by_record.column(0), [0, 0, 2, 2, 1, 1]);
        let by_subject = CountedTable::new(codes, Some(vec![5, 5, 6, 7, 8, 9])).expect("a table").masked(2);
        assert_eq!((by_subject.column(0), by_subject.cardinality(0)), (&[1, 1, 1, 1, 0, 0][..], 2));
    }
}
