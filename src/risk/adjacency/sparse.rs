//! A hash table of the pairs of values that exist.

use super::block::{Degrees, changed};
use crate::records::codebook::Code;

#[derive(Clone, Copy, Debug)]
struct Slot {
    x: Code,
    y: Code,
    n: u32,
}

/// A slot that nothing has claimed; no code is as large.
const VACANT: Slot = Slot { x: Code::MAX, y: 0, n: 0 };

/// Slots at first.
const LEAST: usize = 16;

/// Records whose slots are fetched before the first of them is counted.
const AHEAD: usize = 64;

/// Open addressing with linear probing. A count that falls to 0 keeps its slot until the table is laid out anew, which
/// happens when four of five slots are claimed: a slot is 12 bytes, so an edge takes 15 to 21.
#[derive(Clone, Debug)]
pub(super) struct Sparse {
    slots: Vec<Slot>,
    claimed: usize,
}

impl Default for Sparse {
    fn default() -> Self {
        Self { slots: vec![VACANT; LEAST], claimed: 0 }
    }
}

impl Sparse {
    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// Every edge, in no particular order.
    pub(super) fn all(&self) -> impl Iterator<Item = (Code, Code, u32)> + '_ {
        self.slots.iter().filter(|slot| slot.n > 0).map(|slot| (slot.x, slot.y, slot.n))
    }

    pub(super) fn get(&self, x: Code, y: Code) -> u32 {
        // Of a vacant slot the count is 0.
        self.slots[self.find(x, y)].n
    }

    /// Where a pair is looked for first. Fibonacci hashing, the product scaled to the length.
    #[inline]
    fn home(&self, x: Code, y: Code) -> usize {
        let key = u64::from(x) << 32 | u64::from(y);
        let hash = (key ^ key >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (hash * self.slots.len() as u64 >> 32) as usize
    }

    /// The slot of a pair, or the vacant one where it would be.
    #[inline]
    fn find(&self, x: Code, y: Code) -> usize {
        let mut at = self.home(x, y);
        loop {
            let slot = &self.slots[at];
            if slot.x == x && slot.y == y || slot.x == VACANT.x {
                return at;
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    /// The count of a pair, in a slot of its own from now on.
    #[inline]
    pub(super) fn cell(&mut self, x: Code, y: Code) -> &mut u32 {
        let mut at = self.find(x, y);
        if self.slots[at].x == VACANT.x {
            at = self.claim(x, y, at);
        }
        &mut self.slots[at].n
    }

    fn claim(&mut self, x: Code, y: Code, mut at: usize) -> usize {
        if (self.claimed + 1) * 5 > self.slots.len() * 4 {
            self.lay_out();
            at = self.find(x, y);
        }
        self.claimed += 1;
        self.slots[at] = Slot { x, y, n: 0 };
        at
    }

    /// Four sevenths full of what still counts.
    fn lay_out(&mut self) {
        let live: Vec<Slot> = self.slots.iter().copied().filter(|slot| slot.n > 0).collect();
        self.slots = vec![VACANT; (live.len() * 7 / 4).max(LEAST)];
        self.claimed = live.len();
        for slot in live {
            let at = self.find(slot.x, slot.y);
            self.slots[at] = slot;
        }
    }

    /// Counts records; true where a count fell below nothing.
    pub(super) fn count<const SUBTRACT: bool>(
        &mut self,
        xs: &[Code],
        ys: &[Code],
        weight: u32,
        degrees: &mut Degrees,
    ) -> bool {
        let mut below = false;
        for (xs, ys) in xs.chunks(AHEAD).zip(ys.chunks(AHEAD)) {
            // Only to have the lines on their way, all at once: nothing in here waits for one of them.
            let near = |(x, y): (&Code, &Code)| self.slots[self.home(*x, *y)].x;
            std::hint::black_box(xs.iter().zip(ys).map(near).fold(0, |all, x| all ^ x));
            for (&x, &y) in xs.iter().zip(ys) {
                let (before, after) = changed::<SUBTRACT>(self.cell(x, y), weight);
                below |= SUBTRACT && before < weight;
                if before == 0 || after == 0 {
                    degrees.turned(x, y, before, after);
                }
            }
        }
        below
    }
}

impl FromIterator<(Code, Code, u32)> for Sparse {
    fn from_iter<I: IntoIterator<Item = (Code, Code, u32)>>(edges: I) -> Self {
        let mut sparse = Self::default();
        edges.into_iter().for_each(|(x, y, n)| *sparse.cell(x, y) = n);
        sparse
    }
}
