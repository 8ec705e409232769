//! Grouping rows by the cells of a policy: the inner loop.
//!
//! A policy gives every row a key, the mixed-radix number of its composite cells. Where the keys fit into an array not
//! much longer than the rows, the key is the class; otherwise an open-addressing table numbers the keys. Keys beyond
//! 64 bits are numbered in stages, so that any number of attributes groups exactly.

use super::table::{Allowance, Composite, Rows};
use crate::anonymity::numbering::Numbering;

/// A class while it is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    /// Released records.
    pub records: u32,
    /// One of its rows; [`NO_ROW`] for no class.
    pub row: u32,
}

const NO_ROW: u32 = u32::MAX;
const EMPTY: Cell = Cell { records: 0, row: NO_ROW };

/// Allowance of one thread for grouping, used again and again.
///
/// Memory: 8 bytes for each of at most max(2¹⁶, [`Allowance::cells_a_row`](super::table::Allowance) × rows) classes, 8 a row, and 16 for each of at least twice the rows
/// once a grouping did not fit into an array.
#[derive(Debug)]
pub(super) struct Grouping {
    /// By row: its class.
    pub class_of: Vec<u32>,
    /// By class.
    pub cells: Vec<Cell>,
    /// The classes that have rows.
    pub occupied: Vec<u32>,
    keys: Vec<u64>,
    numbers: Numbering<u64>,
    /// Classes of an array for each row.
    cells_a_row: u64,
}

/// Classes of an array that is used whatever the rows.
const SMALL: u64 = 1 << 16;

impl Default for Grouping {
    fn default() -> Self {
        Self::new(Allowance::default())
    }
}

impl Grouping {
    pub fn new(allowed: Allowance) -> Self {
        Self {
            class_of: Vec::new(),
            cells: Vec::new(),
            occupied: Vec::new(),
            keys: Vec::new(),
            numbers: Numbering::default(),
            cells_a_row: allowed.cells_a_row,
        }
    }

    /// Groups `rows` by `policy`.
    pub fn group(&mut self, rows: &Rows, composites: &[Composite], policy: &[u8]) {
        for &class in &self.occupied {
            self.cells[class as usize] = EMPTY;
        }
        let maps: Vec<&(Vec<u32>, u64)> = composites.iter().map(|composite| composite.at(policy)).collect();
        let keys = maps.iter().try_fold(1u64, |product, (_, cells)| product.checked_mul(*cells));
        match keys {
            Some(keys) if keys <= SMALL.max(rows.len() as u64 * self.cells_a_row).min(u64::from(u32::MAX)) => {
                self.by_array(rows, &maps, keys as usize);
            }
            _ => self.by_table(rows, &maps),
        }
    }

    fn by_array(&mut self, rows: &Rows, maps: &[&(Vec<u32>, u64)], keys: usize) {
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
            self.cells.resize(keys, EMPTY);
        }
        self.occupied.clear();
        self.occupied.resize(n + 1, 0);
        let mut classes = 0;
        // No branch on whether the class is new: the next one simply overwrites what was not.
        for (row, (&class, &records)) in self.class_of.iter().zip(&rows.count).enumerate() {
            let cell = &mut self.cells[class as usize];
            self.occupied[classes] = class;
            classes += usize::from(cell.row == NO_ROW);
            *cell = Cell { records: cell.records + records, row: row as u32 };
        }
        self.occupied.truncate(classes);
    }

    fn by_table(&mut self, rows: &Rows, maps: &[&(Vec<u32>, u64)]) {
        let n = rows.len();
        self.class_of.clear();
        self.class_of.resize(n, 0);
        self.keys.clear();
        self.keys.resize(n, 0);
        let mut weight = 1u64;
        for (map, codes) in maps.iter().zip(&rows.codes) {
            if weight.checked_mul(map.1).is_none() {
                // What has been packed so far becomes one number below the rows.
                let classes = self.number(n);
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
        let classes = self.number(n);
        if self.cells.len() < classes as usize {
            self.cells.resize(classes as usize, EMPTY);
        }
        self.occupied.clear();
        self.occupied.extend(0..classes);
        for (row, (&class, &records)) in self.class_of.iter().zip(&rows.count).enumerate() {
            let cell = &mut self.cells[class as usize];
            *cell = Cell { records: cell.records + records, row: row as u32 };
        }
    }

    /// Divides the classes of `class_of` by a column of codes; how many there are then. Leaves only `class_of` valid.
    pub fn refine(&mut self, column: &[u32]) -> u32 {
        for &class in &self.occupied {
            self.cells[class as usize] = EMPTY;
        }
        self.occupied.clear();
        self.keys.clear();
        self.keys
            .extend(self.class_of.iter().zip(column).map(|(&class, &code)| u64::from(class) << 32 | u64::from(code)));
        self.number(column.len())
    }

    /// Numbers the distinct keys in the order of their rows, into `class_of`; how many there are.
    fn number(&mut self, rows: usize) -> u32 {
        self.numbers.restart(rows);
        // Only the high bits of a product have seen the whole key.
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
