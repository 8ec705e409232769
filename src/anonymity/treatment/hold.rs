//! Who may wait: holding a record must not take away the crowd of one that leaves.

use super::crowd::{NO_SUBJECT, Released};
use super::recode::{Assignment, UNRELEASED};
use std::collections::BTreeMap;

/// Members of one class of one group.
struct Class {
    key: u128,
    rows: Vec<u32>,
}

/// From who would like to wait, who may: every class that anybody leaves in keeps k distinct subjects among those who
/// leave and what has been released. Where it would not, those who wished to wait leave with it, in the order of the
/// batch and no more of them than needed; that can call on further classes, in other groups, until nothing changes.
///
/// `wishes[row]` and the result are by row of the batch. Rows only ever stop waiting, so it ends.
#[must_use]
pub fn let_stay_supported(
    wishes: Vec<bool>,
    assignments: &[Assignment],
    subjects: &[u64],
    k: usize,
    released: &impl Released,
) -> Vec<bool> {
    let mut waiting = wishes;
    if !waiting.contains(&true) {
        return waiting;
    }
    let classes: Vec<Vec<Class>> = assignments.iter().map(classes_of).collect();
    let class_of: Vec<Vec<u32>> = classes.iter().map(|c| number_by_row(c, waiting.len())).collect();
    let mut open: Vec<(usize, usize)> =
        classes.iter().enumerate().flat_map(|(group, c)| (0..c.len()).map(move |class| (group, class))).collect();
    open.reverse();
    let mut known = vec![0u64; k];
    while let Some((group, number)) = open.pop() {
        let class = &classes[group][number];
        if class.rows.iter().all(|&row| waiting[row as usize]) {
            continue;
        }
        let mut crowd: Vec<u64> = match &assignments[group].counted {
            Some(counted) => counted.earlier.get(&class.key).cloned().unwrap_or_default(),
            None => {
                let count = released.fresh_subjects(class.key, &mut known);
                known[..count].to_vec()
            }
        };
        let join = |crowd: &mut Vec<u64>, row: u32| {
            let subject = subjects[row as usize];
            let counts = assignments[group].counted.as_ref().is_none_or(|c| !c.excluded[row as usize]);
            let new = counts && subject != NO_SUBJECT && !crowd.contains(&subject);
            if new {
                crowd.push(subject);
            }
            new
        };
        for &row in class.rows.iter().filter(|&&row| !waiting[row as usize]) {
            if crowd.len() >= k {
                break;
            }
            join(&mut crowd, row);
        }
        for &row in &class.rows {
            if crowd.len() >= k {
                break;
            }
            if waiting[row as usize] && join(&mut crowd, row) {
                waiting[row as usize] = false;
                // It leaves in every group now.
                for (other, numbers) in class_of.iter().enumerate() {
                    let number = numbers[row as usize];
                    if other != group && number != UNRELEASED {
                        open.push((other, number as usize));
                    }
                }
            }
        }
    }
    waiting
}

fn classes_of(assignment: &Assignment) -> Vec<Class> {
    let mut rows: BTreeMap<(u32, u128), Vec<u32>> = BTreeMap::new();
    for (row, (&node, &key)) in (0u32..).zip(assignment.node.iter().zip(&assignment.class)) {
        if node != UNRELEASED {
            rows.entry((node, key)).or_default().push(row);
        }
    }
    // One class may be met at two nodes; each meeting had its own support.
    rows.into_iter().map(|((_, key), rows)| Class { key, rows }).collect()
}

fn number_by_row(classes: &[Class], rows: usize) -> Vec<u32> {
    let mut numbers = vec![UNRELEASED; rows];
    for (number, class) in (0u32..).zip(classes) {
        for &row in &class.rows {
            numbers[row as usize] = number;
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    struct NothingReleased;

    impl Released for NothingReleased {
        fn fresh_subjects(&self, _class: u128, _out: &mut [u64]) -> usize {
            0
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn those_who_leave_keep_their_crowd(
            rows in prop::collection::vec((1u64..9, any::<bool>(), 0u128..3, 0u128..3), 1..24),
            k in 2usize..4,
        ) {
            let subjects: Vec<u64> = rows.iter().map(|r| r.0).collect();
            let wishes: Vec<bool> = rows.iter().map(|r| r.1).collect();
            let group = |class: fn(&(u64, bool, u128, u128)) -> u128| {
                let keys: Vec<u128> = rows.iter().map(class).collect();
                let people = |key: u128| -> usize {
                    let of = rows.iter().zip(&keys).filter(|(_, q)| **q == key).map(|(r, _)| r.0);
                    of.collect::<BTreeSet<_>>().len()
                };
                // Only classes with support have been assigned.
                let node = keys.iter().map(|&key| if people(key) >= k { 0 } else { UNRELEASED }).collect();
                Assignment { node, class: keys, counted: None, silent: vec![] }
            };
            let assignments = [group(|r| r.2), group(|r| r.3)];
            let waiting = let_stay_supported(wishes.clone(), &assignments, &subjects, k, &NothingReleased);
            for (row, wish) in wishes.iter().enumerate() {
                prop_assert!(*wish || !waiting[row], "nobody waits who did not wish to");
            }
            for assignment in &assignments {
                for row in (0..rows.len()).filter(|&r| !waiting[r] && assignment.node[r] == 0) {
                    let crowd: BTreeSet<u64> = (0..rows.len())
                        .filter(|&r| !waiting[r] && assignment.node[r] == 0 && assignment.class[r] == assignment.class[row])
                        .map(|r| subjects[r])
                        .collect();
                    prop_assert!(crowd.len() >= k);
                }
            }
        }
    }
}
