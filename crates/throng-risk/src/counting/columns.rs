//! A dictionary-encoded table: what is counted.

use super::attribute_set::MAX_ATTRIBUTES;

/// Columns of dense codes, and whose records they are.
///
/// Codes of a column are 0 up to its cardinality; a missing value is a code like any other. Memory: 4 bytes a cell,
/// and 4 a row for the subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedTable {
    rows: usize,
    columns: Vec<Vec<u32>>,
    cardinalities: Vec<usize>,
    subjects: Option<(Vec<u32>, usize)>,
}

/// Why columns are no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum ColumnsError {
    #[error("column {column} has {found} rows where the others have {expected}: give every column the same rows")]
    Ragged { column: usize, found: usize, expected: usize },
    #[error("the subjects are {found} where the columns have {expected} rows: give one subject a row")]
    Subjects { found: usize, expected: usize },
    #[error("{found} columns, at most {MAX_ATTRIBUTES} are searched together: choose among them")]
    TooWide { found: usize },
    #[error("{found} rows, at most {} are counted together: take a sample or a shorter window", u32::MAX - 1)]
    TooLong { found: usize },
}

impl CountedTable {
    /// A table of these columns. Codes and subjects may be any numbers; they are renumbered densely, in ascending order.
    ///
    /// A record without a subject supports nobody and decides nothing: leave it out.
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
        let (columns, cardinalities) = columns.into_iter().map(renumbered).unzip();
        Ok(Self { rows, columns, cardinalities, subjects: subjects.map(renumbered) })
    }

    /// Rows of each column.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Distinct values of a column, a missing one included.
    pub fn cardinality(&self, column: usize) -> usize {
        self.cardinalities[column]
    }

    /// Distinct subjects, where the table has subjects.
    pub fn subjects(&self) -> Option<usize> {
        self.subjects.as_ref().map(|(_, count)| *count)
    }

    /// The subject of each row, 0 up to [`Self::subjects`].
    pub fn subject_numbers(&self) -> Option<&[u32]> {
        self.subjects.as_ref().map(|(numbers, _)| numbers.as_slice())
    }

    /// The codes of a column, a row each.
    pub fn column(&self, column: usize) -> &[u32] {
        &self.columns[column]
    }

    /// Support of the whole table: distinct subjects, or rows.
    pub fn support(&self) -> usize {
        self.subjects().unwrap_or(self.rows)
    }

    /// The table with `singletons = mask` (docs/methods.md §3): every cell whose value alone has support below k
    /// becomes one common code of its column. That code is a value like any other and may itself stay below k.
    #[must_use]
    pub fn masked(&self, k: u32) -> Self {
        let mask = |(codes, &cardinality): (&Vec<u32>, &usize)| {
            let supports = self.supports(codes, cardinality);
            let star = cardinality as u32;
            renumbered(codes.iter().map(|&c| if supports[c as usize] < k { star } else { c }).collect())
        };
        let (columns, cardinalities) = self.columns.iter().zip(&self.cardinalities).map(mask).unzip();
        Self { columns, cardinalities, ..self.clone_frame() }
    }

    fn clone_frame(&self) -> Self {
        Self { rows: self.rows, columns: Vec::new(), cardinalities: Vec::new(), subjects: self.subjects.clone() }
    }

    /// Support of every value of a column.
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

/// The codes numbered 0, 1, … in ascending order, and how many they are.
fn renumbered(mut codes: Vec<u32>) -> (Vec<u32>, usize) {
    let largest = codes.iter().copied().max().map_or(0, |c| c as usize + 1);
    // A table of marks while it stays near the size of the column, a search in the sorted codes beyond.
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
    fn codes_become_dense_near_and_far() {
        let table = CountedTable::new(vec![vec![7, 3, 7], vec![u32::MAX, 0, 5]], Some(vec![9, 9, 4])).expect("a table");
        assert_eq!((table.column(0), table.cardinality(0)), (&[1, 0, 1][..], 2));
        assert_eq!((table.column(1), table.cardinality(1)), (&[2, 0, 1][..], 3));
        assert_eq!((table.subjects(), table.subject_numbers()), (Some(2), Some(&[1, 1, 0][..])));
        assert_eq!((table.rows(), table.width(), table.support()), (3, 2, 2));
    }

    #[test]
    fn what_is_no_table_is_refused_with_the_place() {
        let ragged = CountedTable::new(vec![vec![1, 2], vec![1]], None);
        assert_eq!(ragged, Err(ColumnsError::Ragged { column: 1, found: 1, expected: 2 }));
        let subjects = CountedTable::new(vec![vec![1, 2]], Some(vec![1]));
        assert_eq!(subjects, Err(ColumnsError::Subjects { found: 1, expected: 2 }));
        assert_eq!(CountedTable::new(vec![vec![]; 1025], None), Err(ColumnsError::TooWide { found: 1025 }));
        let empty = CountedTable::new(vec![], None).expect("nothing is a table");
        assert_eq!((empty.rows(), empty.width(), empty.support()), (0, 0, 0));
    }

    #[test]
    fn masking_counts_subjects_where_there_are_some() {
        let codes = vec![vec![0, 0, 1, 2, 3, 3]];
        let by_record = CountedTable::new(codes.clone(), None).expect("a table").masked(2);
        assert_eq!(by_record.column(0), [0, 0, 2, 2, 1, 1]);
        // The two records of value 0 are one person's.
        let by_subject = CountedTable::new(codes, Some(vec![5, 5, 6, 7, 8, 9])).expect("a table").masked(2);
        assert_eq!((by_subject.column(0), by_subject.cardinality(0)), (&[1, 1, 1, 1, 0, 0][..], 2));
    }
}
