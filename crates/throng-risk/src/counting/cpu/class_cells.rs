//! Class counters and class sizes.

use crate::counting::ClassSummary;
use std::collections::BTreeMap;

/// Support and records of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassSize {
    /// Distinct subjects, or records.
    pub support: u32,
    /// Records.
    pub records: u32,
}

/// Number of classes by size.
pub type ClassSizes = BTreeMap<ClassSize, u64>;

/// With more, a map is used.
const MAX_CELLS_PER_ROW: u64 = 4;

const ALWAYS_DENSE_CELLS: u64 = 1 << 16;

pub(super) fn fits_dense_array<C>(cells: u64, rows: u64, memory: u64) -> bool {
    cells <= (MAX_CELLS_PER_ROW * rows).max(ALWAYS_DENSE_CELLS) && cells.saturating_mul(size_of::<C>() as u64) <= memory
}

pub(super) trait ClassCell: Copy + Default {
    /// Adds a record of subject `person`: 1, 2, …
    fn add(&mut self, person: u32);
    fn size(self) -> ClassSize;
}

#[derive(Clone, Copy, Default)]
pub(super) struct RecordCell(u32);

#[derive(Clone, Copy, Default)]
pub(super) struct SubjectCell {
    records: u32,
    subjects: u32,
    last: u32,
}

impl ClassCell for RecordCell {
    fn add(&mut self, _: u32) {
        self.0 += 1;
    }

    fn size(self) -> ClassSize {
        ClassSize { support: self.0, records: self.0 }
    }
}

impl ClassCell for SubjectCell {
    fn add(&mut self, person: u32) {
        self.records += 1;
        self.subjects += u32::from(self.last != person);
        self.last = person;
    }

    fn size(self) -> ClassSize {
        ClassSize { support: self.subjects, records: self.records }
    }
}

/// Saturates at 255.
#[derive(Clone, Copy, Default)]
pub(super) struct SaturatingRecordCell(u8);

impl SaturatingRecordCell {
    /// Largest k for which the counter suffices.
    pub const LARGEST_K: u32 = 255;
}

impl ClassCell for SaturatingRecordCell {
    fn add(&mut self, _: u32) {
        self.0 = self.0.saturating_add(1);
    }

    fn size(self) -> ClassSize {
        ClassSize { support: u32::from(self.0), records: u32::from(self.0) }
    }
}

/// The caller sets the subjects below k.
pub(super) fn summarize_sizes(sizes: &ClassSizes, k: u32) -> ClassSummary {
    let mut count =
        ClassSummary { smallest: sizes.keys().next().map_or(0, |s| u64::from(s.support)), ..ClassSummary::default() };
    for (size, classes) in sizes {
        count.classes += classes;
        if size.support < k {
            count.classes_below += classes;
            count.records_below += classes * u64::from(size.records);
        }
    }
    count.subjects_below = count.records_below;
    count
}
