//! Perturbation and micro-aggregation of the numbers of a batch ([POD] §2.1, §6.2; docs/methods.md §10.5): before classes are
//! formed, a number gives way to another one of the same batch, so that enough people share it.
//!
//! What holds: a number that takes another's place is one that the batch has, in a record that is alike in the rest of the group; after it, enough
//! people of those records share it. What is printed is treated and verified like any other batch, so R(k) holds of the printed tuples.
//! What does not hold: an altered cell is not true.

use crate::records::codebook::Code;
use crate::records::subject::NO_SUBJECT;
use std::collections::{BTreeMap, BTreeSet};

/// Who takes the place of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// The closest number with a crowd; of two that are as close, the smaller. Only numbers without a crowd give way.
    Closest,
    /// The lower median of a crowd of neighbours. All numbers give way.
    Median,
}

/// A number of a record.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// The record.
    pub row: u32,
    /// Its person, or [`NO_SUBJECT`].
    pub subject: u64,
    /// The number; finite.
    pub value: f64,
    /// Its code.
    pub code: Code,
}

/// The rows whose number gives way to another, with the code that takes its place. `numbers` are of records that are alike in
/// all else that leaves with them; `crowd` people are asked for. In no order of the rows but by what they say.
#[must_use]
pub fn altered(mut numbers: Vec<Number>, alteration: Alteration, crowd: usize) -> Vec<(u32, Code)> {
    numbers.sort_by(|a, b| a.value.total_cmp(&b.value).then(a.row.cmp(&b.row)));
    let by: Vec<&[Number]> = numbers.chunk_by(|a, b| a.value.total_cmp(&b.value).is_eq()).collect();
    let shown = match alteration {
        Alteration::Closest => closest(&by, crowd),
        Alteration::Median => medians(&by, crowd),
    };
    let replaced = by.iter().zip(shown).flat_map(|(same, shown)| same.iter().map(move |number| (number, shown)));
    replaced.filter(|(number, shown)| number.code != *shown).map(|(number, shown)| (number.row, shown)).collect()
}

/// Whether `people` has `crowd` members, of whom nobody counts for nobody.
fn is_crowd<'a>(numbers: impl Iterator<Item = &'a Number>, crowd: usize) -> bool {
    let people: BTreeSet<u64> = numbers.map(|number| number.subject).filter(|s| *s != NO_SUBJECT).collect();
    people.len() >= crowd
}

/// By distinct number, ascending, the one that takes its place.
fn closest(by: &[&[Number]], crowd: usize) -> Vec<Code> {
    let supported: BTreeMap<usize, f64> =
        (0..by.len()).filter(|&at| is_crowd(by[at].iter(), crowd)).map(|at| (at, by[at][0].value)).collect();
    let of = |at: usize| {
        let own = by[at][0].value;
        let below = supported.range(..=at).next_back();
        let above = supported.range(at..).next();
        let nearest = match (below, above) {
            (Some((low, low_value)), Some((high, high_value))) => {
                if own - low_value <= high_value - own {
                    *low
                } else {
                    *high
                }
            }
            (Some((near, _)), None) | (None, Some((near, _))) => *near,
            (None, None) => at,
        };
        by[nearest][0].code
    };
    (0..by.len()).map(of).collect()
}

