//! Tuples of codes as numbers of 64 bits, exact however many columns there are.

use crate::counting::RowSet;
use crate::counting::codes::Block;
use hashbrown::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Numbers of the tuples over a group of columns.
pub(super) type Interned = HashMap<u64, u32, Mixed>;

/// How the columns of a block become one number a row.
///
/// As many columns as fit 64 bits are packed; their tuples then get numbers of 32 bits, and the next columns are packed behind
/// these. So equal numbers are equal tuples.
pub(super) struct Packing {
    /// Cardinalities of the columns, group after group.
    groups: Vec<Vec<u64>>,
    /// Cells that a group alone spans; none where there are several.
    domain: Option<u64>,
}

/// There are more tuples than there is room for.
pub(super) struct Full;

/// The rows of a block that are in one partition.
#[derive(Default)]
pub(super) struct Numbered {
    /// Places in the block, ascending.
    pub rows: Vec<u32>,
    /// The tuple of each.
    pub keys: Vec<u64>,
    hashes: Vec<u64>,
}

/// One of some partitions of the tuples.
#[derive(Clone, Copy)]
pub(super) struct Partition<'a> {
    pub number: u64,
    pub of: u64,
    /// Rows that are left out, by their numbers in the input.
    pub without: Option<&'a RowSet>,
}

impl Packing {
    pub fn new(cardinalities: &[usize]) -> Self {
        let mut groups: Vec<Vec<u64>> = vec![Vec::new()];
        let mut domain = 1_u64;
        for radix in cardinalities.iter().map(|cardinality| (*cardinality).max(1) as u64) {
            if let Some(product) = domain.checked_mul(radix) {
                domain = product;
            } else {
                groups.push(Vec::new());
                domain = (1 << 32) * radix;
            }
            if let Some(group) = groups.last_mut() {
                group.push(radix);
            }
        }
        let domain = (groups.len() == 1).then_some(domain);
        Self { groups, domain }
    }

    /// Numbers are below this, where they are not given as tuples come.
    pub fn domain(&self) -> Option<u64> {
        self.domain
    }

    /// The codes behind a number; none where there are several groups.
    pub fn codes(&self, key: u64) -> Option<Vec<u32>> {
        let [group] = &self.groups[..] else { return None };
        let mut rest = key;
        let mut codes: Vec<u32> = Vec::with_capacity(group.len());
        for radix in group.iter().rev() {
            codes.push((rest % radix) as u32);
            rest /= radix;
        }
        codes.reverse();
        Some(codes)
    }

    /// What the numbers of groups are remembered in.
    pub fn interned(&self) -> Vec<Interned> {
        self.groups[1..].iter().map(|_| Interned::default()).collect()
    }

    /// Numbers the rows of a block that are in the partition. `interned` holds no more than `most` tuples.
    pub fn number(
        &self,
        block: &Block,
        partition: Partition<'_>,
        interned: &mut [Interned],
        most: usize,
        into: &mut Numbered,
    ) -> Result<(), Full> {
        into.rows.clear();
        if partition.of == 1 {
            into.rows.extend(0..block.rows() as u32);
        } else {
            into.hashes.clear();
            into.hashes.resize(block.rows(), 0);
            for codes in &block.codes {
                into.hashes.iter_mut().zip(codes).for_each(|(hash, code)| *hash = mixed(*hash, *code));
            }
            let mine = |hash: &u64| (hash >> 32) % partition.of == partition.number;
            let rows = (0_u32..).zip(&into.hashes).filter(|(_, hash)| mine(hash)).map(|(row, _)| row);
            into.rows.extend(rows);
        }
        if let Some(without) = partition.without {
            into.rows.retain(|row| !without.contains(block.order[*row as usize]));
        }
        let is_whole = into.rows.len() == block.rows();
        into.keys.clear();
        into.keys.resize(into.rows.len(), 0);
        let mut columns = block.codes.iter();
        for (number, group) in self.groups.iter().enumerate() {
            if let Some(known) = number.checked_sub(1).map(|before| &mut interned[before]) {
                for key in &mut into.keys {
                    let next = known.len() as u32;
                    *key = u64::from(*known.entry(*key).or_insert(next));
                }
                if known.len() > most {
                    return Err(Full);
                }
            }
            for (radix, codes) in group.iter().zip(columns.by_ref()) {
                if is_whole {
                    into.keys.iter_mut().zip(codes).for_each(|(key, code)| *key = *key * radix + u64::from(*code));
                } else {
                    let cells = into.keys.iter_mut().zip(&into.rows);
                    cells.for_each(|(key, row)| *key = *key * radix + u64::from(codes[*row as usize]));
                }
            }
        }
        Ok(())
    }
}

/// One more code of a tuple in its hash.
fn mixed(hash: u64, code: u32) -> u64 {
    let product = u128::from(hash ^ u64::from(code) ^ 0x2545_f491_4f6c_dd1d) * 0x9e37_79b9_7f4a_7c15;
    product as u64 ^ (product >> 64) as u64
}

/// Hashes numbers: one multiplication, its halves folded.
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
