//! The classes that leave by a policy, and which record is in which.
//!
//! The search tells a class by one of its rows; a record finds it by a sum of keyed digests of its cells, as the ledger's classes are found. Two
//! classes of the search that print the same are one here.

use super::data::Data;
use super::file::Block;
use crate::records::codebook::Code;
use crate::records::digest::BuildClassKeyHash;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// The classes that leave.
pub struct Kept {
    policy: Vec<u8>,
    /// By quasi attribute and code: the digest of its cell.
    digests: Vec<Vec<u128>>,
    /// By the sum of these: the number of the class.
    numbers: HashMap<u128, u32, BuildClassKeyHash>,
    /// By what it prints: the same.
    printed: HashMap<u128, u32, BuildClassKeyHash>,
    /// By class: its records.
    pub sizes: Vec<u64>,
}

impl Kept {
    /// No classes yet, of `policy`.
    pub fn new(data: &Data, policy: &[u8]) -> Self {
        let keyed = data.input.key.keyed("class of a search");
        let of = |(position, (values, &level)): (usize, (&super::data::Values, &u8))| {
            let cells = &values.domain.levels()[usize::from(level)];
            let digest = |cell: u32| keyed.digest(format!("{position} {cell}").as_bytes());
            let of_cells: Vec<u128> = (0..cells.cells() as u32).map(digest).collect();
            let of_code = |&value: &u32| cells.cell_of.get(value as usize).map_or(0, |&cell| of_cells[cell as usize]);
            values.value_of.iter().map(of_code).collect()
        };
        let digests = data.quasi.iter().zip(policy).enumerate().map(of).collect();
        let (numbers, printed, sizes) = (HashMap::default(), HashMap::default(), Vec::new());
        Self { policy: policy.to_vec(), digests, numbers, printed, sizes }
    }

    /// Adds the class of a row with these values.
    pub fn add(&mut self, data: &Data, values: &[u32], records: u64) {
        let code = |(position, &value): (usize, &u32)| -> Code { data.quasi[position].codes[value as usize] };
        let codes: Vec<Code> = values.iter().enumerate().map(code).collect();
        let printed =
            data.input.quasi.iter().zip(&codes).zip(&self.policy).fold(0u128, |sum, ((&a, &code), &level)| {
                let book = &data.input.books[a];
                sum.wrapping_add(book.digest(book.cell(code, usize::from(level))))
            });
        let next = self.sizes.len() as u32;
        let number = match self.printed.entry(printed) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.sizes.push(0);
                *new.insert(next)
            }
        };
        self.sizes[number as usize] += records;
        let key = self.key(codes.iter().copied());
        self.numbers.insert(key, number);
    }

    /// All classes are in: what is only needed to add some goes.
    pub fn close(&mut self) {
        self.printed = HashMap::default();
    }

    fn key(&self, codes: impl Iterator<Item = Code>) -> u128 {
        codes.zip(&self.digests).fold(0, |sum: u128, (code, digests)| sum.wrapping_add(digests[code as usize]))
    }

    /// The class of a record of `block`, whose first codes are those of the quasi attributes; none where it does not leave.
    #[inline]
    pub fn class(&self, block: &Block, at: u32) -> Option<u32> {
        let key = self.key(block.codes[..self.digests.len()].iter().map(|codes| codes[at as usize]));
        self.numbers.get(&key).copied()
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let entries = (self.numbers.capacity() + self.printed.capacity()) as u64;
        entries * 33 + (self.sizes.capacity() * size_of::<u64>()) as u64
    }
}
