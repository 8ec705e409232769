//! Packed keys: one number a row that stands for its value tuple.

use super::narrow::{Narrow, with_codes};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// Domains up to this are renumbered through an array (64 MiB), larger ones through a hash table.
const ARRAY: u64 = 1 << 24;

/// Domains beyond this are worth a renumbering before many extensions are counted on them: the cells of an extension
/// no longer fit the second-level cache.
const CROWDED: u64 = 1 << 14;

/// Mixed-radix keys of all rows, every key below `domain`.
pub(crate) struct Keys {
    pub(crate) keys: Vec<u32>,
    /// At most 2^32.
    pub(crate) domain: u64,
}

impl Keys {
    /// Every row alike: the keys of the empty set.
    pub(crate) fn none(rows: usize) -> Self {
        Self { keys: vec![0; rows], domain: 1 }
    }

    /// Adds a column.
    pub(crate) fn extend(&mut self, column: &Narrow, cardinality: usize) {
        let radix = cardinality.max(1) as u64;
        if self.domain * radix > 1 << 32 {
            self.renumber();
        }
        if self.domain * radix > 1 << 32 {
            let mut numbers: HashMap<u64, u32, Mixed> = HashMap::default();
            with_codes!(column, codes => for (key, code) in self.keys.iter_mut().zip(codes) {
                let next = numbers.len() as u32;
                *key = *numbers.entry(u64::from(*key) * radix + u64::from(*code)).or_insert(next);
            });
            self.domain = numbers.len() as u64;
            return;
        }
        self.domain *= radix;
        let radix = radix as u32;
        with_codes!(column, codes => {
            // Wraps only where the domain is 2^32 and the radix with it, before a key is above 0.
            for (key, code) in self.keys.iter_mut().zip(codes) {
                *key = key.wrapping_mul(radix) + u32::from(*code);
            }
        });
    }

    /// Renumbers where the domain is large or may be mostly empty.
    pub(crate) fn make_dense(&mut self) {
        if self.domain > CROWDED {
            self.renumber();
        }
    }

    /// Gives the tuples that exist the numbers 0, 1, ….
    fn renumber(&mut self) {
        let mut next = 0_u32;
        if self.domain <= ARRAY {
            let mut numbers = vec![u32::MAX; self.domain as usize];
            for key in &mut self.keys {
                let number = &mut numbers[*key as usize];
                if *number == u32::MAX {
                    *number = next;
                    next += 1;
                }
                *key = *number;
            }
        } else {
            let mut numbers: HashMap<u32, u32, Mixed> = HashMap::default();
            for key in &mut self.keys {
                let number = match numbers.entry(*key) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        next += 1;
                        *new.insert(next - 1)
                    }
                };
                *key = number;
            }
        }
        self.domain = u64::from(next).max(1);
    }
}

/// Hashes packed keys: one multiplication, its halves folded.
#[derive(Default)]
pub(crate) struct Mix(u64);

pub(crate) type Mixed = BuildHasherDefault<Mix>;

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}
