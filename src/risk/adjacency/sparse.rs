//! A hash table of the pairs of values that exist.

use super::block::{Degrees, Step};
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

/// Open addressing with linear probing. A count that falls to 0 keeps its slot until the table is laid out anew, which
/// happens when three of four slots are claimed.
#[derive(Clone, Debug)]
pub(super) struct Sparse {
    slots: Vec<Slot>,
    claimed: usize,
    shift: u32,
}

impl Default for Sparse {
    fn default() -> Self {
        Self { slots: vec![VACANT; LEAST], claimed: 0, shift: 64 - LEAST.trailing_zeros() }
    }
}

impl Sparse {
    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (Code, Code, u32)> + '_ {
        self.slots.iter().filter(|slot| slot.n > 0).map(|slot| (slot.x, slot.y, slot.n))
    }

    pub(super) fn get(&self, x: Code, y: Code) -> u32 {
        let slot = &self.slots[self.find(x, y)];
        if slot.x == x && slot.y == y { slot.n } else { 0 }
    }

    /// The slot of a pair, or the vacant one where it would be.
    #[inline]
    fn find(&self, x: Code, y: Code) -> usize {
        let key = u64::from(x) << 32 | u64::from(y);
        // Fibonacci hashing: the high bits of the product depend on all bits of the key.
        let mut at = ((key ^ key >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        loop {
            let slot = &self.slots[at];
            if slot.x == x && slot.y == y || slot.x == VACANT.x {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// The count of a pair, claimed if it has none yet.
    #[inline]
    pub(super) fn cell(&mut self, x: Code, y: Code) -> &mut u32 {
        let mut at = self.find(x, y);
        if self.slots[at].x == VACANT.x {
            at = self.claim(x, y, at);
        }
        &mut self.slots[at].n
    }

    #[cold]
    fn claim(&mut self, x: Code, y: Code, mut at: usize) -> usize {
        if (self.claimed + 1) * 4 > self.slots.len() * 3 {
            self.lay_out();
            at = self.find(x, y);
        }
        self.claimed += 1;
        self.slots[at] = Slot { x, y, n: 0 };
        at
    }

    /// Half-full of what still counts.
    fn lay_out(&mut self) {
        let live: Vec<Slot> = self.slots.iter().copied().filter(|slot| slot.n > 0).collect();
        let size = (live.len() * 2).next_power_of_two().max(LEAST);
        self.slots.clear();
        self.slots.shrink_to(size);
        self.slots.resize(size, VACANT);
        self.shift = 64 - size.trailing_zeros();
        self.claimed = live.len();
        for slot in live {
            let at = self.find(slot.x, slot.y);
            self.slots[at] = slot;
        }
    }

    pub(super) fn count(&mut self, xs: &[Code], ys: &[Code], step: Step, degrees: &mut Degrees) -> bool {
        let mut below = false;
        for (&x, &y) in xs.iter().zip(ys) {
            let cell = self.cell(x, y);
            let before = *cell;
            let after = match step {
                Step::Add(weight) => before.wrapping_add(weight),
                Step::Subtract(weight) => {
                    below |= before < weight;
                    before.wrapping_sub(weight)
                }
            };
            *cell = after;
            if before == 0 || after == 0 {
                degrees.turned(x, y, before, after);
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
