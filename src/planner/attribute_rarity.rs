//! Share of records that an attribute makes rare (\[POD] §6.3, docs/internals/methods.md §10.5).

use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap};
use throng_core::values::codebook::{Code, FIRST_VALUE};
use throng_core::values::subject_digest::NO_SUBJECT;

/// Measurements of an attribute, in [0, 1].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AttributeRarity {
    /// Share of records with a rare value, or a rare pair with the worst other attribute.
    pub coverage: f64,
    /// Distinct values over records.
    pub cardinality: f64,
}

/// Measures `attributes` of records with subjects; missing values are never rare. Time: O(records) per pair.
pub fn measure_rarity(columns: &[Vec<Code>], subjects: &[u64], attributes: &[usize], k: usize) -> Vec<AttributeRarity> {
    let rows: Vec<usize> = (0..subjects.len()).filter(|&row| subjects[row] != NO_SUBJECT).collect();
    if rows.is_empty() {
        return vec![AttributeRarity::default(); attributes.len()];
    }
    let share = |count: usize| count as f64 / rows.len() as f64;
    let alone: Vec<Vec<bool>> = attributes
        .par_iter()
        .map(|&a| mark_rare_rows(&rows, subjects, k, |row| Some(columns[a][row]).filter(|code| *code >= FIRST_VALUE)))
        .collect();
    let pair = |&(a, b): &(usize, usize)| {
        let (first, second) = (&columns[attributes[a]], &columns[attributes[b]]);
        let both = |row: usize| {
            let is_common = !alone[a][row] && !alone[b][row] && first[row] >= FIRST_VALUE && second[row] >= FIRST_VALUE;
            is_common.then(|| (first[row], second[row]))
        };
        ((a, b), mark_rare_rows(&rows, subjects, k, both).into_iter().filter(|rare| *rare).count())
    };
    let pairs: Vec<(usize, usize)> =
        (0..attributes.len()).flat_map(|a| (a + 1..attributes.len()).map(move |b| (a, b))).collect();
    let of_pairs: Vec<((usize, usize), usize)> = pairs.par_iter().map(pair).collect();
    let of = |(at, &attribute): (usize, &usize)| {
        let by_pair = of_pairs.iter().filter(|((a, b), _)| *a == at || *b == at).map(|(_, count)| *count);
        let by_itself = alone[at].iter().filter(|rare| **rare).count();
        let values: BTreeSet<Code> =
            rows.iter().map(|&row| columns[attribute][row]).filter(|code| *code >= FIRST_VALUE).collect();
        AttributeRarity { coverage: share(by_pair.max().unwrap_or(0).max(by_itself)), cardinality: share(values.len()) }
    };
    attributes.iter().enumerate().map(of).collect()
}

/// Rare: fewer than `k` subjects.
fn mark_rare_rows<V: Eq + std::hash::Hash>(
    rows: &[usize],
    subjects: &[u64],
    k: usize,
    value: impl Fn(usize) -> Option<V>,
) -> Vec<bool> {
    let mut people: HashMap<V, BTreeSet<u64>> = HashMap::new();
    for &row in rows {
        if let Some(value) = value(row) {
            let people = people.entry(value).or_default();
            if people.len() < k {
                people.insert(subjects[row]);
            }
        }
    }
    let mut rare = vec![false; subjects.len()];
    for &row in rows {
        rare[row] = value(row).is_some_and(|value| people[&value].len() < k);
    }
    rare
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const N: Code = FIRST_VALUE;

    #[test]
    fn rarity_counts_rare_pairs_of_common_values() {
        // Two combinations have one subject, all else three.
        let towns = vec![N, N, N, N + 1, N + 1, N + 1];
        let ages = vec![N, N, N + 1, N + 1, N + 1, N];
        let found = measure_rarity(&[towns, ages], &[1, 2, 3, 4, 5, 6], &[0, 1], 2);
        assert_eq!(found[0], AttributeRarity { coverage: 2.0 / 6.0, cardinality: 2.0 / 6.0 });
        assert_eq!(found[1], found[0]);
    }

    #[test]
    fn rarity_of_single_values_adds_no_pairs() {
        let codes: Vec<Code> = (0..6).map(|at| N + at).collect();
        let found = measure_rarity(&[codes, vec![N; 6]], &[1, 2, 3, 4, 5, 6], &[0, 1], 2);
        assert_eq!((found[0].coverage, found[1].coverage), (1.0, 0.0));
        assert_eq!(measure_rarity(&[vec![N]], &[NO_SUBJECT], &[0], 2), [AttributeRarity::default()]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn rarity_matches_definition(
            rows in prop::collection::vec((0u64..6, prop::array::uniform3(0u32..7)), 1..25), k in 2usize..4,
        ) {
            let subjects: Vec<u64> = rows.iter().map(|(subject, _)| *subject).collect();
            let columns: Vec<Vec<Code>> = (0..3).map(|a| rows.iter().map(|(_, codes)| codes[a]).collect()).collect();
            let counted: Vec<usize> = (0..rows.len()).filter(|&row| subjects[row] != NO_SUBJECT).collect();
            let people = |of: &[usize], row: usize| {
                let same = |other: &&usize| of.iter().all(|&a| columns[a][**other] == columns[a][row]);
                counted.iter().filter(same).map(|&other| subjects[other]).collect::<BTreeSet<u64>>().len()
            };
            let is_present = |a: usize, row: usize| columns[a][row] >= FIRST_VALUE;
            let found = measure_rarity(&columns, &subjects, &[0, 1, 2], k);
            for a in 0..3 {
                let alone = |a: usize, row: usize| is_present(a, row) && people(&[a], row) < k;
                let mut most = counted.iter().filter(|&&row| alone(a, row)).count();
                for b in (0..3).filter(|&b| b != a) {
                    let pair = |row: usize| {
                        is_present(a, row) && is_present(b, row) && !alone(a, row) && !alone(b, row)
                            && people(&[a, b], row) < k
                    };
                    most = most.max(counted.iter().filter(|&&row| pair(row)).count());
                }
                let expected = if counted.is_empty() { 0.0 } else { most as f64 / counted.len() as f64 };
                prop_assert_eq!(found[a].coverage, expected);
            }
        }
    }
}
