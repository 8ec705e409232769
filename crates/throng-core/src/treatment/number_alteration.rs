//! Perturbation and micro-aggregation of numbers (\[POD] §2.1, §6.2; \[DOM]; docs/internals/methods.md §10.5).
//!
//! Altered cells are not truthful. R(k) holds for the printed tuples.

use crate::microaggregation::rounded_mean;
use crate::values::subject_digest::NO_SUBJECT;
use std::collections::{BTreeMap, BTreeSet};

/// Replacement rule for numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// Replaces unsupported numbers by the closest supported one, the smaller on a tie.
    Closest,
    /// Replaces all numbers by the rounded mean over neighbours with enough subjects.
    Mean,
}

/// Number of one record.
#[derive(Clone, Copy, Debug)]
pub struct RecordNumber {
    /// Row.
    pub row: u32,
    /// Subject, or [`NO_SUBJECT`].
    pub subject: u64,
    /// Number, in steps of the rounding.
    pub steps: i64,
}

/// Returns the rows with replaced numbers, with the replacement in steps.
///
/// The records of `numbers` are equal in all other released cells; each replacement has `crowd` distinct subjects.
pub fn altered_numbers(mut numbers: Vec<RecordNumber>, alteration: Alteration, crowd: usize) -> Vec<(u32, i64)> {
    numbers.sort_by_key(|number| (number.steps, number.row));
    let by: Vec<&[RecordNumber]> = numbers.chunk_by(|a, b| a.steps == b.steps).collect();
    let shown = match alteration {
        Alteration::Closest => closest_replacements(&by, crowd),
        Alteration::Mean => mean_replacements(&by, crowd),
    };
    let replaced = by.iter().zip(shown).flat_map(|(same, shown)| same.iter().map(move |number| (number, shown)));
    replaced.filter(|(number, shown)| number.steps != *shown).map(|(number, shown)| (number.row, shown)).collect()
}

fn have_enough_subjects<'a>(numbers: impl Iterator<Item = &'a RecordNumber>, crowd: usize) -> bool {
    let people: BTreeSet<u64> = numbers.map(|number| number.subject).filter(|s| *s != NO_SUBJECT).collect();
    people.len() >= crowd
}

fn closest_replacements(by: &[&[RecordNumber]], crowd: usize) -> Vec<i64> {
    let has_crowd = |same: &&&[RecordNumber]| have_enough_subjects(same.iter(), crowd);
    let supported: BTreeSet<i64> = by.iter().filter(has_crowd).map(|same| same[0].steps).collect();
    let of = |own: i64| {
        let below = supported.range(..=own).next_back().copied();
        let above = supported.range(own..).next().copied();
        match (below, above) {
            (Some(low), Some(high)) => {
                if own.abs_diff(low) <= high.abs_diff(own) {
                    low
                } else {
                    high
                }
            }
            (Some(near), None) | (None, Some(near)) => near,
            (None, None) => own,
        }
    };
    by.iter().map(|same| of(same[0].steps)).collect()
}

