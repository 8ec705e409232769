//! Groups rows by the cells of a policy: the inner loop of the search.
//!
//! The key of a row is the mixed-radix number of its composite cells. Few keys are the classes themselves; others get
//! numbers from a hash table. Keys beyond 64 bits are numbered in stages.

use super::table::{CodedRows, CompositeColumn, SearchMemoryLimits};
use crate::numbering::KeyNumbering;

#[derive(Clone, Copy, Debug)]
pub(super) struct ClassCounter {
    pub records: u32,
    /// One of its rows, or [`NO_CLASS_ROW`] for no class.
    pub row: u32,
}

const NO_CLASS_ROW: u32 = u32::MAX;
const EMPTY_CLASS_COUNTER: ClassCounter = ClassCounter { records: 0, row: NO_CLASS_ROW };

/// Reusable grouping memory of one thread.
///
/// Memory: 8 bytes per row and per array class, at most max(2¹⁶,
/// [`SearchMemoryLimits::max_array_classes_per_row`](super::table::SearchMemoryLimits) × rows). A hash table needs 16
/// bytes for each of at least twice the rows.
#[derive(Debug)]
pub(super) struct RowGrouping {
    pub class_of: Vec<u32>,
    pub cells: Vec<ClassCounter>,
    pub occupied: Vec<u32>,
    keys: Vec<u64>,
    numbers: KeyNumbering<u64>,
    array_classes_per_row: u64,
}

const MIN_ARRAY_CLASSES: u64 = 1 << 16;

impl Default for RowGrouping {
    fn default() -> Self {
        Self::new(SearchMemoryLimits::default())
    }
}

impl RowGrouping {
    pub fn new(allowed: SearchMemoryLimits) -> Self {
        Self {
            class_of: Vec::new(),
            cells: Vec::new(),
            occupied: Vec::new(),
            keys: Vec::new(),
            numbers: KeyNumbering::default(),
            array_classes_per_row: allowed.max_array_classes_per_row,
        }
    }

    pub fn group(&mut self, rows: &CodedRows, composites: &[CompositeColumn], policy: &[u8]) {
        for &class in &self.occupied {
            self.cells[class as usize] = EMPTY_CLASS_COUNTER;
        }
        let maps: Vec<&(Vec<u32>, u64)> = composites.iter().map(|composite| composite.level_map(policy)).collect();
        let keys = maps.iter().try_fold(1u64, |product, (_, cells)| product.checked_mul(*cells));
        match keys {
            Some(keys)
                if keys
                    <= MIN_ARRAY_CLASSES
                        .max(rows.len() as u64 * self.array_classes_per_row)
                        .min(u64::from(u32::MAX)) =>
            {
                self.group_by_array(rows, &maps, keys as usize);
            }
            _ => self.group_by_hash_table(rows, &maps),
        }
    }

    fn group_by_array(&mut self, rows: &CodedRows, maps: &[&(Vec<u32>, u64)], keys: usize) {
        let n = rows.len();
        self.class_of.clear();
        self.class_of.resize(n, 0);
        let mut done = 0;
        let mut weight = 1u32;
        if let [a, b, c, ..] = maps {
            let (wb, wc) = (a.1 as u32, (a.1 * b.1) as u32);
            let codes = rows.codes[0].iter().zip(&rows.codes[1]).zip(&rows.codes[2]);
            for (class, ((&x, &y), &z)) in self.class_of.iter_mut().zip(codes) {
                *class = a.0[x as usize] + wb * b.0[y as usize] + wc * c.0[z as usize];
            }
            weight = (a.1 * b.1 * c.1) as u32;
            done = 3;
        }
        for (map, codes) in maps.iter().zip(&rows.codes).skip(done) {
            for (class, &code) in self.class_of.iter_mut().zip(codes) {
                *class += weight * map.0[code as usize];
            }
            weight = weight.wrapping_mul(map.1 as u32);
        }
        if self.cells.len() < keys {
            self.cells.resize(keys, EMPTY_CLASS_COUNTER);
        }
        self.occupied.clear();
        self.occupied.resize(n + 1, 0);
        let mut classes = 0;
        // Branch-free: the next class overwrites an entry that was not new.
        for (row, (&class, &records)) in self.class_of.iter().zip(&rows.count).enumerate() {
            let cell = &mut self.cells[class as usize];
            self.occupied[classes] = class;
            classes += usize::from(cell.row == NO_CLASS_ROW);
            *cell = ClassCounter { records: cell.records + records, row: row as u32 };
        }
        self.occupied.truncate(classes);
    }

    fn group_by_hash_table(&mut self, rows: &CodedRows, maps: &[&(Vec<u32>, u64)]) {
        let n = rows.len();
        self.class_of.clear();
        self.class_of.resize(n, 0);
        self.keys.clear();
        self.keys.resize(n, 0);
        let mut weight = 1u64;
        for (map, codes) in maps.iter().zip(&rows.codes) {
            if weight.checked_mul(map.1).is_none() {
                let classes = self.number_distinct_keys(n);
                for (key, &class) in self.keys.iter_mut().zip(&self.class_of) {
                    *key = u64::from(class);
                }
                weight = u64::from(classes);
            }
            for (key, &code) in self.keys.iter_mut().zip(codes) {
                *key += weight * u64::from(map.0[code as usize]);
            }
            weight *= map.1;
        }
        let classes = self.number_distinct_keys(n);
        if self.cells.len() < classes as usize {
            self.cells.resize(classes as usize, EMPTY_CLASS_COUNTER);
        }
        self.occupied.clear();
        self.occupied.extend(0..classes);
        for (row, (&class, &records)) in self.class_of.iter().zip(&rows.count).enumerate() {
            let cell = &mut self.cells[class as usize];
            *cell = ClassCounter { records: cell.records + records, row: row as u32 };
        }
    }

    /// Splits the classes by a column and returns their number; only `class_of` remains valid.
    pub fn refine(&mut self, column: &[u32]) -> u32 {
        for &class in &self.occupied {
            self.cells[class as usize] = EMPTY_CLASS_COUNTER;
        }
        self.occupied.clear();
        self.keys.clear();
        self.keys
            .extend(self.class_of.iter().zip(column).map(|(&class, &code)| u64::from(class) << 32 | u64::from(code)));
        self.number_distinct_keys(column.len())
    }

    /// Returns the number of distinct keys, numbered in row order.
    fn number_distinct_keys(&mut self, rows: usize) -> u32 {
        self.numbers.restart(rows);
        // Only the high bits depend on the whole key.
        let shift = self.numbers.slots().leading_zeros() + 1;
        let mut classes = 0;
        for (class, &key) in self.class_of.iter_mut().zip(&self.keys) {
            let (number, is_new) =
                self.numbers.number(key, (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize);
            *class = number;
            classes += u32::from(is_new);
        }
        classes
    }
}
