//! How many pairs of a block have a count.

use throng_core::values::codebook::Code;

/// How many partners each value has, kept with every edge that appears or goes: what the inference is made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Degrees {
    pub(super) edges: u64,
    pub(super) x: Vec<u32>,
    pub(super) y: Vec<u32>,
}

impl Degrees {
    pub(super) fn ensure(&mut self, xs: usize, ys: usize) {
        self.x.resize(self.x.len().max(xs), 0);
        self.y.resize(self.y.len().max(ys), 0);
    }

    /// To be told of every cell that was or becomes 0. A cell that was and stays 0 changes nothing.
    #[inline(never)]
    pub(super) fn turned(&mut self, x: Code, y: Code, before: u32, after: u32) {
        let (x, y) = (&mut self.x[x as usize], &mut self.y[y as usize]);
        match (before, after) {
            (0, 0) => {}
            (0, _) => (self.edges, *x, *y) = (self.edges + 1, *x + 1, *y + 1),
            (_, 0) => (self.edges, *x, *y) = (self.edges - 1, *x - 1, *y - 1),
            _ => {}
        }
    }
}

/// A count before and after one more record, or one less. Wraps, so that the opposite undoes it exactly whatever it was.
#[inline]
pub(super) fn changed<const SUBTRACT: bool>(count: &mut u32) -> (u32, u32) {
    let before = *count;
    *count = if SUBTRACT { before.wrapping_sub(1) } else { before.wrapping_add(1) };
    (before, *count)
}
