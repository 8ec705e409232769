//! The counting guard between disjoint groups (METHODS §10, linking guard).
//!
//! Fragments of one batch can be joined by counting alone: if `n` of the batch's `N` records carry the cells X in one
//! group and `m` carry the cells Y in another, at least `n + m − N` records carry both. Where that number is positive
//! the pair (X, Y) is public, so it must be true of at least k subjects; otherwise the rarer side is withdrawn.
//!
//! `N` is taken as the largest number of fragments that any group releases: what a reader can be sure of from below,
//! hence the strictest reading. Suppressed cells say nothing and are left out of X and Y; missing values count.

use super::crowd::NO_SUBJECT;
use crate::records::codebook::{CellId, SUPPRESSED};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The cells of one group that leave: `columns[i][row]` belongs to `attributes[i]`.
#[derive(Clone, Debug)]
pub struct GroupCells {
    pub attributes: Vec<usize>,
    pub columns: Vec<Vec<CellId>>,
    /// What a row's fragment is worth to a reader: the sum over its present cells of one minus their loss.
    pub worth: Vec<f32>,
}

impl GroupCells {
    fn present(&self, row: usize) -> bool {
        self.columns.iter().any(|c| c[row] != SUPPRESSED)
    }

    fn contains(&self, row: u32, cells: &[(usize, CellId)]) -> bool {
        cells.iter().all(|&(column, cell)| self.columns[column][row as usize] == cell)
    }

    fn withdraw(&mut self, row: u32) {
        for column in &mut self.columns {
            column[row as usize] = SUPPRESSED;
        }
    }

    fn worth_of(&self, rows: impl Iterator<Item = u32>) -> f64 {
        rows.map(|row| f64::from(self.worth[row as usize])).sum()
    }
}

/// What is counted of a group, once for as long as it does not change.
struct View {
    rows: Vec<u32>,
    /// Rows by tuple.
    classes: Vec<Vec<u32>>,
    /// Cells by number of rows, for each column.
    counts: Vec<BTreeMap<CellId, usize>>,
    /// Rows that carry the most frequent cell.
    reach: usize,
}

impl View {
    fn of(group: &GroupCells) -> Self {
        let all = group.columns.first().map_or(0, Vec::len);
        let rows: Vec<u32> = (0..all)
            .filter(|&r| group.present(r))
            .map(|r| u32::try_from(r).expect("a batch is bounded"))
            .collect();
        // Two rows are of one class as long as they were in every column: classes are split column by column.
        let mut class = vec![0u32; rows.len()];
        let mut counts = Vec::with_capacity(group.columns.len());
        for column in &group.columns {
            let mut numbers: HashMap<(u32, CellId), u32> = HashMap::new();
            let mut count: HashMap<CellId, usize> = HashMap::new();
            for (class, &row) in class.iter_mut().zip(&rows) {
                let cell = column[row as usize];
                let next = u32::try_from(numbers.len()).expect("a batch is bounded");
                *class = *numbers.entry((*class, cell)).or_insert(next);
                *count.entry(cell).or_insert(0) += 1;
            }
            count.remove(&SUPPRESSED);
            counts.push(count.into_iter().collect::<BTreeMap<_, _>>());
        }
        let mut classes: Vec<Vec<u32>> = vec![Vec::new(); class.iter().max().map_or(0, |c| *c as usize + 1)];
        for (class, row) in class.into_iter().zip(&rows) {
            classes[class as usize].push(*row);
        }
        let reach = counts.iter().flat_map(BTreeMap::values).copied().max().unwrap_or(0);
        Self { rows, classes, counts, reach }
    }
}

/// A heavy set of cells of one group: the rows that carry it.
struct Heavy {
    rows: Vec<bool>,
    count: usize,
}

