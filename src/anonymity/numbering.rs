//! Numbers for the keys of classes, in the order in which they come.

/// An open-addressing table, reused without being cleared: a slot counts only if it carries the current epoch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbering<K> {
    epoch: u32,
    next: u32,
    slots: Vec<Slot<K>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot<K> {
    key: K,
    epoch: u32,
    number: u32,
}

impl<K: Copy + Default + Eq> Numbering<K> {
    /// Forgets all keys, in constant time where there is room for `keys` of them.
    pub fn restart(&mut self, keys: usize) {
        let capacity = (keys.max(8) * 2).next_power_of_two();
        if self.slots.len() < capacity || self.epoch == u32::MAX {
            self.slots.clear();
            self.slots.resize(capacity, Slot::default());
            self.epoch = 0;
        }
        (self.epoch, self.next) = (self.epoch + 1, 0);
    }

    /// Slots that there are: a power of two.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The number of a key, and whether it is new; `hash` is a hash of the key, of which the low bits are looked at.
    #[inline]
    pub fn number(&mut self, key: K, hash: usize) -> (u32, bool) {
        let mask = self.slots.len() - 1;
        let mut at = hash & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.epoch != self.epoch {
                *slot = Slot { key, epoch: self.epoch, number: self.next };
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
