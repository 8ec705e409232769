//! The classes that leave by the policies of the passes, and which record is in which.
//!
//! A pass tells a class by one of its rows; a record finds it by a sum of keyed digests of its cells, pass after pass, as the ledger's classes
//! are found. Found classes that print the same are one class here.

use super::codes::Block;
use super::data::{Data, Values};
use crate::anonymity::lattice::passes::Recoded;
use crate::anonymity::lattice::settle::SettledClass;
use crate::anonymity::lattice::table::Table;
use hashbrown::HashMap;
use throng_core::values::codebook::{CellId, Code, Codebook};
use throng_core::values::digest::BuildClassKeyHash;

/// A class that a model refuses: its records are in no later pass.
const REFUSED: u32 = u32::MAX;

/// What one pass has settled.
struct Settled {
    policy: Vec<u8>,
    /// By quasi attribute and code: the digest of its cell.
    digests: Vec<Vec<u128>>,
    /// By the sum of these: the number of the class that was found, or [`REFUSED`].
    numbers: HashMap<u128, u32, BuildClassKeyHash>,
}

/// The classes that leave.
pub struct Kept {
    passes: Vec<Settled>,
    /// Of each class that was found: what its records print, by quasi attribute.
    cells: Vec<CellId>,
    /// Of each class that was found: its records.
    records: Vec<u64>,
    /// Of each class that was found: the class that it is a part of.
    class_of: Vec<u32>,
    /// By class: its records.
    pub sizes: Vec<u64>,
}

impl Kept {
    /// The classes of `recoded`, whose rows are those of `table`.
    pub fn of(data: &Data, table: &Table, recoded: &Recoded) -> Self {
        let mut kept = Self::new(data, recoded.passes.iter().map(|pass| &*pass.policy));
        let mut values = vec![0; data.quasi.len()];
        for (pass, class) in &recoded.classes {
            table.values(class.row, &mut values);
            kept.add(data, usize::from(*pass), &values, *class);
        }
        kept.join(&data.input.books, &data.input.quasi);
        kept
    }

    /// No classes yet, of these policies.
    pub fn new<'p>(data: &Data, policies: impl Iterator<Item = &'p [u8]>) -> Self {
        let keyed = data.input.key.keyed("class of a search");
        let of = |(position, (values, &level)): (usize, (&Values, &u8))| {
            let cells = &values.domain.levels()[usize::from(level)];
            let digest = |cell: u32| keyed.digest(format!("{position} {cell}").as_bytes());
            let of_cells: Vec<u128> = (0..cells.cells() as u32).map(digest).collect();
            let of_code = |&value: &u32| cells.cell_of.get(value as usize).map_or(0, |&cell| of_cells[cell as usize]);
            values.value_of.iter().map(of_code).collect()
        };
        let pass = |policy: &[u8]| Settled {
            policy: policy.to_vec(),
            digests: data.quasi.iter().zip(policy).enumerate().map(of).collect(),
            numbers: HashMap::default(),
        };
        let passes = policies.map(pass).collect();
        Self { passes, cells: Vec::new(), records: Vec::new(), class_of: Vec::new(), sizes: Vec::new() }
    }

    /// Adds a class of a pass, one row of which has these values.
    pub fn add(&mut self, data: &Data, pass: usize, values: &[u32], class: SettledClass) {
        let pass = &mut self.passes[pass];
        let code = |(values, &value): (&Values, &u32)| -> Code { values.codes[value as usize] };
        let codes: Vec<Code> = data.quasi.iter().zip(values).map(code).collect();
        let number = if class.leaves { self.records.len() as u32 } else { REFUSED };
        pass.numbers.insert(pass.key(codes.iter().copied()), number);
        if class.leaves {
            self.records.push(class.records);
            let cells = data.input.quasi.iter().zip(&codes).zip(&pass.policy);
            self.cells.extend(cells.map(|((&a, &code), &level)| data.input.books[a].cell(code, usize::from(level))));
        }
    }

    /// Joins the classes that print the same: once all are in, and again where cells have been replaced.
    pub fn join(&mut self, books: &[Codebook], quasi: &[usize]) {
        let mut printed: HashMap<u128, u32, BuildClassKeyHash> = HashMap::default();
        (self.class_of, self.sizes) = (Vec::with_capacity(self.records.len()), Vec::new());
        for (found, &records) in self.records.iter().enumerate() {
            let digests = quasi.iter().zip(self.cells(found as u32)).map(|(&a, &cell)| books[a].digest(cell));
            let key = digests.fold(0u128, u128::wrapping_add);
            let next = self.sizes.len() as u32;
            let class = *printed.entry(key).or_insert(next);
            if class == next {
                self.sizes.push(0);
            }
            self.sizes[class as usize] += records;
            self.class_of.push(class);
        }
    }

    /// Classes that were found.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// The class that a record of `block` was found in, whose first codes are those of the quasi attributes; none where it does not leave.
    #[inline]
    pub fn found(&self, block: &Block, at: u32) -> Option<u32> {
        for pass in &self.passes {
            let key = pass.key(block.codes[..pass.digests.len()].iter().map(|codes| codes[at as usize]));
            if let Some(&number) = pass.numbers.get(&key) {
                return (number != REFUSED).then_some(number);
            }
        }
        None
    }

    /// The class that a found one is a part of.
    pub fn class_of(&self, found: u32) -> u32 {
        self.class_of[found as usize]
    }

    /// What the records of a found class print, by quasi attribute.
    pub fn cells(&self, found: u32) -> &[CellId] {
        let width = self.passes.first().map_or(0, |pass| pass.policy.len());
        &self.cells[found as usize * width..][..width]
    }

    /// The same, to be replaced; [`join`](Self::join) follows.
    pub fn cell_mut(&mut self, found: u32, quasi: usize) -> &mut CellId {
        let width = self.passes.first().map_or(0, |pass| pass.policy.len());
        &mut self.cells[found as usize * width + quasi]
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let entries: usize = self.passes.iter().map(|pass| pass.numbers.capacity()).sum();
        let classes = size_of::<CellId>() * self.cells.capacity() + 12 * self.records.capacity();
        (entries * 33 + classes + size_of::<u64>() * self.sizes.capacity()) as u64
    }
}

impl Settled {
    fn key(&self, codes: impl Iterator<Item = Code>) -> u128 {
        codes.zip(&self.digests).fold(0, |sum: u128, (code, digests)| sum.wrapping_add(digests[code as usize]))
    }
}
