//! A hash table of the pairs of values that exist.

use super::degrees::{Degrees, changed};
use throng_core::values::codebook::Code;

/// Two codes as one key: as narrow as their domains allow, since a table of many edges is as slow as it is large.
pub(super) trait Key: Copy + Eq + Send + Sync {
    /// No pair of codes.
    const NONE: Self;
    fn of(x: Code, y: Code, y_bits: u32) -> Self;
    fn codes(self, y_bits: u32) -> (Code, Code);
    /// 32 bits that differ in their upper ones where keys differ anywhere.
    fn hash(self) -> u32;
}

impl Key for u32 {
    const NONE: Self = u32::MAX;

    #[inline]
    fn of(x: Code, y: Code, y_bits: u32) -> Self {
        x << y_bits | y
    }

    fn codes(self, y_bits: u32) -> (Code, Code) {
        (self >> y_bits, self & ((1 << y_bits) - 1))
    }

    #[inline]
    fn hash(self) -> u32 {
        mixed(u64::from(self))
    }
}

/// For domains whose pairs are more than 32 bits can tell apart.
impl Key for [Code; 2] {
    const NONE: Self = [Code::MAX; 2];

    #[inline]
    fn of(x: Code, y: Code, _: u32) -> Self {
        [x, y]
    }

    fn codes(self, _: u32) -> (Code, Code) {
        (self[0], self[1])
    }

    #[inline]
    fn hash(self) -> u32 {
        mixed(u64::from(self[0]) << 32 | u64::from(self[1]))
    }
}

