//! What is counted of one class, and of all classes of a set.

use crate::counting::GroupCount;
use std::collections::BTreeMap;

/// Support and records of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassSize {
    /// Distinct people, or records where nobody is named.
    pub support: u32,
    /// Records.
    pub records: u32,
}

/// How many classes there are of each size.
pub type ClassSizes = BTreeMap<ClassSize, u64>;

/// Cells of an array for each row, at most: beyond, the tuples that occur are kept in a map.
const CELLS_A_ROW: u64 = 4;

/// Cells of an array whatever the rows.
const FEW_CELLS: u64 = 1 << 16;

/// Is an array of so many cells better than a map, for so many rows?
pub(super) fn are_dense<C>(cells: u64, rows: u64, memory: u64) -> bool {
    cells <= (CELLS_A_ROW * rows).max(FEW_CELLS) && cells.saturating_mul(size_of::<C>() as u64) <= memory
}

/// A count that knows only records, or people too.
pub(super) trait Cell: Copy + Default {
    /// One more record, of `person`: 1, 2, …
    fn add(&mut self, person: u32);
    fn size(self) -> ClassSize;
}

#[derive(Clone, Copy, Default)]
pub(super) struct Records(u32);

#[derive(Clone, Copy, Default)]
pub(super) struct Persons {
    records: u32,
    people: u32,
    last: u32,
}

impl Cell for Records {
    fn add(&mut self, _: u32) {
        self.0 += 1;
    }

    fn size(self) -> ClassSize {
        ClassSize { support: self.0, records: self.0 }
    }
}

impl Cell for Persons {
    fn add(&mut self, person: u32) {
        self.records += 1;
        self.people += u32::from(self.last != person);
        self.last = person;
    }

    fn size(self) -> ClassSize {
        ClassSize { support: self.people, records: self.records }
    }
}

/// Records up to 255, where only that matters: an array of a fourth of the bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Few(u8);

impl Few {
    /// The largest k that it tells.
    pub const LARGEST_K: u32 = 255;
}

impl Cell for Few {
    fn add(&mut self, _: u32) {
        self.0 = self.0.saturating_add(1);
    }

    fn size(self) -> ClassSize {
        ClassSize { support: u32::from(self.0), records: u32::from(self.0) }
    }
}

/// What the sizes of the classes say at k; people below k are the caller's.
pub(super) fn summary(sizes: &ClassSizes, k: u32) -> GroupCount {
    let mut count =
        GroupCount { smallest: sizes.keys().next().map_or(0, |s| u64::from(s.support)), ..GroupCount::default() };
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