/// The same by crowds of neighbours, as small as they can be from the smallest number on; what is left at the end joins the last.
fn medians(by: &[&[Number]], crowd: usize) -> Vec<Code> {
    let own: Vec<Code> = by.iter().map(|same| same[0].code).collect();
    let mut cuts = vec![0];
    let mut people = BTreeSet::new();
    for (at, same) in by.iter().enumerate() {
        people.extend(same.iter().map(|number| number.subject).filter(|subject| *subject != NO_SUBJECT));
        if people.len() >= crowd {
            cuts.push(at + 1);
            people.clear();
        }
    }
    if cuts.len() == 1 {
        return own;
    }
    let last = cuts.len() - 1;
    cuts[last] = by.len();
    let mut shown = Vec::with_capacity(by.len());
    for ends in cuts.windows(2) {
        let members: Vec<&Number> = by[ends[0]..ends[1]].iter().flat_map(|same| same.iter()).collect();
        shown.extend(vec![members[(members.len() - 1) / 2].code; ends[1] - ends[0]]);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::codebook::FIRST_VALUE;
    use proptest::prelude::*;

    /// A number is its own code here.
    fn numbers(of: &[(u64, i32)]) -> Vec<Number> {
        let code = |value: i32| FIRST_VALUE + value as Code;
        (0..)
            .zip(of)
            .map(|(row, &(subject, value))| Number { row, subject, value: f64::from(value), code: code(value) })
            .collect()
    }

    fn shown(of: &[(u64, i32)], alteration: Alteration, crowd: usize) -> Vec<i32> {
        let mut values: Vec<i32> = of.iter().map(|(_, value)| *value).collect();
        for (row, code) in altered(numbers(of), alteration, crowd) {
            values[row as usize] = (code - FIRST_VALUE) as i32;
        }
        values
    }

    #[test]
    fn the_closest_with_a_crowd_takes_its_place() {
        let of = [(1, 60), (2, 60), (3, 80), (4, 80), (5, 71), (6, 70), (7, 99)];
        assert_eq!(shown(&of, Alteration::Closest, 2), [60, 60, 80, 80, 80, 60, 80], "the smaller of two as close");
        assert_eq!(shown(&of, Alteration::Closest, 3), of.map(|(_, value)| value), "nothing has a crowd");
        assert_eq!(shown(&[(1, 5), (1, 5), (2, 6)], Alteration::Closest, 2), [5, 5, 6], "one person is no crowd");
    }

    #[test]
    fn neighbours_show_their_median() {
        let of = [(1, 1), (2, 3), (3, 9), (4, 10), (5, 40)];
        assert_eq!(shown(&of, Alteration::Median, 2), [1, 1, 10, 10, 10], "the last joins the crowd before it");
        assert_eq!(shown(&of[..1], Alteration::Median, 2), [1], "too few");
        assert_eq!(
            shown(&[(NO_SUBJECT, 7), (1, 1), (2, 2)], Alteration::Median, 2),
            [2, 2, 2],
            "nobody counts for nobody"
        );
    }

    /// How many people show each number.
    fn crowds(of: &[(u64, i32)], shown: &[i32]) -> BTreeMap<i32, BTreeSet<u64>> {
        let mut crowds: BTreeMap<i32, BTreeSet<u64>> = BTreeMap::new();
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
        fn the_closest_is_its_definition(of in prop::collection::vec((0u64..7, 0i32..12), 0..25), crowd in 2usize..4) {
            let values: Vec<i32> = of.iter().map(|(_, value)| *value).collect();
            let supported: Vec<i32> =
                crowds(&of, &values).into_iter().filter(|(_, who)| who.len() >= crowd).map(|(value, _)| value).collect();
            let expected: Vec<i32> = values
                .iter()
                .map(|own| supported.iter().copied().min_by_key(|v| ((v - own).abs(), *v)).unwrap_or(*own))
                .collect();
            prop_assert_eq!(shown(&of, Alteration::Closest, crowd), expected);
        }

        /// Every number that is shown has its crowd, is one of the batch, and their order is kept; or nothing changed.
        #[test]
        fn medians_have_crowds(of in prop::collection::vec((0u64..7, 0i32..12), 0..25), crowd in 2usize..4) {
            let values: Vec<i32> = of.iter().map(|(_, value)| *value).collect();
            let shown = shown(&of, Alteration::Median, crowd);
            let people = crowds(&of, &vec![0; of.len()]).remove(&0).map_or(0, |people| people.len());
            if people < crowd {
                prop_assert_eq!(shown, values);
                return Ok(());
            }
            for (value, people) in crowds(&of, &shown) {
                prop_assert!(people.len() >= crowd && values.contains(&value), "{} of {:?}", value, people);
            }
            for (i, j) in (0..of.len()).flat_map(|i| (0..of.len()).map(move |j| (i, j))) {
                prop_assert!(values[i] >= values[j] || shown[i] <= shown[j]);
            }
        }

        /// What takes a number's place does not depend on the order of the records.
        #[test]
        fn the_order_of_records_decides_nothing(
            of in prop::collection::vec((0u64..7, 0i32..12), 0..20), crowd in 2usize..4,
        ) {
            for alteration in [Alteration::Closest, Alteration::Median] {
                let turned: Vec<(u64, i32)> = of.iter().rev().copied().collect();
                let mut back = shown(&turned, alteration, crowd);
                back.reverse();
                prop_assert_eq!(shown(&of, alteration, crowd), back);
            }
        }
    }
}
