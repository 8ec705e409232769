//! Subjects by sensitive value, which one part of a release passes to the others.

use super::digest::BuildClassKeyHash;
use hashbrown::HashMap;

/// Distinct subjects by sensitive value. The key of a value is the base of its attribute plus its digest.
#[derive(Clone, Debug, Default)]
pub struct SubjectsByValue(HashMap<u128, Vec<u64>, BuildClassKeyHash>);

impl SubjectsByValue {
    /// Adds `subjects` that have `value`.
    pub fn add(&mut self, value: u128, people: &[u64]) {
        let known = self.0.entry(value).or_default();
        for &person in people {
            if !known.contains(&person) {
                known.push(person);
            }
        }
    }

    /// Returns the subjects that have `value`.
    pub fn subjects_with(&self, value: u128) -> &[u64] {
        self.0.get(&value).map_or(&[], Vec::as_slice)
    }
}
