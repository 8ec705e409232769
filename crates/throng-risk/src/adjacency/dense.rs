//! Dense table of pair counts.

use super::degrees::{PartnerDegrees, step_count};
use throng_core::values::codebook::Code;

/// Row-major cells, `stride` per row.
#[derive(Clone, Debug, Default)]
pub(super) struct DensePairCounts {
    stride: usize,
    cells: Vec<u32>,
}

impl DensePairCounts {
    pub(super) fn get(&self, x: Code, y: Code) -> u32 {
        let (x, y) = (x as usize, y as usize);
        if y >= self.stride { 0 } else { self.cells.get(x * self.stride + y).copied().unwrap_or(0) }
    }

    pub(super) fn cell(&mut self, x: Code, y: Code) -> &mut u32 {
        &mut self.cells[x as usize * self.stride + y as usize]
    }

    pub(super) fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<u32>()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (Code, Code, u32)> + '_ {
        let rows = (0..).zip(self.cells.chunks_exact(self.stride.max(1)));
        rows.flat_map(|(x, row)| (0..).zip(row).filter(|(_, n)| **n > 0).map(move |(y, n)| (x, y, *n)))
    }

    pub(super) fn fits(&self, xs: usize, ys: usize) -> bool {
        ys <= self.stride && xs * self.stride <= self.cells.len()
    }

    /// Makes room for codes below `xs` and `ys`. Row width grows by half.
    pub(super) fn ensure(&mut self, xs: usize, ys: usize) {
        if self.fits(xs, ys) {
            return;
        }
        if ys > self.stride {
            let stride = if self.stride == 0 { ys } else { ys.max(self.stride + self.stride / 2) };
            let mut cells = vec![0; xs.max(self.cells.len() / self.stride.max(1)) * stride];
            let rows = self.cells.chunks_exact(self.stride.max(1));
            cells.chunks_exact_mut(stride).zip(rows).for_each(|(new, old)| new[..old.len()].copy_from_slice(old));
            (self.stride, self.cells) = (stride, cells);
        }
        self.cells.resize(self.cells.len().max(xs * self.stride), 0);
    }
}

pub(super) struct DenseTableLane<'a> {
    pub(super) dense: &'a mut DensePairCounts,
    pub(super) degrees: &'a mut PartnerDegrees,
    pub(super) ys: &'a [Code],
}

/// Returns true if a count underflowed. N tables overlap the latency of dependent updates.
pub(super) fn count<const N: usize, const SUBTRACT: bool>(lanes: [DenseTableLane<'_>; N], xs: &[Code]) -> bool {
    let mut below = false;
    let mut parts = lanes.map(|DenseTableLane { dense, degrees, ys }| {
        (dense.cells.as_mut_slice(), dense.stride, degrees, &ys[..xs.len()])
    });
    for row in 0..xs.len() {
        let x = xs[row];
        for (cells, stride, degrees, ys) in &mut parts {
            let y = ys[row];
            let cell = &mut cells[x as usize * *stride + y as usize];
            let (before, after) = step_count::<SUBTRACT>(cell);
            below |= SUBTRACT && before == 0;
            if before == 0 || after == 0 {
                degrees.record_transition(x, y, before, after);
            }
        }
    }
    below
}
