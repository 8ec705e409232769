//! Compares the guard with its definition.

use super::*;
use crate::values::codebook::{CellId, SUPPRESSED};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// 1 and 2 are below 5, 3 and 4 below 6, all of them below 7; 8 has no parent.
pub(super) fn tree() -> LabelsAbove {
    let labels = [(1, vec![5, 7]), (2, vec![5, 7]), (3, vec![6, 7]), (4, vec![6, 7]), (5, vec![7]), (6, vec![7])];
    labels.into_iter().collect()
}

pub(super) fn group(columns: Vec<Vec<CellId>>, quasi: usize, worth: &[f32]) -> GroupCells {
    let above = vec![tree(); columns.len()];
    GroupCells {
        attributes: (0..columns.len()).collect(),
        columns,
        labels_by_cell: above,
        quasi,
        worth: worth.to_vec(),
    }
}

fn conjunction_rows(group: &GroupCells, rows: usize) -> BTreeSet<BTreeSet<usize>> {
    let mut found: BTreeSet<BTreeSet<usize>> = BTreeSet::from([(0..rows).collect()]);
    for (column, above) in group.columns.iter().zip(&group.labels_by_cell) {
        let below = |label: CellId| -> BTreeSet<usize> {
            let is_below = |cell: CellId| cell == label || above.get(&cell).is_some_and(|a| a.contains(&label));
            (0..rows).filter(|&row| is_below(column[row])).collect()
        };
        let with: Vec<BTreeSet<usize>> = found
            .iter()
            .flat_map(|set| {
                let printed =
                    |cell: CellId| -> BTreeSet<usize> { (0..rows).filter(|&row| column[row] == cell).collect() };
                let sets = (1..9).flat_map(|label| [below(label), printed(label)]).collect::<Vec<_>>();
                sets.into_iter().map(|of| set.intersection(&of).copied().collect())
            })
            .collect();
        found.extend(with);
    }
    let present = |row: &usize| group.columns.iter().any(|column| column[*row] != SUPPRESSED);
    found.retain(|set| !set.is_empty() && set.iter().all(present));
    found
}

fn has_forced_pair(groups: &[GroupCells], subjects: &[u64], k: usize) -> bool {
    let present = |group: &GroupCells| -> BTreeSet<usize> {
        (0..subjects.len()).filter(|&row| group.columns.iter().any(|column| column[row] != SUPPRESSED)).collect()
    };
    let most = groups.iter().map(|group| present(group).len()).max().unwrap_or(0);
    let all: Vec<_> = groups.iter().map(|group| conjunction_rows(group, subjects.len())).collect();
    (0..groups.len()).any(|a| {
        (a + 1..groups.len()).any(|b| {
            let records = most.min(present(&groups[a]).union(&present(&groups[b])).count());
            // The empty conjunction is not a set of labels.
            let named = |g: usize, set: &BTreeSet<usize>| set.len() < subjects.len() || is_label(&groups[g], set);
            all[a].iter().filter(|x| named(a, x)).any(|x| {
                all[b].iter().filter(|y| named(b, y)).any(|y| {
                    let both: BTreeSet<u64> =
                        x.intersection(y).map(|&row| subjects[row]).filter(|subject| *subject != 0).collect();
                    x.len() + y.len() > records && both.len() < k
                })
            })
        })
    })
}

fn withdraw_largest(groups: &mut [GroupCells], subjects: &[u64], k: usize) -> u64 {
    withdraw_forced_pairs(groups, subjects, k, GuardRecordBound::LargestGroup, &mut StepBudget::default())
}

fn is_label(group: &GroupCells, all: &BTreeSet<usize>) -> bool {
    group.columns.iter().zip(&group.labels_by_cell).any(|(column, above)| {
        (1..9).any(|label| {
            all.iter()
                .all(|&row| column[row] == label || above.get(&column[row]).is_some_and(|above| above.contains(&label)))
        })
    })
}

#[test]
fn supported_classes_can_force_pair_of_one_subject() {
    // docs/internals/methods.md §10.3: pulse "high" of four subjects, "low" of two; age "70+" of one "high" and both
    // "low".
    let pulse = group(vec![vec![8, 8, 8, 8, 1, 1]], 1, &[1.0; 6]);
    let age = group(vec![vec![8, 8, 8, 3, 3, 3]], 1, &[1.0; 6]);
    let (mut groups, subjects) = (vec![pulse, age], [1, 2, 3, 4, 5, 6]);
    assert!(has_forced_pair(&groups, &subjects, 2));
    assert_eq!(withdraw_largest(&mut groups, &subjects, 2), 3);
    assert_eq!(groups[1].columns[0], [8, 8, 8, SUPPRESSED, SUPPRESSED, SUPPRESSED]);
    assert!(!has_forced_pair(&groups, &subjects, 2));
}

#[test]
fn groups_with_different_subjects_use_union_as_bound() {
    let only = |rows: std::ops::Range<usize>, cell| {
        let column = (0..10).map(|row| if rows.contains(&row) { cell } else { SUPPRESSED }).collect();
        group(vec![column], 1, &[1.0; 10])
    };
    let subjects: Vec<u64> = (1..=10).collect();
    let withdrawn = |groups: &[GroupCells], k: usize| {
        withdraw_forced_pairs(
            &mut groups.to_vec(),
            &subjects,
            k,
            GuardRecordBound::UnionOfBoth,
            &mut StepBudget::default(),
        )
    };
    assert_eq!(withdrawn(&[only(0..4, 8), only(4..8, 3)], 2), 0);
    // Two subjects are in both: 6 + 6 − 10 = 2.
    assert_eq!(withdrawn(&[only(0..6, 8), only(4..10, 3)], 2), 0);
    assert_eq!(withdrawn(&[only(0..6, 8), only(4..10, 3)], 3), 6);
}

