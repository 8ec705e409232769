//! The counts of one pair of attributes: `n(u,v)`, and how many partners each value has.

use super::degrees::Degrees;
use super::dense::Dense;
use super::sparse::Sparse;
use throng_core::values::codebook::Code;

/// Domains up to this many cells are dense from the start.
const SMALL: usize = 1 << 10;

/// A dense table of more cells than this for each edge gives way to a sparse one. A dense cell takes 4 bytes, a sparse edge
/// 13 to 30, and more time.
const CELLS_AN_EDGE: usize = 8;

#[derive(Clone, Debug)]
pub(super) enum Cells {
    Dense(Dense),
    Sparse(Sparse),
}

/// Edges between the values x of one attribute and y of another.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) cells: Cells,
    pub(super) degrees: Degrees,
}

impl Default for Cells {
    fn default() -> Self {
        Cells::Dense(Dense::default())
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.edges() == other.edges() && self.all().all(|(x, y, n)| other.get(x, y) == n)
    }
}

impl Block {
    pub(super) fn edges(&self) -> u64 {
        self.degrees.edges
    }

    pub(super) fn get(&self, x: Code, y: Code) -> u32 {
        match &self.cells {
            Cells::Dense(dense) => dense.get(x, y),
            Cells::Sparse(sparse) => sparse.get(x, y),
        }
    }

    /// Partners of a value, of the first attribute or of the second.
    pub(super) fn degree(&self, code: Code, first: bool) -> u32 {
        self.partners(first).get(code as usize).copied().unwrap_or(0)
    }

    /// Partners of every value of one side.
    pub(super) fn partners(&self, first: bool) -> &[u32] {
        if first { &self.degrees.x } else { &self.degrees.y }
    }

    pub(super) fn bytes(&self) -> usize {
        let cells = match &self.cells {
            Cells::Dense(dense) => dense.bytes(),
            Cells::Sparse(sparse) => sparse.bytes(),
        };
        cells + (self.degrees.x.capacity() + self.degrees.y.capacity()) * size_of::<u32>()
    }

    /// Every edge, in no particular order.
    pub(super) fn all(&self) -> Box<dyn Iterator<Item = (Code, Code, u32)> + '_> {
        match &self.cells {
            Cells::Dense(dense) => Box::new(dense.all()),
            Cells::Sparse(sparse) => sparse.all(),
        }
    }

    /// Every edge, ascending.
    pub(super) fn sorted(&self) -> Vec<(Code, Code, u32)> {
        let mut edges: Vec<_> = self.all().collect();
        if matches!(self.cells, Cells::Sparse(_)) {
            edges.sort_unstable();
        }
        edges
    }

    /// The partners of a value, ascending.
    pub(super) fn edges_of(&self, code: Code, first: bool) -> Vec<(Code, u32)> {
        let others = (0..).zip(self.partners(!first)).filter(|(_, degree)| **degree > 0);
        let count = |other| if first { self.get(code, other) } else { self.get(other, code) };
        let edges = others.map(|(other, _)| (other, count(other))).filter(|(_, n)| *n > 0);
        edges.take(self.degree(code, first) as usize).collect()
    }

    /// Makes room for codes below `xs` and `ys`.
    pub(super) fn ensure(&mut self, xs: usize, ys: usize) {
        self.degrees.ensure(xs, ys);
        match &mut self.cells {
            Cells::Sparse(sparse) => sparse.ensure(xs, ys),
            Cells::Dense(dense) if worth_dense(xs, ys, self.degrees.edges) || xs.saturating_mul(ys) <= SMALL => {
                dense.ensure(xs, ys);
            }
            Cells::Dense(dense) if !dense.fits(xs, ys) => self.cells = Cells::Sparse(Sparse::of(dense.all(), xs, ys)),
            Cells::Dense(_) => {}
        }
    }

    /// Becomes dense where that is worth its memory.
    pub(super) fn settle(&mut self) {
        if let Cells::Sparse(sparse) = &self.cells {
            let (xs, ys) = (self.degrees.x.len(), self.degrees.y.len());
            if worth_dense(xs, ys, self.degrees.edges) {
                let mut dense = Dense::default();
                dense.ensure(xs, ys);
                sparse.all().for_each(|(x, y, n)| *dense.cell(x, y) = n);
                self.cells = Cells::Dense(dense);
            }
        }
    }

    /// Adds `n` to one edge. The codes have room.
    pub(super) fn raise(&mut self, x: Code, y: Code, n: u32) {
        let cell = match &mut self.cells {
            Cells::Dense(dense) => dense.cell(x, y),
            Cells::Sparse(sparse) => sparse.cell(x, y),
        };
        let before = *cell;
        *cell = before.wrapping_add(n);
        let after = *cell;
        self.degrees.turned(x, y, before, after);
    }

    /// A block of these edges, with room for codes below `xs` and `ys`; equal ones are added up.
    pub(super) fn of(edges: impl Iterator<Item = (Code, Code, u32)>, xs: usize, ys: usize) -> Self {
        let mut block = Self::default();
        block.ensure(xs, ys);
        edges.filter(|(_, _, n)| *n > 0).for_each(|(x, y, n)| block.raise(x, y, n));
        block.settle();
        block
    }
}

fn worth_dense(xs: usize, ys: usize, edges: u64) -> bool {
    xs.saturating_mul(ys) as u64 <= edges.saturating_mul(CELLS_AN_EDGE as u64)
}
