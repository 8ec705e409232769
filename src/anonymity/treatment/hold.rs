//! Who may wait: holding a record must not take away the crowd of one that leaves.

use super::crowd::NO_SUBJECT;
use super::recode::{Assignment, UNRELEASED};
use std::collections::BTreeMap;

/// From who would like to wait, who may: every class that anybody leaves in keeps `k` subjects among those who leave. Where it
/// would not, those who wished to wait leave with it, in the order of the batch and no more of them than needed; that can call on further classes, in
/// other groups, until nothing changes.
///
/// `wishes[row]` and the result are by row of the batch. Rows only ever stop waiting, so it ends.
pub fn let_stay_supported(wishes: Vec<bool>, assignments: &[Assignment], subjects: &[u64], k: usize) -> Vec<bool> {
    let mut waiting = wishes;
    if !waiting.contains(&true) {
        return waiting;
    }
    let classes: Vec<Vec<Vec<u32>>> = assignments.iter().map(classes_of).collect();
    let class_of: Vec<Vec<u32>> = classes.iter().map(|c| number_by_row(c, waiting.len())).collect();
    let mut open: Vec<(usize, usize)> =
        classes.iter().enumerate().flat_map(|(group, c)| (0..c.len()).map(move |class| (group, class))).collect();
    open.reverse();
    while let Some((group, number)) = open.pop() {
        let class = &classes[group][number];
        if class.iter().all(|&row| waiting[row as usize]) {
            continue;
        }
        let mut members = Members { k, known: Vec::new(), muted: &assignments[group].muted };
        for &row in class.iter().filter(|&&row| !waiting[row as usize]) {
            if members.is_enough() {
                break;
            }
            members.join(row, subjects);
        }
        for &row in class {
            if members.is_enough() {
                break;
            }
            if waiting[row as usize] && members.join(row, subjects) {
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

/// Subjects of a class, up to the k that it needs.
struct Members<'a> {
    k: usize,
    known: Vec<u64>,
    /// Rows that count for nobody.
    muted: &'a [bool],
}

impl Members<'_> {
    fn is_enough(&self) -> bool {
        self.known.len() >= self.k
    }

    /// Adds a row of the batch; whether the class needed it.
    fn join(&mut self, row: u32, subjects: &[u64]) -> bool {
        let subject = subjects[row as usize];
        let counts = subject != NO_SUBJECT && !self.muted.get(row as usize).copied().unwrap_or(false);
        let helps = counts && !self.is_enough() && !self.known.contains(&subject);
        if helps {
            self.known.push(subject);
        }
        helps
    }
}

/// The rows of each class.
fn classes_of(assignment: &Assignment) -> Vec<Vec<u32>> {
    let mut rows: BTreeMap<(u32, u128), Vec<u32>> = BTreeMap::new();
    for (row, (&node, &key)) in (0u32..).zip(assignment.node.iter().zip(&assignment.class)) {
        if node != UNRELEASED {
            rows.entry((node, key)).or_default().push(row);
        }
    }
    // One class may be met at two nodes; each meeting had its own support.
    rows.into_values().collect()
}

fn number_by_row(classes: &[Vec<u32>], rows: usize) -> Vec<u32> {
    let mut numbers = vec![UNRELEASED; rows];
    for (number, class) in (0u32..).zip(classes) {
        for &row in class {
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
                let supported = |key: u128| {
                    let here: BTreeSet<u64> =
                        rows.iter().zip(&keys).filter(|(_, q)| **q == key).map(|(r, _)| r.0).collect();
                    here.len() >= k
                };
                // Only classes with support have been assigned.
                let node = keys.iter().map(|&key| if supported(key) { 0 } else { UNRELEASED }).collect();
                Assignment { node, class: keys, muted: vec![], shown: None }
            };
            let assignments = [group(|r| r.2), group(|r| r.3)];
            let waiting = let_stay_supported(wishes.clone(), &assignments, &subjects, k);
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