/// Withdraws fragments until no pair of cell sets of two groups is forced below `k`; returns how many.
///
/// Either every fragment with the rarer cells is withdrawn, or every fragment with the heavy ones, whichever loses
/// less. Both remove whole classes of a group, so that the support of those that stay is unchanged.
pub fn withdraw_forced_pairs(groups: &mut [GroupCells], subjects: &[u64], k: usize) -> u64 {
    let mut views: Vec<View> = groups.iter().map(View::of).collect();
    let mut withdrawn = 0;
    loop {
        let before = withdrawn;
        for a in 0..groups.len() {
            withdrawn += withdraw_against(groups, &mut views, a, subjects, k);
        }
        if withdrawn == before {
            return withdrawn;
        }
    }
}

/// One pass over the pairs whose heavier side lies in group `a`.
fn withdraw_against(groups: &mut [GroupCells], views: &mut [View], a: usize, subjects: &[u64], k: usize) -> u64 {
    let n = views.iter().map(|v| v.rows.len()).max().unwrap_or(0);
    let reach = views.iter().enumerate().filter(|(b, _)| *b != a).map(|(_, v)| v.reach).max().unwrap_or(0);
    let mut withdrawn = 0;
    for heavy in heavy_sets(&groups[a], &views[a], n, reach) {
        let mut doomed: Vec<(usize, BTreeSet<u32>)> = Vec::new();
        let mut worth = 0.0;
        for b in (0..groups.len()).filter(|b| *b != a) {
            if heavy.count + views[b].reach <= n {
                continue;
            }
            let mut rows = BTreeSet::new();
            forced_with(&heavy, &groups[b], &views[b], n + 1 - heavy.count, subjects, k, &mut rows);
            if !rows.is_empty() {
                worth += groups[b].worth_of(rows.iter().copied());
                doomed.push((b, rows));
            }
        }
        if doomed.is_empty() {
            continue;
        }
        let carriers = || (0u32..).zip(&heavy.rows).filter(|(_, carries)| **carries).map(|(row, _)| row);
        if groups[a].worth_of(carriers()) < worth {
            doomed = vec![(a, carriers().collect())];
        }
        for (group, rows) in doomed {
            withdrawn += rows.len() as u64;
            for row in rows {
                groups[group].withdraw(row);
            }
            views[group] = View::of(&groups[group]);
            if group == a {
                // The other heavy sets of this group were found on what is no longer there.
                return withdrawn;
            }
        }
    }
    withdrawn
}

/// The sets X of cells of a group with `2·n_X > n` and `n_X + reach > n`: more than half the rows carry them, so each
/// attribute contributes at most one cell. Of sets with the same rows only one is kept: they force the same.
fn heavy_sets(group: &GroupCells, view: &View, n: usize, reach: usize) -> Vec<Heavy> {
    let enough = |count: usize| 2 * count > n && count + reach > n;
    let singles: Vec<(usize, CellId)> = view
        .counts
        .iter()
        .enumerate()
        .flat_map(|(column, counts)| {
            counts.iter().filter(|(_, m)| enough(**m)).map(move |(&cell, _)| (column, cell))
        })
        .collect();
    let mut found: Vec<Heavy> = Vec::new();
    if singles.is_empty() {
        return found;
    }
    let rows = group.columns.first().map_or(0, Vec::len);
    let mut open = vec![(0usize, vec![true; rows])];
    while let Some((from, within)) = open.pop() {
        for (i, &(column, cell)) in singles.iter().enumerate().skip(from) {
            let rows: Vec<bool> =
                within.iter().zip(&group.columns[column]).map(|(&w, &c)| w && c == cell).collect();
            let count = rows.iter().filter(|r| **r).count();
            if enough(count) {
                open.push((i + 1, rows.clone()));
                if !found.iter().any(|h| h.count == count && h.rows == rows) {
                    found.push(Heavy { rows, count });
                }
            }
        }
    }
    found
}

/// Rows that carry a set of cells, with the distinct subjects among them that carry the heavy cells too (at most k).
#[derive(Default)]
struct Carriers {
    rows: Vec<u32>,
    joint: Vec<u64>,
}

impl Carriers {
    fn add(&mut self, row: u32, heavy: &Heavy, subjects: &[u64], k: usize) {
        self.rows.push(row);
        join(&mut self.joint, row, heavy, subjects, k);
    }
}

