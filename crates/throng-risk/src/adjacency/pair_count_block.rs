//! Counts and degrees of one pair of attributes.

use super::degrees::PartnerDegrees;
use super::dense::DensePairCounts;
use super::sparse::SparsePairCounts;
use throng_core::values::codebook::Code;

/// Largest table that always stays dense.
const MAX_DENSE_CELLS: usize = 1 << 10;

/// Most dense cells per edge. A cell takes 4 bytes, a sparse edge 13 to 30.
const MAX_CELLS_PER_EDGE: usize = 8;

#[derive(Clone, Debug)]
pub(super) enum PairCountTable {
    Dense(DensePairCounts),
    Sparse(SparsePairCounts),
}

#[derive(Clone, Debug, Default)]
pub(super) struct PairCountBlock {
    pub(super) cells: PairCountTable,
    pub(super) degrees: PartnerDegrees,
}

impl Default for PairCountTable {
    fn default() -> Self {
        PairCountTable::Dense(DensePairCounts::default())
    }
}

impl PartialEq for PairCountBlock {
    fn eq(&self, other: &Self) -> bool {
        self.edges() == other.edges() && self.all_edges().all(|(x, y, n)| other.get(x, y) == n)
    }
}

impl PairCountBlock {
    pub(super) fn edges(&self) -> u64 {
        self.degrees.edges
    }

    pub(super) fn get(&self, x: Code, y: Code) -> u32 {
        match &self.cells {
            PairCountTable::Dense(dense) => dense.get(x, y),
            PairCountTable::Sparse(sparse) => sparse.get(x, y),
        }
    }

    pub(super) fn degree(&self, code: Code, first: bool) -> u32 {
        self.partners(first).get(code as usize).copied().unwrap_or(0)
    }

    /// Number of partners of each value of one side.
    pub(super) fn partners(&self, first: bool) -> &[u32] {
        if first { &self.degrees.x } else { &self.degrees.y }
    }

    pub(super) fn bytes(&self) -> usize {
        let cells = match &self.cells {
            PairCountTable::Dense(dense) => dense.bytes(),
            PairCountTable::Sparse(sparse) => sparse.bytes(),
        };
        cells + (self.degrees.x.capacity() + self.degrees.y.capacity()) * size_of::<u32>()
    }

    pub(super) fn all_edges(&self) -> Box<dyn Iterator<Item = (Code, Code, u32)> + '_> {
        match &self.cells {
            PairCountTable::Dense(dense) => Box::new(dense.all()),
            PairCountTable::Sparse(sparse) => sparse.all(),
        }
    }

    pub(super) fn sorted_edges(&self) -> Vec<(Code, Code, u32)> {
        let mut edges: Vec<_> = self.all_edges().collect();
        if matches!(self.cells, PairCountTable::Sparse(_)) {
            edges.sort_unstable();
        }
        edges
    }

    pub(super) fn edges_of(&self, code: Code, first: bool) -> Vec<(Code, u32)> {
        let others = (0..).zip(self.partners(!first)).filter(|(_, degree)| **degree > 0);
        let count = |other| if first { self.get(code, other) } else { self.get(other, code) };
        let edges = others.map(|(other, _)| (other, count(other))).filter(|(_, n)| *n > 0);
        edges.take(self.degree(code, first) as usize).collect()
    }

    pub(super) fn ensure(&mut self, xs: usize, ys: usize) {
        self.degrees.ensure(xs, ys);
        match &mut self.cells {
            PairCountTable::Sparse(sparse) => sparse.ensure(xs, ys),
            PairCountTable::Dense(dense)
                if dense_saves_memory(xs, ys, self.degrees.edges) || xs.saturating_mul(ys) <= MAX_DENSE_CELLS =>
            {
                dense.ensure(xs, ys);
            }
            PairCountTable::Dense(dense) if !dense.fits(xs, ys) => {
                self.cells = PairCountTable::Sparse(SparsePairCounts::of(dense.all(), xs, ys));
            }
            PairCountTable::Dense(_) => {}
        }
    }

    pub(super) fn densify_if_smaller(&mut self) {
        if let PairCountTable::Sparse(sparse) = &self.cells {
            let (xs, ys) = (self.degrees.x.len(), self.degrees.y.len());
            if dense_saves_memory(xs, ys, self.degrees.edges) {
                let mut dense = DensePairCounts::default();
                dense.ensure(xs, ys);
                sparse.all().for_each(|(x, y, n)| *dense.cell(x, y) = n);
                self.cells = PairCountTable::Dense(dense);
            }
        }
    }

    /// Both codes must have room.
    pub(super) fn add_to_edge(&mut self, x: Code, y: Code, n: u32) {
        let cell = match &mut self.cells {
            PairCountTable::Dense(dense) => dense.cell(x, y),
            PairCountTable::Sparse(sparse) => sparse.cell(x, y),
        };
        let before = *cell;
        *cell = before.wrapping_add(n);
        let after = *cell;
        self.degrees.record_transition(x, y, before, after);
    }

    /// Makes room for codes below `xs` and `ys`; sums counts of equal edges.
    pub(super) fn of(edges: impl Iterator<Item = (Code, Code, u32)>, xs: usize, ys: usize) -> Self {
        let mut block = Self::default();
        block.ensure(xs, ys);
        edges.filter(|(_, _, n)| *n > 0).for_each(|(x, y, n)| block.add_to_edge(x, y, n));
        block.densify_if_smaller();
        block
    }
}

fn dense_saves_memory(xs: usize, ys: usize, edges: u64) -> bool {
    xs.saturating_mul(ys) as u64 <= edges.saturating_mul(MAX_CELLS_PER_EDGE as u64)
}
