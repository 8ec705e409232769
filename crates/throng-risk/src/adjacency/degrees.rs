//! Degrees of one block.

use throng_core::values::codebook::Code;

#[derive(Clone, Debug, Default)]
pub(super) struct PartnerDegrees {
    pub(super) edges: u64,
    pub(super) x: Vec<u32>,
    pub(super) y: Vec<u32>,
}

impl PartnerDegrees {
    pub(super) fn ensure(&mut self, xs: usize, ys: usize) {
        self.x.resize(self.x.len().max(xs), 0);
        self.y.resize(self.y.len().max(ys), 0);
    }

    /// Updates the degrees after the count of an edge changed.
    #[inline(never)]
    pub(super) fn record_transition(&mut self, x: Code, y: Code, before: u32, after: u32) {
        let (x, y) = (&mut self.x[x as usize], &mut self.y[y as usize]);
        match (before, after) {
            (0, 0) => {}
            (0, _) => (self.edges, *x, *y) = (self.edges + 1, *x + 1, *y + 1),
            (_, 0) => (self.edges, *x, *y) = (self.edges - 1, *x - 1, *y - 1),
            _ => {}
        }
    }
}

/// Returns the count before and after. Wraps, so the opposite call undoes it.
#[inline]
pub(super) fn step_count<const SUBTRACT: bool>(count: &mut u32) -> (u32, u32) {
    let before = *count;
    *count = if SUBTRACT { before.wrapping_sub(1) } else { before.wrapping_add(1) };
    (before, *count)
}
