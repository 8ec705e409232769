//! The value level: what in a record singles it out.
//!
//! A combination of a record's values is *infrequent* at k when fewer than k subjects (or records) share it, and
//! *minimal* when no part of it is infrequent. At k = 2 these are the minimal sample uniques of special uniques
//! detection [ELL]. A combination is given by its attributes; the values are the record's.

use super::exhaustive::joined;
use super::question::MOST_SETS;
use crate::counting::{AttributeSet, Columns, ComputeError, GroupCounter};
use std::collections::BTreeMap;

/// Why combinations could not be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    #[error(
        "more than {MOST_SETS} combinations of one size are to be looked at: ask for smaller ones or fewer columns"
    )]
    TooMany,
    #[error(transparent)]
    Compute(#[from] ComputeError),
}

/// The minimal infrequent combinations of one row, of at most `largest` attributes, in canonical order.
///
/// Time: for each combination whose parts are all frequent, rows / 64 words for each attribute. Memory: a bit a row and
/// attribute. The empty combination is infrequent where the whole table is.
///
/// # Panics
/// If the table does not have the row.
pub fn of_row(
    table: &Columns,
    row: usize,
    columns: &AttributeSet,
    k: u32,
    largest: usize,
) -> Result<Vec<AttributeSet>, ValuesError> {
    assert!(row < table.rows(), "row {row} of a table of {}", table.rows());
    let sharing = Sharing::new(table, row, columns);
    if sharing.is_infrequent(&AttributeSet::new(), k) {
        return Ok(vec![AttributeSet::new()]);
    }
    let mut found = Vec::new();
    let mut candidates: Vec<AttributeSet> =
        columns.iter().filter(|c| *c < table.width()).map(|c| AttributeSet::from_iter([c])).collect();
    for _ in 0..largest {
        let (infrequent, frequent): (Vec<AttributeSet>, Vec<AttributeSet>) =
            candidates.into_iter().partition(|set| sharing.is_infrequent(set, k));
        found.extend(infrequent);
        candidates = joined(&frequent).ok_or(ValuesError::TooMany)?;
    }
    Ok(found)
}

/// Which rows share each value of one row, in the order of subjects.
struct Sharing {
    rows: usize,
    marks: BTreeMap<usize, Vec<u64>>,
    subjects: Option<Vec<u32>>,
}

impl Sharing {
    fn new(table: &Columns, row: usize, columns: &AttributeSet) -> Self {
        let mut order: Vec<u32> = (0..table.rows() as u32).collect();
        if let Some(subjects) = table.subject_numbers() {
            order.sort_by_key(|row| subjects[*row as usize]);
        }
        let marks = |column: usize| {
            let codes = table.column(column);
            let mut marks = vec![0_u64; order.len().div_ceil(64)];
            for (at, other) in order.iter().enumerate() {
                marks[at / 64] |= u64::from(codes[*other as usize] == codes[row]) << (at % 64);
            }
            (column, marks)
        };
        Self {
            rows: table.rows(),
            marks: columns.iter().filter(|c| *c < table.width()).map(marks).collect(),
            subjects: table.subject_numbers().map(|s| order.iter().map(|row| s[*row as usize]).collect()),
        }
    }

    /// Looks no further than the k-th subject.
    fn is_infrequent(&self, set: &AttributeSet, k: u32) -> bool {
        let (mut support, mut before) = (0, u32::MAX);
        let marks: Vec<&[u64]> = set.iter().map(|c| self.marks[&c].as_slice()).collect();
        for word in 0..self.rows.div_ceil(64) {
            let all = u64::MAX >> (64 - (self.rows - word * 64).min(64));
            let mut left = marks.iter().fold(all, |left, marks| left & marks[word]);
            match &self.subjects {
                None => support += left.count_ones(),
                Some(subjects) => {
                    while left != 0 {
                        let subject = subjects[word * 64 + left.trailing_zeros() as usize];
                        support += u32::from(subject != before);
                        before = subject;
                        left &= left - 1;
                    }
                }
            }
            if support >= k {
                return false;
            }
        }
        true
    }
}

/// The minimal infrequent combinations of all rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Combinations {
    /// Every combination of attributes that is minimal for some row, in canonical order.
    pub sets: Vec<AttributeSet>,
    /// For each row the numbers of its combinations in `sets`, ascending.
    pub of_rows: Vec<Vec<u32>>,
}

/// The minimal infrequent combinations of every row, of at most `largest` attributes.
///
/// A row's combination is minimal when the row is in a small class of the set and of none of its subsets, so one pass over
/// the sets, level by level, serves all rows. Memory: a bit a row for each set of two levels.
pub fn of_all(
    counter: &dyn GroupCounter,
    rows: usize,
    columns: &AttributeSet,
    k: u32,
    largest: usize,
) -> Result<Combinations, ValuesError> {
    let mut found = Combinations { sets: Vec::new(), of_rows: vec![Vec::new(); rows] };
    let full = |marks: &[u64]| marks.iter().map(|w| w.count_ones() as usize).sum::<usize>() == rows;
    let mut level = vec![AttributeSet::new()];
    let mut below: BTreeMap<AttributeSet, Vec<u64>> = BTreeMap::new();
    for size in 0..=largest.min(columns.len()) {
        let mut next = BTreeMap::new();
        for set in &level {
            let mut covered = vec![0_u64; rows.div_ceil(64)];
            for part in set.iter().map(|c| &below[&set.without(c)]) {
                covered.iter_mut().zip(part).for_each(|(own, more)| *own |= more);
            }
            // Where every row is singled out by less, this set is minimal for none.
            if !full(&covered) {
                let number = found.sets.len() as u32;
                let mut minimal = false;
                for row in counter.records_below(set, k)? {
                    let (word, bit) = (row as usize / 64, 1 << (row % 64));
                    if covered[word] & bit == 0 {
                        covered[word] |= bit;
                        found.of_rows[row as usize].push(number);
                        minimal = true;
                    }
                }
                if minimal {
                    found.sets.push(set.clone());
                }
            }
            next.insert(set.clone(), covered);
        }
        below = next;
        // No set of the next level can be minimal for anybody below a set that covers all.
        let open: Vec<AttributeSet> = below.iter().filter(|(_, m)| !full(m)).map(|(set, _)| set.clone()).collect();
        level = if size == 0 && !open.is_empty() {
            columns.iter().map(|c| AttributeSet::from_iter([c])).collect()
        } else {
            joined(&open).ok_or(ValuesError::TooMany)?
        };
    }
    Ok(found)
}

/// Risk of a record from its minimal combinations, in the manner of SUDA: the sum over them of
/// `Π (attributes − i)` for i from the size of the combination to `largest`, which counts in how many ways larger
/// combinations contain it. Unit: such ways; 0 without a combination; the fewer attributes single a record out, the higher.
#[must_use]
pub fn score<'a>(combinations: impl IntoIterator<Item = &'a AttributeSet>, attributes: usize, largest: usize) -> f64 {
    let last = largest.min(attributes.saturating_sub(1));
    let weight = |set: &AttributeSet| (set.len()..=last).map(|i| (attributes - i) as f64).product::<f64>();
    combinations.into_iter().map(weight).sum()
}
