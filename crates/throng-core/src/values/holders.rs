//! People by the sensitive value that they have: what one part of a release is told of the others.

use super::digest::BuildClassKeyHash;
use hashbrown::HashMap;

/// Distinct people by sensitive value; values are the keys of single values beside a class.
#[derive(Clone, Debug, Default)]
pub struct Holders(HashMap<u128, Vec<u64>, BuildClassKeyHash>);

impl Holders {
    /// Adds `people` who have `value`.
    pub fn add(&mut self, value: u128, people: &[u64]) {
        let known = self.0.entry(value).or_default();
        for &person in people {
            if !known.contains(&person) {
                known.push(person);
            }
        }
    }

    /// The people who have `value`.
    pub fn of(&self, value: u128) -> &[u64] {
        self.0.get(&value).map_or(&[], Vec::as_slice)
    }
}
