//! Who may wait: holding a record must not take away the crowd of one that leaves.

use super::crowd::{Floor, NO_SUBJECT};
use super::recode::{Assignment, Counted, UNRELEASED};
use std::collections::BTreeMap;

/// Members of one class of one group.
struct Class {
    key: u128,
    rows: Vec<u32>,
}

/// From who would like to wait, who may: every class that anybody leaves in keeps the crowd of `floor` among those who leave
/// and what has been released (`earlier` writes subjects of a class, see [`CrowdTable::complete`](super::crowd::CrowdTable::complete)), by every count that its recoding asked for. Where it would not, those who wished to wait
/// leave with it, in the order of the batch and no more of them than needed; that can call on further classes, in other
/// groups, until nothing changes.
///
/// `wishes[row]` and the result are by row of the batch. Rows only ever stop waiting, so it ends.
#[must_use]
pub fn let_stay_supported(
    wishes: Vec<bool>,
    assignments: &[Assignment],
    subjects: &[u64],
    floor: Floor,
    earlier: impl Fn(u128, &mut [u64]) -> usize,
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
    while let Some((group, number)) = open.pop() {
        let class = &classes[group][number];
        if class.rows.iter().all(|&row| waiting[row as usize]) {
            continue;
        }
        let mut members = Members::new(class.key, floor, &assignments[group], &earlier);
        for &row in class.rows.iter().filter(|&&row| !waiting[row as usize]) {
            if members.is_enough() {
                break;
            }
            members.join(row, subjects);
        }
        for &row in &class.rows {
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

/// Who is in a class, by every count that matters; none goes on beyond what it needs.
struct Members<'a> {
    floor: Floor,
    /// Subjects of the batch.
    here: Vec<u64>,
    /// The same, and those released before.
    all: Vec<u64>,
    /// Where recoding is strict: those whose raw tuples count.
    strict: Option<(Vec<u64>, &'a Counted)>,
    /// Rows that count for nobody.
    muted: &'a [bool],
}

impl<'a> Members<'a> {
    fn new(class: u128, floor: Floor, assignment: &'a Assignment, earlier: impl Fn(u128, &mut [u64]) -> usize) -> Self {
        let mut all = vec![0u64; if floor.asks_the_window() { floor.k } else { 0 }];
        let known = earlier(class, &mut all);
        all.truncate(known);
        let of_tuples = |counted: &'a Counted| (counted.earlier.get(&class).cloned().unwrap_or_default(), counted);
        let strict = assignment.counted.as_ref().map(of_tuples);
        Self { floor, here: Vec::new(), all, strict, muted: &assignment.muted }
    }

    fn is_enough(&self) -> bool {
        let strict = self.strict.as_ref().is_none_or(|(subjects, _)| subjects.len() >= self.floor.k);
        strict && self.floor.is_met(self.here.len(), self.all.len())
    }

    /// Adds a row of the batch; whether any count needed it.
    fn join(&mut self, row: u32, subjects: &[u64]) -> bool {
        let subject = subjects[row as usize];
        if subject == NO_SUBJECT || self.muted.get(row as usize).copied().unwrap_or(false) {
            return false;
        }
        let helps = |known: &mut Vec<u64>, needed: usize| {
            let new = known.len() < needed && !known.contains(&subject);
            if new {
                known.push(subject);
            }
            new
        };
        let mut helped = helps(&mut self.here, self.floor.batch);
        helped |= helps(&mut self.all, self.floor.k);
        if let Some((known, counted)) = &mut self.strict
            && !counted.excluded[row as usize]
        {
            helped |= helps(known, self.floor.k);
        }
        helped
    }
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

    /// `past`: the same subjects in every class.
    fn is_crowd(here: &BTreeSet<u64>, past: &[u64], k: usize, batch: usize) -> bool {
        let all: BTreeSet<u64> = past.iter().take(k).chain(here).copied().collect();
        here.len() >= batch && all.len() >= k
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn those_who_leave_keep_their_crowd(
            rows in prop::collection::vec((1u64..9, any::<bool>(), 0u128..3, 0u128..3), 1..24),
            (k, batch) in (2usize..4, 0usize..4).prop_map(|(k, batch)| (k, batch.min(k))),
            past in prop::collection::btree_set(5u64..12, 0..4),
        ) {
            let past: Vec<u64> = past.into_iter().collect();
            let earlier = |_: u128, out: &mut [u64]| past.iter().zip(out).map(|(s, o)| *o = *s).count();
            let subjects: Vec<u64> = rows.iter().map(|r| r.0).collect();
            let wishes: Vec<bool> = rows.iter().map(|r| r.1).collect();
            let group = |class: fn(&(u64, bool, u128, u128)) -> u128| {
                let keys: Vec<u128> = rows.iter().map(class).collect();
                let supported = |key: u128| {
                    let here = rows.iter().zip(&keys).filter(|(_, q)| **q == key).map(|(r, _)| r.0).collect();
                    is_crowd(&here, &past, k, batch)
                };
                // Only classes with support have been assigned.
                let node = keys.iter().map(|&key| if supported(key) { 0 } else { UNRELEASED }).collect();
                Assignment { node, class: keys, counted: None, silent: vec![], muted: vec![] }
            };
            let assignments = [group(|r| r.2), group(|r| r.3)];
            let waiting = let_stay_supported(wishes.clone(), &assignments, &subjects, Floor { k, batch }, earlier);
            for (row, wish) in wishes.iter().enumerate() {
                prop_assert!(*wish || !waiting[row], "nobody waits who did not wish to");
            }
            for assignment in &assignments {
                for row in (0..rows.len()).filter(|&r| !waiting[r] && assignment.node[r] == 0) {
                    let crowd: BTreeSet<u64> = (0..rows.len())
                        .filter(|&r| !waiting[r] && assignment.node[r] == 0 && assignment.class[r] == assignment.class[row])
                        .map(|r| subjects[r])
                        .collect();
                    prop_assert!(is_crowd(&crowd, &past, k, batch));
                }
            }
        }
    }
}