fn mean_replacements(by: &[&[RecordNumber]], crowd: usize) -> Vec<i64> {
    let mut cuts = vec![0];
    let mut people = BTreeSet::new();
    for (at, same) in by.iter().enumerate() {
        people.extend(same.iter().map(|number| number.subject).filter(|subject| *subject != NO_SUBJECT));
        if people.len() >= crowd {
            cuts.push(at + 1);
            people.clear();
        }
    }
    let own = |ends: &[&[RecordNumber]]| -> Vec<i64> { ends.iter().map(|same| same[0].steps).collect() };
    if cuts.len() == 1 {
        return own(by);
    }
    let last = cuts.len() - 1;
    cuts[last] = by.len();
    let mut shown = Vec::with_capacity(by.len());
    for ends in cuts.windows(2) {
        let members = &by[ends[0]..ends[1]];
        // One number per subject: many records of one subject must not move the mean.
        let mut of_person: BTreeMap<u64, i64> = BTreeMap::new();
        for number in members.iter().flat_map(|same| same.iter()).filter(|number| number.subject != NO_SUBJECT) {
            of_person.entry(number.subject).or_insert(number.steps);
        }
        let steps: Vec<i64> = of_person.into_values().collect();
        match rounded_mean(&steps) {
            Some(mean) => shown.extend(vec![mean; members.len()]),
            None => shown.extend(own(members)),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers(of: &[(u64, i64)]) -> Vec<RecordNumber> {
        (0..).zip(of).map(|(row, &(subject, steps))| RecordNumber { row, subject, steps }).collect()
    }

    fn shown(of: &[(u64, i64)], alteration: Alteration, crowd: usize) -> Vec<i64> {
        let mut values: Vec<i64> = of.iter().map(|(_, value)| *value).collect();
        for (row, steps) in altered_numbers(numbers(of), alteration, crowd) {
            values[row as usize] = steps;
        }
        values
    }

    #[test]
    fn closest_supported_number_replaces_unsupported() {
        let of = [(1, 60), (2, 60), (3, 80), (4, 80), (5, 71), (6, 70), (7, 99)];
        assert_eq!(shown(&of, Alteration::Closest, 2), [60, 60, 80, 80, 80, 60, 80], "the smaller of two as close");
        assert_eq!(shown(&of, Alteration::Closest, 3), of.map(|(_, value)| value), "nothing has a crowd");
        assert_eq!(shown(&[(1, 5), (1, 5), (2, 6)], Alteration::Closest, 2), [5, 5, 6], "one person is no crowd");
        let ends = [(1, i64::MIN), (2, i64::MIN), (3, i64::MAX)];
        assert_eq!(shown(&ends, Alteration::Closest, 2), [i64::MIN; 3]);
    }

    #[test]
    fn mean_alteration_groups_neighbours() {
        let of = [(1, 1), (2, 3), (3, 9), (4, 10), (5, 41)];
        assert_eq!(shown(&of, Alteration::Mean, 2), [2, 2, 20, 20, 20], "the last joins the crowd before it");
        assert_eq!(shown(&of[..1], Alteration::Mean, 2), [1], "too few");
        assert_eq!(
            shown(&[(NO_SUBJECT, 90), (1, 1), (2, 3)], Alteration::Mean, 2),
            [2, 2, 2],
            "nobody counts for nobody"
        );
        assert_eq!(shown(&[(1, 0), (1, 0), (1, 0), (2, 8)], Alteration::Mean, 2), [4; 4], "a person counts once");
    }

    fn subjects_by_number(of: &[(u64, i64)], shown: &[i64]) -> BTreeMap<i64, BTreeSet<u64>> {
        let mut crowds: BTreeMap<i64, BTreeSet<u64>> = BTreeMap::new();
        for ((subject, _), value) in of.iter().zip(shown) {
            let people = crowds.entry(*value).or_default();
            if *subject != NO_SUBJECT {
                people.insert(*subject);
            }
        }
        crowds
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]
        #[test]
        fn closest_alteration_matches_definition(of in prop::collection::vec((0u64..7, 0i64..12), 0..25), crowd in 2usize..4) {
            let values: Vec<i64> = of.iter().map(|(_, value)| *value).collect();
            let supported: Vec<i64> =
                subjects_by_number(&of, &values).into_iter().filter(|(_, who)| who.len() >= crowd).map(|(value, _)| value).collect();
            let expected: Vec<i64> = values
                .iter()
                .map(|own| supported.iter().copied().min_by_key(|v| ((v - own).abs(), *v)).unwrap_or(*own))
                .collect();
            prop_assert_eq!(shown(&of, Alteration::Closest, crowd), expected);
        }

        #[test]
        fn mean_alteration_keeps_support_and_order(of in prop::collection::vec((0u64..7, 0i64..12), 0..25), crowd in 2usize..4) {
            let values: Vec<i64> = of.iter().map(|(_, value)| *value).collect();
            let shown = shown(&of, Alteration::Mean, crowd);
            let people = subjects_by_number(&of, &vec![0; of.len()]).remove(&0).map_or(0, |people| people.len());
            if people < crowd {
                prop_assert_eq!(shown, values);
                return Ok(());
            }
            for (value, people) in subjects_by_number(&of, &shown) {
                prop_assert!(people.len() >= crowd, "{} of {:?}", value, people);
            }
            for (i, j) in (0..of.len()).flat_map(|i| (0..of.len()).map(move |j| (i, j))) {
                prop_assert!(values[i] >= values[j] || shown[i] <= shown[j]);
            }
        }

        #[test]
        fn alteration_is_independent_of_record_order(
            of in prop::collection::vec((0u64..7, 0i64..12), 0..20), crowd in 2usize..4,
        ) {
            for alteration in [Alteration::Closest, Alteration::Mean] {
                let turned: Vec<(u64, i64)> = of.iter().rev().copied().collect();
                let mut back = shown(&turned, alteration, crowd);
                back.reverse();
                prop_assert_eq!(shown(&of, alteration, crowd), back);
            }
        }
    }
}
