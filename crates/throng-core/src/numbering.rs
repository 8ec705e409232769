//! Assigns consecutive numbers to class keys in the order of their arrival.

/// Open-addressing table that is reused without clearing: a slot is valid only if it carries the current epoch.
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
    /// Removes all keys, in constant time if the capacity is sufficient for `keys` keys.
    pub fn restart(&mut self, keys: usize) {
        let capacity = (keys.max(8) * 2).next_power_of_two();
        if self.slots.len() < capacity || self.epoch == u32::MAX {
            self.slots.clear();
            self.slots.resize(capacity, NumberingSlot::default());
            self.epoch = 0;
        }
        (self.epoch, self.next) = (self.epoch + 1, 0);
    }

    /// Returns the number of slots, a power of two.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of a key, and `true` if the key is new. Only the low bits of `hash`, a hash of the key, are
    /// used.
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
