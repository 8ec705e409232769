//! What one atomic write sets and removes: of two words on one key the later holds.

use std::collections::BTreeMap;

/// Values by key; none where one is removed.
#[derive(Default)]
pub(super) struct Writes(BTreeMap<Vec<u8>, Option<sled::IVec>>);

impl Writes {
    /// Sets a value.
    pub fn insert(&mut self, key: impl Into<Vec<u8>>, value: impl Into<sled::IVec>) {
        self.0.insert(key.into(), Some(value.into()));
    }

    /// Removes one.
    pub fn remove(&mut self, key: impl Into<Vec<u8>>) {
        self.0.insert(key.into(), None);
    }

    /// As the database takes it.
    pub fn into_batch(self) -> sled::Batch {
        let mut batch = sled::Batch::default();
        for (key, value) in self.0 {
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        batch
    }
}
