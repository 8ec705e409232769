//! Records n(u) per window value, the basis of drift.

use throng_core::values::codebook::Code;
use throng_risk::adjacency::{Adjacency, MAX_CODES};

#[derive(Clone, Debug, Default)]
pub(super) struct ValueMarginals {
    counts: Vec<Vec<u64>>,
    records: u64,
}

impl ValueMarginals {
    pub fn new(attributes: usize) -> Self {
        Self { counts: vec![Vec::new(); attributes], records: 0 }
    }

    /// Copies adjacency counts.
    pub fn of(adjacency: &Adjacency) -> Self {
        let mut all = Self::new(adjacency.attributes().len());
        for (node, n) in adjacency.nodes() {
            if let Ok(place) = adjacency.attributes().binary_search(&node.attribute) {
                let counts = &mut all.counts[place];
                counts.resize(counts.len().max(node.code as usize + 1), 0);
                counts[node.code as usize] = n;
            }
        }
        all.records = adjacency.records();
        all
    }

    /// Returns the counted records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns n(u).
    pub fn n(&self, place: usize, code: Code) -> u64 {
        self.counts.get(place).and_then(|counts| counts.get(code as usize)).copied().unwrap_or(0)
    }

    /// Adds records, one column per attribute.
    pub fn add<'a>(&mut self, columns: impl Iterator<Item = &'a [Code]>) {
        let mut rows = 0;
        for (counts, column) in self.counts.iter_mut().zip(columns) {
            rows = column.len() as u64;
            let codes = column.iter().max().map_or(0, |code| *code as usize + 1);
            counts.resize(counts.len().max(codes), 0);
            column.iter().for_each(|code| counts[*code as usize] += 1);
        }
        self.records += rows;
    }

    /// Subtracts records.
    pub fn subtract<'a>(&mut self, columns: impl Iterator<Item = &'a [Code]>) {
        let mut rows = 0;
        for (counts, column) in self.counts.iter_mut().zip(columns) {
            rows = column.len() as u64;
            for code in column {
                let count = &mut counts[*code as usize];
                *count = count.saturating_sub(1);
            }
        }
        self.records = self.records.saturating_sub(rows);
    }

    /// Renumbers codes; `map` is old → new. Missing values are dropped.
    pub fn remap(&mut self, place: usize, map: &[Code]) {
        let mut renumbered = Vec::new();
        for (code, n) in self.counts[place].iter().enumerate().filter(|(_, n)| **n > 0) {
            if let Some(new) = map.get(code).filter(|new| **new < MAX_CODES) {
                let new = *new as usize;
                renumbered.resize(renumbered.len().max(new + 1), 0);
                renumbered[new] += n;
            }
        }
        self.counts[place] = renumbered;
    }
}
