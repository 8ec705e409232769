//! Selects the records to hold.

use super::local_recoding::{ClassAssignment, UNRELEASED_NODE};
use super::subject_counting::NO_SUBJECT;
use std::collections::BTreeMap;

/// Returns by row which of the `wishes` may be held: every released class keeps `k` subjects.
///
/// A class with too few releases the minimum number of rows, in the order of the batch; other groups are checked again.
pub fn select_held_rows(wishes: Vec<bool>, assignments: &[ClassAssignment], subjects: &[u64], k: usize) -> Vec<bool> {
    let mut waiting = wishes;
    if !waiting.contains(&true) {
        return waiting;
    }
    let classes: Vec<Vec<Vec<u32>>> = assignments.iter().map(rows_by_class).collect();
    let class_of: Vec<Vec<u32>> = classes.iter().map(|c| class_number_by_row(c, waiting.len())).collect();
    let mut open: Vec<(usize, usize)> =
        classes.iter().enumerate().flat_map(|(group, c)| (0..c.len()).map(move |class| (group, class))).collect();
    open.reverse();
    while let Some((group, number)) = open.pop() {
        let class = &classes[group][number];
        if class.iter().all(|&row| waiting[row as usize]) {
            continue;
        }
        let mut members = ReleasedClassSubjects { k, known: Vec::new(), muted: &assignments[group].muted_rows };
        for &row in class.iter().filter(|&&row| !waiting[row as usize]) {
            if members.has_enough() {
                break;
            }
            members.add_released_row(row, subjects);
        }
        for &row in class {
            if members.has_enough() {
                break;
            }
            if waiting[row as usize] && members.add_released_row(row, subjects) {
                waiting[row as usize] = false;
                // The row is now released in every group.
                for (other, numbers) in class_of.iter().enumerate() {
                    let number = numbers[row as usize];
                    if other != group && number != UNRELEASED_NODE {
                        open.push((other, number as usize));
                    }
                }
            }
        }
    }
    waiting
}

struct ReleasedClassSubjects<'a> {
    k: usize,
    known: Vec<u64>,
    muted: &'a [bool],
}

impl ReleasedClassSubjects<'_> {
    fn has_enough(&self) -> bool {
        self.known.len() >= self.k
    }

    /// Returns true if the class needed the row's subject.
    fn add_released_row(&mut self, row: u32, subjects: &[u64]) -> bool {
        let subject = subjects[row as usize];
        let counts = subject != NO_SUBJECT && !self.muted.get(row as usize).copied().unwrap_or(false);
        let helps = counts && !self.has_enough() && !self.known.contains(&subject);
        if helps {
            self.known.push(subject);
        }
        helps
    }
}

fn rows_by_class(assignment: &ClassAssignment) -> Vec<Vec<u32>> {
    let mut rows: BTreeMap<(u32, u128), Vec<u32>> = BTreeMap::new();
    for (row, (&node, &key)) in (0u32..).zip(assignment.node.iter().zip(&assignment.class)) {
        if node != UNRELEASED_NODE {
            rows.entry((node, key)).or_default().push(row);
        }
    }
    // A class at two nodes has support at each of them separately.
    rows.into_values().collect()
}

fn class_number_by_row(classes: &[Vec<u32>], rows: usize) -> Vec<u32> {
    let mut numbers = vec![UNRELEASED_NODE; rows];
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
        fn held_rows_keep_released_classes_supported(
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
                let node = keys.iter().map(|&key| if supported(key) { 0 } else { UNRELEASED_NODE }).collect();
                ClassAssignment { node, class: keys, muted_rows: vec![], range_cells: None }
            };
            let assignments = [group(|r| r.2), group(|r| r.3)];
            let waiting = select_held_rows(wishes.clone(), &assignments, &subjects, k);
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
