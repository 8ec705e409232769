//! How many values of a class belong to different subjects: what keeps one talkative person from making a class diverse.

/// Whether `needed` of the values can each be given a subject of its own, one that has shown it: a system of distinct
/// representatives. `pairs` are (value, subject), sorted, each once.
///
/// A value with `needed` subjects finds a free one whatever the others took, so that no more of its subjects are looked
/// at. Time: O(values · `needed`²) at worst, O(pairs) where subjects show one value each.
pub fn represented(pairs: &[(u64, u64)], needed: usize) -> bool {
    let values: Vec<&[(u64, u64)]> =
        pairs.chunk_by(|a, b| a.0 == b.0).map(|of_value| &of_value[..of_value.len().min(needed)]).collect();
    if values.len() < needed {
        return false;
    }
    // (subject, the value that it stands for).
    let mut taken: Vec<(u64, usize)> = Vec::with_capacity(needed);
    (0..values.len()).any(|value| {
        if taken.len() < needed {
            augment(value, &values, &mut taken, &mut Vec::new());
        }
        taken.len() >= needed
    }) || needed == 0
}

/// Finds `value` a subject, moving others where that frees one. `asked` are the subjects tried for this value.
fn augment(value: usize, values: &[&[(u64, u64)]], taken: &mut Vec<(u64, usize)>, asked: &mut Vec<u64>) -> bool {
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
                if augment(holder, values, taken, asked) {
                    // The holder has moved to a subject of its own; this one is free for the value.
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

    /// Tries every choice of a subject for every value.
    fn most(values: &[Vec<u64>], used: &mut BTreeSet<u64>) -> usize {
        let Some((first, rest)) = values.split_first() else { return 0 };
        let mut best = most(rest, used);
        for &subject in first {
            if used.insert(subject) {
                best = best.max(1 + most(rest, used));
                used.remove(&subject);
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn agrees_with_every_choice(pairs in prop::collection::btree_set((0u64..6, 0u64..6), 0..18), needed in 0usize..6) {
            let pairs: Vec<(u64, u64)> = pairs.into_iter().collect();
            let values: Vec<Vec<u64>> =
                pairs.chunk_by(|a, b| a.0 == b.0).map(|of| of.iter().map(|pair| pair.1).collect()).collect();
            prop_assert_eq!(represented(&pairs, needed), most(&values, &mut BTreeSet::new()) >= needed);
        }
    }

    #[test]
    fn one_person_represents_one_value() {
        let of_one = [(1, 7), (2, 7), (3, 7), (3, 8)];
        assert!(represented(&of_one, 2) && !represented(&of_one, 3));
    }
}
