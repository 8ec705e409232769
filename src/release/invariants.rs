//! What holds of every release, as plain arithmetic: asserted in debug builds where a batch is verified and applied, and used
//! by the property tests, which gather their numbers from outside (docs/decisions/0029).
//!
//! Nothing here decides what may leave. That is [`super::verify::verify`], in every build.

use crate::telemetry::Totals;
use std::collections::{BTreeMap, BTreeSet};

/// Conservation (docs/architecture.md rule 2): consumed = released + suppressed + held + dead-lettered + dropped + moved.
#[must_use]
pub fn is_conserved(totals: &Totals, held: u64) -> bool {
    let Totals { consumed, released, suppressed, dead_lettered, dropped, moved } = *totals;
    let terms = [released, suppressed, dead_lettered, dropped, moved, held];
    terms.into_iter().try_fold(0u64, u64::checked_add) == Some(consumed)
}

/// The class with the fewest distinct subjects, and their number; none without classes. `members` are classes, each with
/// somebody in it, or with nobody.
#[must_use]
pub fn smallest_class<C: Ord, S: Ord>(members: impl IntoIterator<Item = (C, Option<S>)>) -> Option<(C, usize)> {
    let mut classes: BTreeMap<C, BTreeSet<S>> = BTreeMap::new();
    for (class, subject) in members {
        classes.entry(class).or_default().extend(subject);
    }
    classes.into_iter().map(|(class, subjects)| (class, subjects.len())).min_by_key(|(_, subjects)| *subjects)
}

/// The most often that one thing occurs: lines of one subject in a group, lines of one row; 0 where there is none.
#[must_use]
pub fn most_of_one<T: Ord>(things: impl IntoIterator<Item = T>) -> usize {
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
    fn the_terms_add_up_to_what_was_consumed() {
        let totals = Totals { consumed: 10, released: 4, suppressed: 3, dead_lettered: 1, dropped: 1, moved: 0 };
        assert!(is_conserved(&totals, 1) && !is_conserved(&totals, 0) && !is_conserved(&totals, 2));
        let too_many = Totals { released: u64::MAX, ..totals };
        assert!(!is_conserved(&too_many, 1));
        let mut gone = totals;
        gone.let_go();
        assert!(gone.moved == 1 && is_conserved(&gone, 0));
        gone.let_go();
        assert_eq!(gone.moved, 1, "nothing is left to go");
    }

    #[test]
    fn subjects_are_counted_once_a_class_and_nobody_never() {
        let members = [("a", Some(1)), ("a", Some(1)), ("a", Some(2)), ("b", Some(1)), ("b", None), ("b", Some(1))];
        assert_eq!(smallest_class(members), Some(("b", 1)));
        assert_eq!(smallest_class([("c", None::<u64>)]), Some(("c", 0)));
        assert_eq!(smallest_class(Vec::<(u8, Option<u8>)>::new()), None);
        assert_eq!(most_of_one(["x", "y", "x"]), 2);
        assert_eq!(most_of_one([0u8; 0]), 0);
    }
}
