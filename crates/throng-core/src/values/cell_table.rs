//! Releasable texts of one attribute with the digests of their values, as a bijection.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use crate::values::digest::KeyedDigest;

/// Number of a generalized value.
pub type CellId = u32;
/// Suppressed value, `*`.
pub const SUPPRESSED: CellId = 0;
/// Missing value, `null`.
pub const MISSING: CellId = 1;
/// Omitted key.
pub const OMITTED: CellId = 2;

const TEXT_OVERHEAD: usize = 24;

#[derive(Clone, Debug)]
pub struct CellEntry {
    pub text: Box<str>,
    pub digest: u128,
    pub loss: f32,
    pub exact: bool,
}

#[derive(Clone, Debug)]
pub struct CellTable {
    cells: Vec<CellEntry>,
    by_text: HashTable<CellId>,
    by_digest: HashTable<CellId>,
    hasher: DefaultHashBuilder,
    text_bytes: usize,
}

impl CellTable {
    /// Creates the three fixed cells.
    pub fn new(keyed: &KeyedDigest) -> Self {
        let mut cells = Self {
            cells: Vec::new(),
            by_text: HashTable::new(),
            by_digest: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            text_bytes: 0,
        };
        for (text, set, loss, exact) in
            [("\"*\"", "suppressed", 1.0, false), ("null", "missing", 0.0, true), ("", "omitted", 0.0, true)]
        {
            let id = cells.insert(text, keyed.digest(set.as_bytes()), loss, exact);
            debug_assert!(id.is_some());
        }
        cells
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    pub fn find(&self, text: &str) -> Option<CellId> {
        let same = |&id: &CellId| &*self.cells[id as usize].text == text;
        self.by_text.find(self.hasher.hash_one(text), same).copied()
    }

    /// Returns or adds a cell; none if another cell has the text or the coverage.
    pub fn insert(&mut self, text: &str, digest: u128, loss: f32, exact: bool) -> Option<CellId> {
        let same = |&id: &CellId| self.cells[id as usize].digest == digest;
        let covered = self.by_digest.find(spread(digest), same).copied();
        match (self.find(text), covered) {
            (Some(named), Some(covered)) => return (named == covered).then_some(named),
            (None, None) => {}
            _ => return None,
        }
        let id = CellId::try_from(self.cells.len()).ok()?;
        self.cells.push(CellEntry { text: text.into(), digest, loss, exact });
        self.text_bytes += text.len();
        let Self { cells, hasher, .. } = self;
        self.by_text.insert_unique(hasher.hash_one(text), id, |&id| hasher.hash_one(&*cells[id as usize].text));
        self.by_digest.insert_unique(spread(digest), id, |&id| spread(cells[id as usize].digest));
        Some(id)
    }

    /// Keeps the fixed cells and those in `used`. Returns the new numbers.
    pub fn retain(&mut self, used: &[bool]) -> Vec<CellId> {
        let mut map = vec![CellId::MAX; self.cells.len()];
        let old = std::mem::take(&mut self.cells);
        self.by_text.clear();
        self.by_digest.clear();
        self.text_bytes = 0;
        for (index, cell) in old.into_iter().enumerate() {
            if index <= OMITTED as usize || used.get(index).copied().unwrap_or(false) {
                // A subset of a bijection is a bijection.
                if let Some(id) = self.insert(&cell.text, cell.digest, cell.loss, cell.exact) {
                    map[index] = id;
                }
            }
        }
        self.cells.shrink_to_fit();
        let Self { cells, hasher, .. } = self;
        self.by_text.shrink_to_fit(|&id| hasher.hash_one(&*cells[id as usize].text));
        self.by_digest.shrink_to_fit(|&id| spread(cells[id as usize].digest));
        map
    }

    pub fn get(&self, id: CellId) -> &CellEntry {
        &self.cells[id as usize]
    }

    pub fn bytes(&self) -> usize {
        self.text_bytes
            + self.cells.len() * TEXT_OVERHEAD
            + self.cells.capacity() * size_of::<CellEntry>()
            + self.by_text.allocation_size()
            + self.by_digest.allocation_size()
    }
}

/// Digests are uniform.
fn spread(digest: u128) -> u64 {
    digest as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::digest::DigestKey;

    #[test]
    fn text_and_coverage_stay_a_bijection() {
        let mut cells = CellTable::new(&KeyedDigest::new(&DigestKey([7; 32]), "a"));
        let id = cells.insert("1", 10, 0.0, true).unwrap();
        assert_eq!(cells.insert("1", 10, 0.0, true), Some(id));
        assert_eq!(cells.insert("1", 11, 0.0, true), None);
        assert_eq!(cells.insert("2", 10, 0.0, true), None);
        assert_eq!(cells.insert("null", 12, 0.0, true), None);
        assert_eq!(cells.find("null"), Some(MISSING));
        assert_eq!(cells.find("1"), Some(id));
        let other = cells.insert("3", 13, 0.5, false).unwrap();
        let mut used = vec![false; cells.len()];
        used[other as usize] = true;
        let map = cells.retain(&used);
        assert_eq!(map[id as usize], CellId::MAX);
        assert_eq!((&*cells.get(map[other as usize]).text, cells.get(map[other as usize]).digest), ("3", 13));
        assert_eq!((&*cells.get(SUPPRESSED).text, &*cells.get(OMITTED).text), ("\"*\"", ""));
        assert_eq!(cells.find("1"), None);
    }
}