fn join(joint: &mut Vec<u64>, row: u32, heavy: &Heavy, subjects: &[u64], k: usize) {
    let subject = subjects[row as usize];
    if joint.len() < k && heavy.rows[row as usize] && subject != NO_SUBJECT && !joint.contains(&subject) {
        joint.push(subject);
    }
}

fn has_joint_crowd(rows: &[u32], heavy: &Heavy, subjects: &[u64], k: usize, joint: &mut Vec<u64>) -> bool {
    joint.clear();
    for &row in rows {
        join(joint, row, heavy, subjects, k);
        if joint.len() >= k {
            return true;
        }
    }
    false
}

/// Adds to `doomed` the rows of every cell set Y of `group`, no heavier than X, that at least `forced_from` rows carry
/// and fewer than `k` subjects carry together with the heavy cells X.
fn forced_with(
    heavy: &Heavy,
    group: &GroupCells,
    view: &View,
    forced_from: usize,
    subjects: &[u64],
    k: usize,
    doomed: &mut BTreeSet<u32>,
) {
    // Every subset of a tuple with k joint subjects has them too: only rows of the other classes can be in trouble.
    let mut joint = Vec::with_capacity(k);
    let mut doubtful: Vec<&Vec<u32>> =
        view.classes.iter().filter(|rows| !has_joint_crowd(rows, heavy, subjects, k, &mut joint)).collect();
    if doubtful.iter().map(|rows| rows.len()).sum::<usize>() < forced_from {
        return;
    }
    // The most specific sets first: they settle almost everything. A tuple with suppressed cells stands for the set of
    // its other cells, which rows of other classes carry as well.
    let mask_of = |row: u32| -> Vec<bool> { group.columns.iter().map(|c| c[row as usize] != SUPPRESSED).collect() };
    let masks: BTreeSet<Vec<bool>> = doubtful.iter().map(|rows| mask_of(rows[0])).collect();
    for mask in masks {
        let project = |row: u32| -> Vec<CellId> {
            group.columns.iter().zip(&mask).filter(|(_, m)| **m).map(|(c, _)| c[row as usize]).collect()
        };
        let mut sets: HashMap<Vec<CellId>, Carriers> =
            doubtful.iter().filter(|rows| mask_of(rows[0]) == mask).map(|r| (project(r[0]), Carriers::default())).collect();
        for &row in &view.rows {
            if let Some(set) = sets.get_mut(&project(row)) {
                set.add(row, heavy, subjects, k);
            }
        }
        doubtful.retain(|rows| {
            if mask_of(rows[0]) != mask {
                return true;
            }
            let set = &sets[&project(rows[0])];
            if set.joint.len() >= k {
                return false;
            }
            let forced = set.rows.len() >= forced_from;
            if forced && set.rows.len() <= heavy.count {
                doomed.extend(&set.rows);
            }
            !forced
        });
    }
    let rows: Vec<u32> = doubtful.into_iter().flatten().copied().collect();
    let search = Search { heavy, group, view, forced_from, subjects, k };
    search.subsets(&rows, 0, &mut Vec::new(), doomed);
}

/// The search for forced sets that are no whole tuple.
struct Search<'a> {
    heavy: &'a Heavy,
    group: &'a GroupCells,
    view: &'a View,
    forced_from: usize,
    subjects: &'a [u64],
    k: usize,
}

