//! Perturbation and micro-aggregation of the numbers of a batch ([POD] §2.1, §6.2; [DOM]; docs/methods.md §10.5): before classes are
//! formed, a number gives way to another one, so that enough people share it.
//!
//! What holds: after it, enough people of the records that were handed in together share a number that took another's place; and that
//! number is one that enough of them truly have, or a mean of enough of them: never one person's own. What is printed is treated and verified
//! like any other batch, so R(k) holds of the printed tuples. What does not hold: an altered cell is not true.

use crate::anonymity::microaggregation::mean;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::subject::NO_SUBJECT;

/// What takes the place of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// The closest number with a crowd; of two that are as close, the smaller. Only numbers without a crowd give way.
    Closest,
    /// The mean of a crowd of neighbours, rounded as the attribute is. All numbers give way.
    Mean,
}

/// A number of a record.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// The record.
    pub row: u32,
    /// Its person, or [`NO_SUBJECT`].
    pub subject: u64,
    /// The number, in steps of its attribute's rounding.
    pub steps: i64,
}

/// The rows whose number gives way to another, with the one that takes its place, in steps. `numbers` are of records that are alike in
/// all else that leaves with them; `crowd` people are asked for. The order of the records decides nothing.
pub fn altered(mut numbers: Vec<Number>, alteration: Alteration, crowd: usize) -> Vec<(u32, i64)> {
    numbers.sort_by_key(|number| (number.steps, number.row));
    let by: Vec<&[Number]> = numbers.chunk_by(|a, b| a.steps == b.steps).collect();
    let shown = match alteration {
        Alteration::Closest => closest(&by, crowd),
        Alteration::Mean => means(&by, crowd),
    };
    let replaced = by.iter().zip(shown).flat_map(|(same, shown)| same.iter().map(move |number| (number, shown)));
    replaced.filter(|(number, shown)| number.steps != *shown).map(|(number, shown)| (number.row, shown)).collect()
}

/// Whether the people of `numbers` are a crowd; who is nobody counts for nobody.
fn is_crowd<'a>(numbers: impl Iterator<Item = &'a Number>, crowd: usize) -> bool {
    let people: BTreeSet<u64> = numbers.map(|number| number.subject).filter(|s| *s != NO_SUBJECT).collect();
    people.len() >= crowd
}

/// By distinct number, ascending, the one that takes its place.
fn closest(by: &[&[Number]], crowd: usize) -> Vec<i64> {
    let has_crowd = |same: &&&[Number]| is_crowd(same.iter(), crowd);
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

/// The same by crowds of neighbours, as small as they can be from the smallest number on; what is left at the end joins the last.
fn means(by: &[&[Number]], crowd: usize) -> Vec<i64> {
    let mut cuts = vec![0];
    let mut people = BTreeSet::new();
    for (at, same) in by.iter().enumerate() {
        people.extend(same.iter().map(|number| number.subject).filter(|subject| *subject != NO_SUBJECT));
        if people.len() >= crowd {
            cuts.push(at + 1);
            people.clear();
        }
    }
    let own = |ends: &[&[Number]]| -> Vec<i64> { ends.iter().map(|same| same[0].steps).collect() };
    if cuts.len() == 1 {
        return own(by);
    }
    let last = cuts.len() - 1;
    cuts[last] = by.len();
    let mut shown = Vec::with_capacity(by.len());
    for ends in cuts.windows(2) {
        let members = &by[ends[0]..ends[1]];
        // One number a person: who sends much does not pull the mean to what is theirs alone.
        let mut of_person: BTreeMap<u64, i64> = BTreeMap::new();
        for number in members.iter().flat_map(|same| same.iter()).filter(|number| number.subject != NO_SUBJECT) {
            of_person.entry(number.subject).or_insert(number.steps);
        }
        let steps: Vec<i64> = of_person.into_values().collect();
        match mean(&steps) {
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

    fn numbers(of: &[(u64, i64)]) -> Vec<Number> {
        (0..).zip(of).map(|(row, &(subject, steps))| Number { row, subject, steps }).collect()
    }

    fn shown(of: &[(u64, i64)], alteration: Alteration, crowd: usize) -> Vec<i64> {
        let mut values: Vec<i64> = of.iter().map(|(_, value)| *value).collect();
        for (row, steps) in altered(numbers(of), alteration, crowd) {
            values[row as usize] = steps;
        }
        values
    }

    #[test]
    fn the_closest_with_a_crowd_takes_its_place() {
        let of = [(1, 60), (2, 60), (3, 80), (4, 80), (5, 71), (6, 70), (7, 99)];
        assert_eq!(shown(&of, Alteration::Closest, 2), [60, 60, 80, 80, 80, 60, 80], "the smaller of two as close");
        assert_eq!(shown(&of, Alteration::Closest, 3), of.map(|(_, value)| value), "nothing has a crowd");
        assert_eq!(shown(&[(1, 5), (1, 5), (2, 6)], Alteration::Closest, 2), [5, 5, 6], "one person is no crowd");
        let ends = [(1, i64::MIN), (2, i64::MIN), (3, i64::MAX)];
        assert_eq!(shown(&ends, Alteration::Closest, 2), [i64::MIN; 3]);
    }

    #[test]
    fn neighbours_show_their_mean() {
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

    /// How many people show each number.
    fn crowds(of: &[(u64, i64)], shown: &[i64]) -> BTreeMap<i64, BTreeSet<u64>> {
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
        fn the_closest_is_its_definition(of in prop::collection::vec((0u64..7, 0i64..12), 0..25), crowd in 2usize..4) {
            let values: Vec<i64> = of.iter().map(|(_, value)| *value).collect();
            let supported: Vec<i64> =
                crowds(&of, &values).into_iter().filter(|(_, who)| who.len() >= crowd).map(|(value, _)| value).collect();
            let expected: Vec<i64> = values
                .iter()
                .map(|own| supported.iter().copied().min_by_key(|v| ((v - own).abs(), *v)).unwrap_or(*own))
                .collect();
            prop_assert_eq!(shown(&of, Alteration::Closest, crowd), expected);
        }

        /// Every number that is shown has its crowd, and their order is kept; or nothing changed.
        #[test]
        fn means_have_crowds(of in prop::collection::vec((0u64..7, 0i64..12), 0..25), crowd in 2usize..4) {
            let values: Vec<i64> = of.iter().map(|(_, value)| *value).collect();
            let shown = shown(&of, Alteration::Mean, crowd);
            let people = crowds(&of, &vec![0; of.len()]).remove(&0).map_or(0, |people| people.len());
            if people < crowd {
                prop_assert_eq!(shown, values);
                return Ok(());
            }
            for (value, people) in crowds(&of, &shown) {
                prop_assert!(people.len() >= crowd, "{} of {:?}", value, people);
            }
            for (i, j) in (0..of.len()).flat_map(|i| (0..of.len()).map(move |j| (i, j))) {
                prop_assert!(values[i] >= values[j] || shown[i] <= shown[j]);
            }
        }

        /// What takes a number's place does not depend on the order of the records.
        #[test]
        fn the_order_of_records_decides_nothing(
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
