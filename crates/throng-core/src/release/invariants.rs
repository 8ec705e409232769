//! Invariants of every release, as plain arithmetic: asserted in debug builds and used by property tests with
//! independently collected numbers (docs/internals/decisions.md 0029). They decide no release.

use std::collections::{BTreeMap, BTreeSet};

/// Returns the class with the fewest distinct subjects and their number; none without classes. A member without a
/// subject has none.
#[must_use]
pub fn smallest_class<C: Ord, S: Ord>(members: impl IntoIterator<Item = (C, Option<S>)>) -> Option<(C, usize)> {
    let mut classes: BTreeMap<C, BTreeSet<S>> = BTreeMap::new();
    for (class, subject) in members {
        classes.entry(class).or_default().extend(subject);
    }
    classes.into_iter().map(|(class, subjects)| (class, subjects.len())).min_by_key(|(_, subjects)| *subjects)
}

/// Returns the highest number of occurrences of one value, such as lines per subject; 0 if there is none.
#[must_use]
pub fn highest_multiplicity<T: Ord>(things: impl IntoIterator<Item = T>) -> usize {
    let mut times: BTreeMap<T, usize> = BTreeMap::new();
    for thing in things {
        *times.entry(thing).or_default() += 1;
    }
    times.into_values().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_class_counts_distinct_subjects() {
        let members = [("a", Some(1)), ("a", Some(1)), ("a", Some(2)), ("b", Some(1)), ("b", None), ("b", Some(1))];
        assert_eq!(smallest_class(members), Some(("b", 1)));
        assert_eq!(smallest_class([("c", None::<u64>)]), Some(("c", 0)));
        assert_eq!(smallest_class(Vec::<(u8, Option<u8>)>::new()), None);
        assert_eq!(highest_multiplicity(["x", "y", "x"]), 2);
        assert_eq!(highest_multiplicity([0u8; 0]), 0);
    }
}
