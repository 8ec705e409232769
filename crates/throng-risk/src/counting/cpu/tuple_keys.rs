//! Code tuples as 64-bit numbers, exact for any number of columns.

use crate::counting::RowSet;
use crate::counting::codes::CodeBlock;
use hashbrown::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(super) type TupleNumbers = HashMap<u64, u32, FoldBuildHasher>;

/// Packs the columns of a block into one number per row.
///
/// Tuples of a full 64-bit group get 32-bit numbers, and packing continues behind them: equal numbers are equal tuples.
pub(super) struct TuplePacking {
    /// Cardinalities.
    groups: Vec<Vec<u64>>,
    domain: Option<u64>,
}

pub(super) struct TupleLimitExceeded;

#[derive(Default)]
pub(super) struct NumberedRows {
    pub rows: Vec<u32>,
    pub keys: Vec<u64>,
    hashes: Vec<u64>,
}

#[derive(Clone, Copy)]
pub(super) struct TuplePartition<'a> {
    pub number: u64,
    pub of: u64,
    pub excluded_rows: Option<&'a RowSet>,
}

impl TuplePacking {
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

    /// Exclusive bound of the numbers; `None` for several groups.
    pub fn domain(&self) -> Option<u64> {
        self.domain
    }

    /// `None` for several groups.
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

    pub fn empty_tuple_numbers(&self) -> Vec<TupleNumbers> {
        self.groups[1..].iter().map(|_| TupleNumbers::default()).collect()
    }

    /// Fails above the limit of tuples.
    pub fn number_rows(
        &self,
        block: &CodeBlock,
        partition: TuplePartition<'_>,
        interned: &mut [TupleNumbers],
        most: usize,
        into: &mut NumberedRows,
    ) -> Result<(), TupleLimitExceeded> {
        into.rows.clear();
        if partition.of == 1 {
            into.rows.extend(0..block.rows() as u32);
        } else {
            into.hashes.clear();
            into.hashes.resize(block.rows(), 0);
            for codes in &block.codes {
                into.hashes.iter_mut().zip(codes).for_each(|(hash, code)| *hash = mix_code(*hash, *code));
            }
            let mine = |hash: &u64| (hash >> 32) % partition.of == partition.number;
            let rows = (0_u32..).zip(&into.hashes).filter(|(_, hash)| mine(hash)).map(|(row, _)| row);
            into.rows.extend(rows);
        }
        if let Some(without) = partition.excluded_rows {
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
                    return Err(TupleLimitExceeded);
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

fn mix_code(hash: u64, code: u32) -> u64 {
    let product = u128::from(hash ^ u64::from(code) ^ 0x2545_f491_4f6c_dd1d) * 0x9e37_79b9_7f4a_7c15;
    product as u64 ^ (product >> 64) as u64
}

#[derive(Default)]
pub(crate) struct FoldHasher(u64);

pub(crate) type FoldBuildHasher = BuildHasherDefault<FoldHasher>;

impl Hasher for FoldHasher {
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
