//! Consecutive numbers of class keys, in the order of their arrival.

/// Open-addressing table with slots that are valid in one epoch.
#[derive(Clone, Debug, Default)]
pub struct KeyNumbering<K> {
    epoch: u32,
    next: u32,
    slots: Vec<NumberingSlot<K>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct NumberingSlot<K> {
    key: K,
    epoch: u32,
    number: u32,
}

impl<K: Copy + Default + Eq> KeyNumbering<K> {
    /// Removes all keys, in constant time if the table has room for `keys` keys.
    pub fn restart(&mut self, keys: usize) {
        let capacity = (keys.max(8) * 2).next_power_of_two();
        if self.slots.len() < capacity || self.epoch == u32::MAX {
            self.slots.clear();
            self.slots.resize(capacity, NumberingSlot::default());
            self.epoch = 0;
        }
        (self.epoch, self.next) = (self.epoch + 1, 0);
    }

    /// Number of slots, a power of two.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Number of a key, and `true` if new. Uses only low bits of `hash`.
    #[inline]
    pub fn number(&mut self, key: K, hash: usize) -> (u32, bool) {
        let mask = self.slots.len() - 1;
        let mut at = hash & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.epoch != self.epoch {
                *slot = NumberingSlot { key, epoch: self.epoch, number: self.next };
                self.next += 1;
                return (slot.number, true);
            }
            if slot.key == key {
                return (slot.number, false);
            }
            at = (at + 1) & mask;
        }
    }
}
