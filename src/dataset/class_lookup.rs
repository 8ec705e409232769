//! Released classes, and the class of each record, found by the sum of keyed digests of its cells, pass after pass.
//! Found classes that print the same text are merged.

use super::code_store::RecordBlock;
use super::encoded_dataset::{DatasetValues, EncodedDataset};
use hashbrown::HashMap;
use throng_core::lattice::recoding_passes::LocalRecodingResult;
use throng_core::lattice::row_decisions::DecidedClass;
use throng_core::lattice::table::LatticeTable;
use throng_core::values::codebook::{CellId, Code, Codebook};
use throng_core::values::digest::BuildClassKeyHash;

/// Class refused by a model; no later pass takes its records.
const REFUSED_CLASS: u32 = u32::MAX;

/// Policy and classes of a pass.
struct PassClasses {
    policy: Vec<u8>,
    /// Per quasi attribute and code.
    digests: Vec<Vec<u128>>,
    /// Found class, or [`REFUSED_CLASS`], per sum of digests.
    numbers: HashMap<u128, u32, BuildClassKeyHash>,
}

/// Released classes.
pub struct ReleasedClasses {
    passes: Vec<PassClasses>,
    /// Printed cells per found class.
    cells: Vec<CellId>,
    /// Records per found class.
    records: Vec<u64>,
    /// Merged class per found class.
    class_of: Vec<u32>,
    /// Records per merged class.
    pub sizes: Vec<u64>,
}

impl ReleasedClasses {
    /// Builds the classes of `recoded` from `table`.
    pub fn of(data: &EncodedDataset, table: &LatticeTable, recoded: &LocalRecodingResult) -> Self {
        let mut kept = Self::new(data, recoded.passes.iter().map(|pass| &*pass.policy));
        let mut values = vec![0; data.quasi.len()];
        for (pass, class) in &recoded.classes {
            table.values(class.row, &mut values);
            kept.add(data, usize::from(*pass), &values, *class);
        }
        kept.merge_equal_classes(&data.input.books, &data.input.quasi);
        kept
    }

    /// Creates an empty set for these policies.
    pub fn new<'p>(data: &EncodedDataset, policies: impl Iterator<Item = &'p [u8]>) -> Self {
        let keyed = data.input.key.keyed_digest("class of a search");
        let of = |(position, (values, &level)): (usize, (&DatasetValues, &u8))| {
            let cells = &values.domain.levels()[usize::from(level)];
            let digest = |cell: u32| keyed.digest(format!("{position} {cell}").as_bytes());
            let of_cells: Vec<u128> = (0..cells.cells() as u32).map(digest).collect();
            let of_code = |&value: &u32| cells.cell_of.get(value as usize).map_or(0, |&cell| of_cells[cell as usize]);
            values.value_of.iter().map(of_code).collect()
        };
        let pass = |policy: &[u8]| PassClasses {
            policy: policy.to_vec(),
            digests: data.quasi.iter().zip(policy).enumerate().map(of).collect(),
            numbers: HashMap::default(),
        };
        let passes = policies.map(pass).collect();
        Self { passes, cells: Vec::new(), records: Vec::new(), class_of: Vec::new(), sizes: Vec::new() }
    }

    /// Adds a class of a pass, represented by one row.
    pub fn add(&mut self, data: &EncodedDataset, pass: usize, values: &[u32], class: DecidedClass) {
        let pass = &mut self.passes[pass];
        let code = |(values, &value): (&DatasetValues, &u32)| -> Code { values.codes[value as usize] };
        let codes: Vec<Code> = data.quasi.iter().zip(values).map(code).collect();
        let number = if class.is_class_released { self.records.len() as u32 } else { REFUSED_CLASS };
        pass.numbers.insert(pass.key(codes.iter().copied()), number);
        if class.is_class_released {
            self.records.push(class.records);
            let cells = data.input.quasi.iter().zip(&codes).zip(&pass.policy);
            self.cells.extend(cells.map(|((&a, &code), &level)| data.input.books[a].cell(code, usize::from(level))));
        }
    }

    /// Merges classes with the same text, after all are added, and after each replacement.
    pub fn merge_equal_classes(&mut self, books: &[Codebook], quasi: &[usize]) {
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

    /// Returns the number of found classes.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the found class of a released record. The block's first codes are the quasi attributes.
    #[inline]
    pub fn found_class(&self, block: &RecordBlock, at: u32) -> Option<u32> {
        for pass in &self.passes {
            let key = pass.key(block.codes[..pass.digests.len()].iter().map(|codes| codes[at as usize]));
            if let Some(&number) = pass.numbers.get(&key) {
                return (number != REFUSED_CLASS).then_some(number);
            }
        }
        None
    }

    /// Returns the merged class.
    pub fn class_of(&self, found: u32) -> u32 {
        self.class_of[found as usize]
    }

    /// Returns the printed cells.
    pub fn cells(&self, found: u32) -> &[CellId] {
        let width = self.passes.first().map_or(0, |pass| pass.policy.len());
        &self.cells[found as usize * width..][..width]
    }

    /// Returns a cell for replacement; then call [`merge_equal_classes`](Self::merge_equal_classes).
    pub fn cell_mut(&mut self, found: u32, quasi: usize) -> &mut CellId {
        let width = self.passes.first().map_or(0, |pass| pass.policy.len());
        &mut self.cells[found as usize * width + quasi]
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> u64 {
        let entries: usize = self.passes.iter().map(|pass| pass.numbers.capacity()).sum();
        let classes = size_of::<CellId>() * self.cells.capacity() + 12 * self.records.capacity();
        (entries * 33 + classes + size_of::<u64>() * self.sizes.capacity()) as u64
    }
}

impl PassClasses {
    fn key(&self, codes: impl Iterator<Item = Code>) -> u128 {
        codes.zip(&self.digests).fold(0, |sum: u128, (code, digests)| sum.wrapping_add(digests[code as usize]))
    }
}