#[test]
fn hierarchy_labels_force_pair_without_printed_cell() {
    // Six of eight are below 7, three are 8: one subject must be both.
    let mut groups = vec![
        group(vec![vec![1, 2, 3, 4, 5, 6, 8, 8]], 1, &[1.0; 8]),
        group(vec![vec![8, 1, 2, 3, 4, 5, 8, 8]], 1, &[1.0; 8]),
    ];
    let subjects = [1, 2, 3, 4, 5, 6, 7, 8];
    for group in &mut groups {
        let plain = std::mem::take(&mut group.labels_by_cell[0]);
        assert_eq!(plain.len(), 6);
    }
    assert!(!has_forced_pair(&groups, &subjects, 2), "no printed cell");
    for group in &mut groups {
        group.labels_by_cell[0] = tree();
    }
    assert!(has_forced_pair(&groups, &subjects, 2));
    assert!(withdraw_largest(&mut groups, &subjects, 2) > 0);
    assert!(!has_forced_pair(&groups, &subjects, 2));
}

#[test]
fn pair_bound_ignores_records_of_other_groups() {
    // Ten records are released in the third group, four in the first two: all four are 8, one is 3.
    let with = |cells: &[CellId]| [cells, &[SUPPRESSED; 6]].concat();
    let mut groups = vec![
        group(vec![with(&[8, 8, 8, 8])], 1, &[1.0; 10]),
        group(vec![with(&[3, 8, 8, 8])], 1, &[1.0; 10]),
        group(vec![vec![1; 10]], 1, &[1.0; 10]),
    ];
    let subjects = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    assert!(has_forced_pair(&groups, &subjects, 2));
    assert_eq!(withdraw_largest(&mut groups, &subjects, 2), 1);
    assert_eq!(groups[1].columns[0][..2], [SUPPRESSED, 8]);
}

fn cell() -> impl Strategy<Value = CellId> {
    prop_oneof![1 => Just(SUPPRESSED), 6 => 1u32..3, 3 => 1u32..9]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn guard_leaves_no_forced_pair_below_k(
        rows in prop::collection::vec((0u64..9, prop::collection::vec(cell(), 5)), 1..14),
        k in 2usize..4,
    ) {
        let subjects: Vec<u64> = rows.iter().map(|r| r.0).collect();
        let worth: Vec<f32> = rows.iter().map(|r| r.1[0] as f32).collect();
        let column = |i: usize| rows.iter().map(|r| r.1[i]).collect::<Vec<_>>();
        let mut groups = vec![
            group(vec![column(0), column(1)], 1, &worth),
            group(vec![column(2), column(3)], 2, &worth),
            group(vec![column(4)], 1, &worth),
        ];
        let untouched = groups.clone();
        let withdrawn = withdraw_largest(&mut groups, &subjects, k);
        prop_assert!(!has_forced_pair(&groups, &subjects, k));
        prop_assert_eq!(withdrawn > 0, has_forced_pair(&untouched, &subjects, k));
        for (group, before) in groups.iter().zip(&untouched) {
            let class = |g: &GroupCells, row: usize| -> Vec<CellId> { g.columns[..g.quasi].iter().map(|c| c[row]).collect() };
            for row in (0..subjects.len()).filter(|&r| class(group, r).iter().any(|c| *c != SUPPRESSED)) {
                let members = |g: &GroupCells| (0..subjects.len()).filter(|&r| class(g, r) == class(before, row)).count();
                prop_assert_eq!(members(group), members(before), "a class stays whole");
            }
        }
    }
}

fn nearly_constant_groups() -> (Vec<GroupCells>, Vec<u64>) {
    let mut state = 3_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut tuples = || -> Vec<Vec<CellId>> {
        let mut cell = || if next() % 20 > 0 { 1 } else { 1 + next() as CellId % 8 };
        (0..120).map(|_| (0..12).map(|_| cell()).collect()).collect()
    };
    let (one, other) = (tuples(), tuples());
    let columns = |of: &dyn Fn(usize) -> Vec<CellId>| -> Vec<Vec<CellId>> {
        (0..12).map(|column| (0..960).map(|row| of(row)[column]).collect()).collect()
    };
    let first = columns(&|row| one[row / 8].clone());
    let second = columns(&|row| other[row * 7_919 % 120].clone());
    (vec![group(first, 12, &[2.0; 960]), group(second, 12, &[1.0; 960])], (1..=960).collect())
}

#[test]
fn step_limit_withdraws_lighter_group() {
    let (mut groups, subjects) = nearly_constant_groups();
    let mut steps = StepBudget::with_limit(1 << 12);
    let withdrawn = withdraw_forced_pairs(&mut groups, &subjects, 5, GuardRecordBound::LargestGroup, &mut steps);
    let rows = |group: &GroupCells| (0..960).filter(|&row| group.columns.iter().any(|c| c[row] != SUPPRESSED)).count();
    assert_eq!((rows(&groups[0]), rows(&groups[1]), withdrawn), (960, 0, 960));
}
