//! Arithmetic of release invariants, for debug assertions and property tests (docs/internals/decisions.md 0029). It
//! decides no release.

use std::collections::{BTreeMap, BTreeSet};

/// Class with the fewest distinct subjects, and their number.
#[must_use]
pub fn smallest_class<C: Ord, S: Ord>(members: impl IntoIterator<Item = (C, Option<S>)>) -> Option<(C, usize)> {
    let mut classes: BTreeMap<C, BTreeSet<S>> = BTreeMap::new();
    for (class, subject) in members {
        classes.entry(class).or_default().extend(subject);
    }
    classes.into_iter().map(|(class, subjects)| (class, subjects.len())).min_by_key(|(_, subjects)| *subjects)
}

/// Highest number of equal values.
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