impl Search<'_> {
    /// Depth-first over the cell sets that at least `forced_from` of `rows` carry.
    fn subsets(&self, rows: &[u32], from: usize, chosen: &mut Vec<(usize, CellId)>, doomed: &mut BTreeSet<u32>) {
        if rows.len() < self.forced_from {
            return;
        }
        for column in from..self.group.columns.len() {
            let mut parts: BTreeMap<CellId, Vec<u32>> = BTreeMap::new();
            for &row in rows {
                parts.entry(self.group.columns[column][row as usize]).or_default().push(row);
            }
            parts.remove(&SUPPRESSED);
            for (cell, part) in parts {
                if part.len() < self.forced_from {
                    continue;
                }
                chosen.push((column, cell));
                let mut whole = Carriers::default();
                for &row in self.view.rows.iter().filter(|&&row| self.group.contains(row, chosen)) {
                    whole.add(row, self.heavy, self.subjects, self.k);
                }
                // Where Y is heavier than X, the pair is settled on X's side when the groups change places.
                if whole.joint.len() < self.k && whole.rows.len() <= self.heavy.count {
                    doomed.extend(&whole.rows);
                } else {
                    self.subsets(&part, column + 1, chosen, doomed);
                }
                chosen.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every pair of cell sets of two groups, counted by brute force.
    fn forced_below(groups: &[GroupCells], subjects: &[u64], k: usize) -> bool {
        let n = groups.iter().map(|g| (0..subjects.len()).filter(|&r| g.present(r)).count()).max().unwrap_or(0);
        let sets = |g: &GroupCells| -> BTreeSet<Vec<(usize, CellId)>> {
            let mut out = BTreeSet::new();
            for row in 0..subjects.len() {
                let cells: Vec<(usize, CellId)> =
                    g.columns.iter().enumerate().map(|(i, c)| (i, c[row])).filter(|(_, c)| *c != SUPPRESSED).collect();
                for pick in 1u32..1 << cells.len() {
                    out.insert((0..cells.len()).filter(|i| pick >> i & 1 == 1).map(|i| cells[i]).collect());
                }
            }
            out
        };
        let carry = |g: &GroupCells, set: &[(usize, CellId)]| -> BTreeSet<u32> {
            (0..u32::try_from(subjects.len()).unwrap()).filter(|&r| g.contains(r, set)).collect()
        };
        for (i, a) in groups.iter().enumerate() {
            for b in &groups[i + 1..] {
                for x in sets(a) {
                    let with_x = carry(a, &x);
                    for y in sets(b) {
                        let with_y = carry(b, &y);
                        let both: BTreeSet<u64> =
                            with_x.intersection(&with_y).map(|&r| subjects[r as usize]).filter(|s| *s != 0).collect();
                        if with_x.len() + with_y.len() > n && both.len() < k {
                            return true;
                        }
                    }
                }
            }
        }
        false
    }

    #[test]
    fn a_constant_beside_a_lone_value_is_a_forced_pair() {
        // METHODS §10: five records, pulse all "high", one age "70+" supported only by the ledger.
        let mut groups = vec![
            GroupCells { attributes: vec![0], columns: vec![vec![9; 5]], worth: vec![1.0; 5] },
            GroupCells { attributes: vec![1], columns: vec![vec![7, 8, 8, 8, 8]], worth: vec![1.0; 5] },
        ];
        let subjects = [1, 2, 3, 4, 5];
        assert!(forced_below(&groups, &subjects, 4));
        assert_eq!(withdraw_forced_pairs(&mut groups, &subjects, 4), 1);
        assert_eq!(groups[1].columns[0], [SUPPRESSED, 8, 8, 8, 8]);
        assert!(!forced_below(&groups, &subjects, 4));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]
        #[test]
        fn no_forced_pair_below_k_remains(
            rows in prop::collection::vec((1u64..7, prop::collection::vec(prop_oneof![1 => Just(SUPPRESSED), 6 => 1u32..3, 2 => 3u32..5], 5)), 1..14),
            k in 2usize..4,
        ) {
            let subjects: Vec<u64> = rows.iter().map(|r| r.0).collect();
            let worth: Vec<f32> = rows.iter().map(|r| r.1[0] as f32).collect();
            let column = |i: usize| rows.iter().map(|r| r.1[i]).collect::<Vec<_>>();
            let mut groups = vec![
                GroupCells { attributes: vec![0, 1], columns: vec![column(0), column(1)], worth: worth.clone() },
                GroupCells { attributes: vec![2, 3], columns: vec![column(2), column(3)], worth: worth.clone() },
                GroupCells { attributes: vec![4], columns: vec![column(4)], worth },
            ];
            let untouched = groups.clone();
            let withdrawn = withdraw_forced_pairs(&mut groups, &subjects, k);
            prop_assert!(!forced_below(&groups, &subjects, k));
            prop_assert_eq!(withdrawn > 0, forced_below(&untouched, &subjects, k));
        }
    }
}
