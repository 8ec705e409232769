//! Class values of different subjects.

/// Checks for distinct representatives: `needed` values with a different subject each. `pairs` are sorted and distinct.
///
/// A value with `needed` subjects always has a free one. Time: O(values · `needed`²).
pub fn has_distinct_representatives(pairs: &[(u64, u64)], needed: usize) -> bool {
    let values: Vec<&[(u64, u64)]> =
        pairs.chunk_by(|a, b| a.0 == b.0).map(|of_value| &of_value[..of_value.len().min(needed)]).collect();
    if values.len() < needed {
        return false;
    }
    // (subject, value).
    let mut taken: Vec<(u64, usize)> = Vec::with_capacity(needed);
    (0..values.len()).any(|value| {
        if taken.len() < needed {
            assign_representative(value, &values, &mut taken, &mut Vec::new());
        }
        taken.len() >= needed
    }) || needed == 0
}

/// Augments the matching; `asked` were tried.
fn assign_representative(
    value: usize,
    values: &[&[(u64, u64)]],
    taken: &mut Vec<(u64, usize)>,
    asked: &mut Vec<u64>,
) -> bool {
    for &(_, subject) in values[value] {
        if asked.contains(&subject) {
            continue;
        }
        asked.push(subject);
        match taken.iter().position(|(by, _)| *by == subject) {
            None => {
                taken.push((subject, value));
                return true;
            }
            Some(at) => {
                let holder = taken[at].1;
                if assign_representative(holder, values, taken, asked) {
                    // The other value moved.
                    taken[at].1 = value;
                    return true;
                }
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn max_assigned_values(values: &[Vec<u64>], used: &mut BTreeSet<u64>) -> usize {
        let Some((first, rest)) = values.split_first() else { return 0 };
        let mut best = max_assigned_values(rest, used);
        for &subject in first {
            if used.insert(subject) {
                best = best.max(1 + max_assigned_values(rest, used));
                used.remove(&subject);
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn representatives_match_exhaustive_assignment(pairs in prop::collection::btree_set((0u64..6, 0u64..6), 0..18), needed in 0usize..6) {
            let pairs: Vec<(u64, u64)> = pairs.into_iter().collect();
            let values: Vec<Vec<u64>> =
                pairs.chunk_by(|a, b| a.0 == b.0).map(|of| of.iter().map(|pair| pair.1).collect()).collect();
            prop_assert_eq!(has_distinct_representatives(&pairs, needed), max_assigned_values(&values, &mut BTreeSet::new()) >= needed);
        }
    }

    #[test]
    fn representatives_use_each_subject_once() {
        let of_one = [(1, 7), (2, 7), (3, 7), (3, 8)];
        assert!(has_distinct_representatives(&of_one, 2) && !has_distinct_representatives(&of_one, 3));
    }
}
