//! Which rows of a table fall below k over sets of columns, wherever the table lies.

use super::crowds::{Crowds, split, supports_of};
use super::rows::Rows;
use crate::counting::{AttributeSet, CountedTable, SpilledCounter};

/// A table, as a walk through its sets of columns asks it.
pub trait Falls: Sync {
    /// Its rows.
    fn rows(&self) -> usize;

    /// For each set of a family, which shares all but the last attribute, the rows below k over it. Those that are below k over the
    /// set without its last attribute may be left out.
    fn fallen(&self, family: &[AttributeSet], k: u32) -> Vec<Rows>;

    /// Distinct people of the rows, or the rows where nobody is named.
    fn people(&self, rows: &Rows) -> u64;
}

impl Falls for CountedTable {
    fn rows(&self) -> usize {
        Self::rows(self)
    }

    fn fallen(&self, family: &[AttributeSet], k: u32) -> Vec<Rows> {
        rows_that_fall(self, family, k)
    }

    fn people(&self, rows: &Rows) -> u64 {
        let Some(subjects) = self.subject_numbers() else { return rows.len() };
        let mut seen = Rows::none(self.support());
        subjects.iter().zip(0..).filter(|(_, row)| rows.contains(*row)).for_each(|(person, _)| seen.insert(*person));
        seen.len()
    }
}

/// A disk that fails is remembered by the counter: whoever asked looks there at the end.
impl Falls for SpilledCounter<'_> {
    fn rows(&self) -> usize {
        self.table().rows()
    }

    fn fallen(&self, family: &[AttributeSet], k: u32) -> Vec<Rows> {
        let mut fallen = vec![Rows::none(self.table().rows()); family.len()];
        self.remember(self.below_each(family, k, &mut |at, row, _| fallen[at].insert(row)));
        fallen
    }

    fn people(&self, rows: &Rows) -> u64 {
        if self.table().subjects().is_none() {
            return rows.len();
        }
        let mut seen = Rows::none(self.table().support());
        let see = |row: u32, person: u32| {
            if rows.contains(row) {
                seen.insert(person);
            }
        };
        self.remember(self.each_person(see));
        seen.len()
    }
}

/// The set without its last attribute.
pub(super) fn but_last(set: &AttributeSet) -> AttributeSet {
    set.last().map_or_else(AttributeSet::new, |last| set.without(last))
}

/// For each set of a family, the rows that are below k over it and were not over the set without its last attribute.
fn rows_that_fall(table: &CountedTable, family: &[AttributeSet], k: u32) -> Vec<Rows> {
    let Some(first) = family.first() else { return Vec::new() };
    let prefix = but_last(first);
    // Combinations have at least one attribute: nobody falls to none, however small the table.
    let k_before = if prefix.is_empty() { 0 } else { k };
    let crowds = Crowds::of(table, &prefix);
    let rows: Vec<u32> =
        (0_u32..).zip(crowds.below(k_before)).filter(|(_, below)| !below).map(|(row, _)| row).collect();
    // Classes that are left, numbered anew.
    let mut numbers = vec![u32::MAX; crowds.supports.len()];
    let mut classes = 0_u32;
    for (number, support) in numbers.iter_mut().zip(&crowds.supports) {
        if *support >= k_before {
            *number = classes;
            classes += 1;
        }
    }
    let class_of: Vec<u32> = rows.iter().map(|&row| numbers[crowds.class_of[row as usize] as usize]).collect();
    let subjects: Option<Vec<u32>> =
        table.subject_numbers().map(|subjects| rows.iter().map(|&row| subjects[row as usize]).collect());
    let fall = |set: &AttributeSet| {
        let Some(last) = set.last() else { return Rows::none(table.rows()) };
        let codes: Vec<u32> = rows.iter().map(|&row| table.column(last)[row as usize]).collect();
        let mut class_of = class_of.clone();
        let classes = split(&mut class_of, classes as usize, &codes, table.cardinality(last));
        let supports = supports_of(&class_of, classes, subjects.as_deref());
        let mut fallen = Rows::none(table.rows());
        let below = rows.iter().zip(&class_of).filter(|(_, class)| supports[**class as usize] < k);
        below.for_each(|(row, _)| fallen.insert(*row));
        fallen
    };
    family.iter().map(fall).collect()
}
