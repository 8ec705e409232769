//! Hash table of pair counts.

use super::degrees::{PartnerDegrees, step_count};
use throng_core::values::codebook::Code;

/// Two codes in one key, as narrow as the domains allow.
pub(super) trait PackedPairKey: Copy + Eq + Send + Sync {
    /// Marks a vacant slot; no pair of codes.
    const NONE: Self;
    fn of(x: Code, y: Code, y_bits: u32) -> Self;
    fn codes(self, y_bits: u32) -> (Code, Code);
    /// Returns a hash with well-distributed upper bits.
    fn hash(self) -> u32;
}

impl PackedPairKey for u32 {
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
        fibonacci_hash(u64::from(self))
    }
}

/// For domains that exceed 32-bit keys.
impl PackedPairKey for [Code; 2] {
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
        fibonacci_hash(u64::from(self[0]) << 32 | u64::from(self[1]))
    }
}

#[inline]
fn fibonacci_hash(key: u64) -> u32 {
    ((key ^ key >> 29 ^ key >> 15).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

#[derive(Clone, Copy, Debug)]
struct CountSlot<K> {
    key: K,
    n: u32,
}

const MIN_SLOTS: usize = 16;

const PREFETCH_RECORDS: usize = 64;

/// Open addressing with linear probing. It is rebuilt, without zero counts, when five eighths full.
#[derive(Clone, Debug)]
pub(super) struct PairHashTable<K> {
    slots: Vec<CountSlot<K>>,
    claimed: usize,
    /// Bits of the second code in a narrow key.
    y_bits: u32,
}

impl<K: PackedPairKey> PairHashTable<K> {
    fn new(y_bits: u32) -> Self {
        Self { slots: vec![CountSlot { key: K::NONE, n: 0 }; MIN_SLOTS], claimed: 0, y_bits }
    }

    fn all(&self) -> impl Iterator<Item = (Code, Code, u32)> + '_ {
        self.slots.iter().filter(|slot| slot.n > 0).map(|slot| {
            let (x, y) = slot.key.codes(self.y_bits);
            (x, y, slot.n)
        })
    }

    #[inline]
    fn first_slot(&self, key: K) -> usize {
        ((u64::from(key.hash()) * self.slots.len() as u64) >> 32) as usize
    }

    /// Returns the slot of a key, or the vacant slot for it.
    #[inline]
    fn find(&self, key: K) -> usize {
        let mut at = self.first_slot(key);
        loop {
            let slot = &self.slots[at];
            if slot.key == key || slot.key == K::NONE {
                return at;
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    /// Claims a slot if necessary.
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
            self.rebuild_slots();
            at = self.find(key);
        }
        self.claimed += 1;
        self.slots[at] = CountSlot { key, n: 0 };
        at
    }

    /// Rebuilds the table two fifths full.
    fn rebuild_slots(&mut self) {
        let live: Vec<CountSlot<K>> = self.slots.iter().copied().filter(|slot| slot.n > 0).collect();
        self.slots = vec![CountSlot { key: K::NONE, n: 0 }; (live.len() * 5 / 2).max(MIN_SLOTS)];
        self.claimed = live.len();
        for slot in live {
            let at = self.find(slot.key);
            self.slots[at] = slot;
        }
    }

    fn count<const SUBTRACT: bool>(&mut self, xs: &[Code], ys: &[Code], degrees: &mut PartnerDegrees) -> bool {
        let mut below = false;
        let y_bits = self.y_bits;
        for (xs, ys) in xs.chunks(PREFETCH_RECORDS).zip(ys.chunks(PREFETCH_RECORDS)) {
            // Prefetches all cache lines with independent reads.
            let near = |(x, y): (&Code, &Code)| self.slots[self.first_slot(K::of(*x, *y, y_bits))].n;
            std::hint::black_box(xs.iter().zip(ys).map(near).fold(0, |all, n| all ^ n));
            for (&x, &y) in xs.iter().zip(ys) {
                let (before, after) = step_count::<SUBTRACT>(self.cell(K::of(x, y, y_bits)));
                below |= SUBTRACT && before == 0;
                if before == 0 || after == 0 {
                    degrees.record_transition(x, y, before, after);
                }
            }
        }
        below
    }
}

/// Pair counts. A slot takes 8 bytes with narrow keys, 12 with wide ones.
#[derive(Clone, Debug)]
pub(super) enum SparsePairCounts {
    Narrow(PairHashTable<u32>),
    Wide(PairHashTable<[Code; 2]>),
}

fn bits_for(codes: usize) -> u32 {
    usize::BITS - codes.saturating_sub(1).leading_zeros()
}

/// Returns the bits of the second code in narrow keys; `None` for wide keys.
fn narrow_key_bits(xs: usize, ys: usize) -> Option<u32> {
    // The last key marks a vacant slot.
    let spare = u32::BITS.checked_sub(bits_for(xs + 1) + bits_for(ys))?;
    Some(bits_for(ys) + spare / 2)
}

impl SparsePairCounts {
    pub(super) fn new(xs: usize, ys: usize) -> Self {
        match narrow_key_bits(xs, ys) {
            Some(y_bits) => Self::Narrow(PairHashTable::new(y_bits)),
            None => Self::Wide(PairHashTable::new(0)),
        }
    }

    /// The edges are distinct, with codes below `xs` and `ys`.
    pub(super) fn of(edges: impl Iterator<Item = (Code, Code, u32)>, xs: usize, ys: usize) -> Self {
        let mut sparse = Self::new(xs, ys);
        edges.for_each(|(x, y, n)| *sparse.cell(x, y) = n);
        sparse
    }

    fn fits(&self, xs: usize, ys: usize) -> bool {
        match self {
            // The last key marks a vacant slot.
            Self::Narrow(table) => (xs as u64) < 1 << (u32::BITS - table.y_bits) && ys as u64 <= 1 << table.y_bits,
            Self::Wide(_) => true,
        }
    }

    /// Makes room for codes below `xs` and `ys`.
    pub(super) fn ensure(&mut self, xs: usize, ys: usize) {
        if !self.fits(xs, ys) {
            *self = Self::of(self.all(), xs, ys);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Narrow(table) => table.slots.capacity() * size_of::<CountSlot<u32>>(),
            Self::Wide(table) => table.slots.capacity() * size_of::<CountSlot<[Code; 2]>>(),
        }
    }

    pub(super) fn all(&self) -> Box<dyn Iterator<Item = (Code, Code, u32)> + '_> {
        match self {
            Self::Narrow(table) => Box::new(table.all()),
            Self::Wide(table) => Box::new(table.all()),
        }
    }

    pub(super) fn get(&self, x: Code, y: Code) -> u32 {
        match self {
            Self::Narrow(table) if self.fits(x as usize + 1, y as usize + 1) => {
                table.slots[table.find(PackedPairKey::of(x, y, table.y_bits))].n
            }
            Self::Narrow(_) => 0,
            Self::Wide(table) => table.slots[table.find(PackedPairKey::of(x, y, 0))].n,
        }
    }

    pub(super) fn cell(&mut self, x: Code, y: Code) -> &mut u32 {
        match self {
            Self::Narrow(table) => table.cell(PackedPairKey::of(x, y, table.y_bits)),
            Self::Wide(table) => table.cell(PackedPairKey::of(x, y, 0)),
        }
    }

    /// Returns true if a count underflowed. The codes must have room.
    pub(super) fn count<const SUBTRACT: bool>(
        &mut self,
        xs: &[Code],
        ys: &[Code],
        degrees: &mut PartnerDegrees,
    ) -> bool {
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
    fn key_width_depends_on_domain_sizes() {
        for (xs, ys) in [(1, 1), (3, 4), ((1 << 6) - 1, 1 << 26), (u16::MAX as usize, 1 << 16)] {
            let sparse = SparsePairCounts::new(xs, ys);
            assert!(matches!(sparse, SparsePairCounts::Narrow(_)) && sparse.fits(xs, ys), "{xs} × {ys}");
        }
        for (xs, ys) in [(1 << 16, 1 << 16), (1 << 26, 1 << 26), (1 << 6, 1 << 26)] {
            assert!(
                matches!(SparsePairCounts::new(xs, ys), SparsePairCounts::Wide(_)),
                "{xs} × {ys} has the key that is none"
            );
        }
        assert_eq!(size_of::<CountSlot<u32>>(), 8);
        assert_eq!(size_of::<CountSlot<[Code; 2]>>(), 12);
    }

    /// Bits of x and y, and pairs as shares of that room.
    type SparseGrowthStep = (u32, u32, Vec<(f64, f64, u32)>);

    fn step() -> impl Strategy<Value = SparseGrowthStep> {
        let pair = (0.0..1.0, 0.0..1.0, 1_u32..4);
        (0_u32..27, 0_u32..27, proptest::collection::vec(pair, 0..40))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        #[test]
        fn hash_table_equals_ordered_map(steps in proptest::collection::vec(step(), 1..8)) {
            let (mut sparse, mut twin) = (SparsePairCounts::new(1, 1), BTreeMap::new());
            let (mut xs, mut ys) = (1_usize, 1_usize);
            for (x_bits, y_bits, pairs) in steps {
                (xs, ys) = (xs.max(1 << x_bits), ys.max(1 << y_bits));
                sparse.ensure(xs, ys);
                for (x, y, n) in pairs {
                    // The last codes are frequent, since the key bits run out there.
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
