//! Subjects by sensitive value.

use super::digest::BuildClassKeyHash;
use hashbrown::HashMap;

/// Keys are the base of the attribute plus the digest of the value.
#[derive(Clone, Debug, Default)]
pub struct SubjectsByValue(HashMap<u128, Vec<u64>, BuildClassKeyHash>);

impl SubjectsByValue {
    /// Adds the `people` with `value`.
    pub fn add(&mut self, value: u128, people: &[u64]) {
        let known = self.0.entry(value).or_default();
        for &person in people {
            if !known.contains(&person) {
                known.push(person);
            }
        }
    }

    /// Returns the subjects with `value`.
    pub fn subjects_with(&self, value: u128) -> &[u64] {
        self.0.get(&value).map_or(&[], Vec::as_slice)
    }
}