/// Fibonacci hashing.
#[inline]
fn mixed(key: u64) -> u32 {
    ((key ^ key >> 29 ^ key >> 15).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

#[derive(Clone, Copy, Debug)]
struct Slot<K> {
    key: K,
    n: u32,
}

/// Slots at first.
const LEAST: usize = 16;

/// Records whose slots are fetched before the first of them is counted.
const AHEAD: usize = 64;

/// Open addressing with linear probing. A count that falls to 0 keeps its slot until the table is laid out anew, which
/// happens when five of eight slots are claimed: beyond, looking for a slot takes steps that no processor foresees.
#[derive(Clone, Debug)]
pub(super) struct Table<K> {
    slots: Vec<Slot<K>>,
    claimed: usize,
    /// Of a narrow key, those that are the second code.
    y_bits: u32,
}

impl<K: Key> Table<K> {
    fn new(y_bits: u32) -> Self {
        Self { slots: vec![Slot { key: K::NONE, n: 0 }; LEAST], claimed: 0, y_bits }
    }

    fn all(&self) -> impl Iterator<Item = (Code, Code, u32)> + '_ {
        self.slots.iter().filter(|slot| slot.n > 0).map(|slot| {
            let (x, y) = slot.key.codes(self.y_bits);
            (x, y, slot.n)
        })
    }

    /// Where a key is looked for first: its hash, scaled to the length.
    #[inline]
    fn home(&self, key: K) -> usize {
        ((u64::from(key.hash()) * self.slots.len() as u64) >> 32) as usize
    }

    /// The slot of a key, or the vacant one where it would be.
    #[inline]
    fn find(&self, key: K) -> usize {
        let mut at = self.home(key);
        loop {
            let slot = &self.slots[at];
            if slot.key == key || slot.key == K::NONE {
                return at;
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    /// The count of a key, in a slot of its own from now on.
    #[inline]
    fn cell(&mut self, key: K) -> &mut u32 {
        let mut at = self.find(key);
        if self.slots[at].key == K::NONE {
            at = self.claim(key, at);
        }
        &mut self.slots[at].n
    }

    fn claim(&mut self, key: K, mut at: usize) -> usize {
        if (self.claimed + 1) * 8 > self.slots.len() * 5 {
            self.lay_out();
            at = self.find(key);
        }
        self.claimed += 1;
        self.slots[at] = Slot { key, n: 0 };
        at
    }

    /// Two fifths full of what still counts.
    fn lay_out(&mut self) {
        let live: Vec<Slot<K>> = self.slots.iter().copied().filter(|slot| slot.n > 0).collect();
        self.slots = vec![Slot { key: K::NONE, n: 0 }; (live.len() * 5 / 2).max(LEAST)];
        self.claimed = live.len();
        for slot in live {
            let at = self.find(slot.key);
            self.slots[at] = slot;
        }
    }

    fn count<const SUBTRACT: bool>(&mut self, xs: &[Code], ys: &[Code], degrees: &mut Degrees) -> bool {
        let mut below = false;
        let y_bits = self.y_bits;
        for (xs, ys) in xs.chunks(AHEAD).zip(ys.chunks(AHEAD)) {
            // Only to have the lines on their way, all at once: nothing in here waits for one of them.
            let near = |(x, y): (&Code, &Code)| self.slots[self.home(K::of(*x, *y, y_bits))].n;
            std::hint::black_box(xs.iter().zip(ys).map(near).fold(0, |all, n| all ^ n));
            for (&x, &y) in xs.iter().zip(ys) {
                let (before, after) = changed::<SUBTRACT>(self.cell(K::of(x, y, y_bits)));
                below |= SUBTRACT && before == 0;
                if before == 0 || after == 0 {
                    degrees.turned(x, y, before, after);
                }
            }
        }
        below
    }
}

/// The pairs of two attributes. A slot is 8 bytes where keys are narrow, so an edge takes 13 to 20; else 12, and an
/// edge takes 19 to 30.
#[derive(Clone, Debug)]
pub(super) enum Sparse {
    Narrow(Table<u32>),
    Wide(Table<[Code; 2]>),
}

/// Bits that tell `codes` codes apart.
fn bits(codes: usize) -> u32 {
    usize::BITS - codes.saturating_sub(1).leading_zeros()
}

/// How narrow keys of codes below `xs` and `ys` are divided, the bits to spare on both sides; none if they must be wide.
fn divided(xs: usize, ys: usize) -> Option<u32> {
    // One more value than there is: the last key of all is none.
    let spare = u32::BITS.checked_sub(bits(xs + 1) + bits(ys))?;
    Some(bits(ys) + spare / 2)
}

impl Sparse {
    /// An empty table for codes below `xs` and `ys`.
    pub(super) fn new(xs: usize, ys: usize) -> Self {
        match divided(xs, ys) {
            Some(y_bits) => Self::Narrow(Table::new(y_bits)),
            None => Self::Wide(Table::new(0)),
        }
    }

    /// A table of these edges, each there once, for codes below `xs` and `ys`.
    pub(super) fn of(edges: impl Iterator<Item = (Code, Code, u32)>, xs: usize, ys: usize) -> Self {
        let mut sparse = Self::new(xs, ys);
        edges.for_each(|(x, y, n)| *sparse.cell(x, y) = n);
        sparse
    }

    /// Whether keys can be told apart for codes below `xs` and `ys`.
    fn fits(&self, xs: usize, ys: usize) -> bool {
        match self {
            // Less than all that the bits could say: the last key of all is none.
            Self::Narrow(table) => (xs as u64) < 1 << (u32::BITS - table.y_bits) && ys as u64 <= 1 << table.y_bits,
            Self::Wide(_) => true,
        }
    }

    /// Makes room for codes below `xs` and `ys`. Keys are made anew when a domain has outgrown its bits, some of which were
    /// spare: not often.
    pub(super) fn ensure(&mut self, xs: usize, ys: usize) {
        if !self.fits(xs, ys) {
            *self = Self::of(self.all(), xs, ys);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Narrow(table) => table.slots.capacity() * size_of::<Slot<u32>>(),
            Self::Wide(table) => table.slots.capacity() * size_of::<Slot<[Code; 2]>>(),
        }
    }

    /// Every edge, in no particular order.
    pub(super) fn all(&self) -> Box<dyn Iterator<Item = (Code, Code, u32)> + '_> {
        match self {
            Self::Narrow(table) => Box::new(table.all()),
            Self::Wide(table) => Box::new(table.all()),
        }
    }

    /// The count of a pair; 0 for codes that there is no room for.
    pub(super) fn get(&self, x: Code, y: Code) -> u32 {
        match self {
            // Of a vacant slot the count is 0.
            Self::Narrow(table) if self.fits(x as usize + 1, y as usize + 1) => {
                table.slots[table.find(Key::of(x, y, table.y_bits))].n
            }
            Self::Narrow(_) => 0,
            Self::Wide(table) => table.slots[table.find(Key::of(x, y, 0))].n,
        }
    }

    /// The count of a pair that there is room for, in a slot of its own from now on.
    pub(super) fn cell(&mut self, x: Code, y: Code) -> &mut u32 {
        match self {
            Self::Narrow(table) => table.cell(Key::of(x, y, table.y_bits)),
            Self::Wide(table) => table.cell(Key::of(x, y, 0)),
        }
    }

    /// Counts records that there is room for; true where a count fell below nothing.
    pub(super) fn count<const SUBTRACT: bool>(&mut self, xs: &[Code], ys: &[Code], degrees: &mut Degrees) -> bool {
        match self {
            Self::Narrow(table) => table.count::<SUBTRACT>(xs, ys, degrees),
            Self::Wide(table) => table.count::<SUBTRACT>(xs, ys, degrees),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn keys_have_the_bits_that_they_need() {
        for (xs, ys) in [(1, 1), (3, 4), ((1 << 6) - 1, 1 << 26), (u16::MAX as usize, 1 << 16)] {
            let sparse = Sparse::new(xs, ys);
            assert!(matches!(sparse, Sparse::Narrow(_)) && sparse.fits(xs, ys), "{xs} × {ys}");
        }
        for (xs, ys) in [(1 << 16, 1 << 16), (1 << 26, 1 << 26), (1 << 6, 1 << 26)] {
            assert!(matches!(Sparse::new(xs, ys), Sparse::Wide(_)), "{xs} × {ys} has the key that is none");
        }
        assert_eq!(size_of::<Slot<u32>>(), 8);
        assert_eq!(size_of::<Slot<[Code; 2]>>(), 12);
    }

    /// A step: so many bits of x and of y there is to be room for, and pairs by their share of that room.
    type Step = (u32, u32, Vec<(f64, f64, u32)>);

    fn step() -> impl Strategy<Value = Step> {
        let pair = (0.0..1.0, 0.0..1.0, 1_u32..4);
        (0_u32..27, 0_u32..27, proptest::collection::vec(pair, 0..40))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        /// Against a tree, while the domains grow through every width of a key.
        #[test]
        fn a_table_counts_as_a_map_does(steps in proptest::collection::vec(step(), 1..8)) {
            let (mut sparse, mut twin) = (Sparse::new(1, 1), BTreeMap::new());
            let (mut xs, mut ys) = (1_usize, 1_usize);
            for (x_bits, y_bits, pairs) in steps {
                (xs, ys) = (xs.max(1 << x_bits), ys.max(1 << y_bits));
                sparse.ensure(xs, ys);
                for (x, y, n) in pairs {
                    // The last codes as often as all others: there the bits run out.
                    let code = |share: f64, room: usize| (share * room as f64 * 2.0).min(room as f64 - 1.0) as Code;
                    let (x, y) = (code(x, xs), code(y, ys));
                    *sparse.cell(x, y) += n;
                    *twin.entry((x, y)).or_insert(0) += n;
                }
                let mut edges: Vec<_> = sparse.all().collect();
                edges.sort_unstable();
                prop_assert_eq!(edges, twin.iter().map(|(&(x, y), &n)| (x, y, n)).collect::<Vec<_>>());
                for &(x, y) in twin.keys() {
                    for (x, y) in [(x, y), (x + 1, y), (x, y + 1), (y, x)] {
                        prop_assert_eq!(sparse.get(x, y), twin.get(&(x, y)).copied().unwrap_or(0));
                    }
                }
            }
        }
    }
}
