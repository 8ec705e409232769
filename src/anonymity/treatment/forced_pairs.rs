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
}

impl GroupCells {
    fn present(&self, row: usize) -> bool {
        self.columns.iter().any(|c| c[row] != SUPPRESSED)
    }

    fn present_rows(&self) -> Vec<u32> {
        let rows = self.columns.first().map_or(0, Vec::len);
        (0..rows).filter(|&r| self.present(r)).map(|r| u32::try_from(r).expect("a batch is bounded")).collect()
    }

    /// Cells by number of rows, for one column.
    fn counts(&self, column: usize) -> BTreeMap<CellId, usize> {
        let mut counts = HashMap::new();
        for &cell in &self.columns[column] {
            *counts.entry(cell).or_insert(0) += 1;
        }
        counts.remove(&SUPPRESSED);
        counts.into_iter().collect()
    }

    fn contains(&self, row: u32, cells: &[(usize, CellId)]) -> bool {
        cells.iter().all(|&(column, cell)| self.columns[column][row as usize] == cell)
    }

    fn withdraw(&mut self, row: u32) {
        for column in &mut self.columns {
            column[row as usize] = SUPPRESSED;
        }
    }
}

/// A heavy set of cells of one group: the rows that carry it.
struct Heavy {
    rows: Vec<bool>,
    count: usize,
}

/// Withdraws fragments until no pair of cell sets of two groups is forced below `k`; returns how many.
/// Withdrawing only ever removes whole classes of a group, so that the support of those that stay is unchanged.
pub fn withdraw_forced_pairs(groups: &mut [GroupCells], subjects: &[u64], k: usize) -> u64 {
    let mut withdrawn = 0;
    loop {
        let before = withdrawn;
        for a in 0..groups.len() {
            for b in 0..groups.len() {
                if a != b {
                    withdrawn += withdraw_between(groups, a, b, subjects, k);
                }
            }
        }
        if withdrawn == before {
            return withdrawn;
        }
    }
}

/// One pass over the pairs whose heavier side lies in group `a`.
fn withdraw_between(groups: &mut [GroupCells], a: usize, b: usize, subjects: &[u64], k: usize) -> u64 {
    let n = groups.iter().map(|g| g.present_rows().len()).max().unwrap_or(0);
    let lightest = |g: &GroupCells| (0..g.columns.len()).flat_map(|c| g.counts(c).into_values()).max().unwrap_or(0);
    let reach = lightest(&groups[b]);
    let mut doomed = BTreeSet::new();
    for heavy in heavy_sets(&groups[a], n, reach) {
        forced_with(&heavy, &groups[b], n + 1 - heavy.count, subjects, k, &mut doomed);
    }
    for &row in &doomed {
        groups[b].withdraw(row);
    }
    doomed.len() as u64
}

/// The sets X of cells of a group with `2·n_X > n` and `n_X + reach > n`: more than half the rows carry them, so each
/// attribute contributes at most one cell. Of sets with the same rows only one is kept: they force the same.
fn heavy_sets(group: &GroupCells, n: usize, reach: usize) -> Vec<Heavy> {
    let enough = |count: usize| 2 * count > n && count + reach > n;
    let singles: Vec<(usize, CellId)> = (0..group.columns.len())
        .flat_map(|c| group.counts(c).into_iter().filter(|&(_, m)| enough(m)).map(move |(cell, _)| (c, cell)))
        .collect();
    let mut found: Vec<Heavy> = Vec::new();
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

/// A class of fragments of the lighter group.
#[derive(Default)]
struct Class {
    rows: Vec<u32>,
    /// Distinct subjects that carry the heavy cells too, at most k.
    joint: Vec<u64>,
}

impl Class {
    fn add(&mut self, row: u32, heavy: &Heavy, subjects: &[u64], k: usize) {
        self.rows.push(row);
        let subject = subjects[row as usize];
        if heavy.rows[row as usize] && subject != NO_SUBJECT && self.joint.len() < k && !self.joint.contains(&subject) {
            self.joint.push(subject);
        }
    }
}

/// Adds to `doomed` the rows of every cell set Y of `group`, no heavier than X, that at least `forced_from` rows carry
/// and fewer than `k` subjects carry together with the heavy cells X.
fn forced_with(
    heavy: &Heavy,
    group: &GroupCells,
    forced_from: usize,
    subjects: &[u64],
    k: usize,
    doomed: &mut BTreeSet<u32>,
) {
    let mut classes: HashMap<Vec<CellId>, Class> = HashMap::new();
    for row in group.present_rows() {
        let tuple: Vec<CellId> = group.columns.iter().map(|c| c[row as usize]).collect();
        classes.entry(tuple).or_default().add(row, heavy, subjects, k);
    }
    // Every subset of a tuple with k joint subjects has them too: only rows of the other classes can be in trouble.
    let mut doubtful: BTreeMap<Vec<CellId>, Class> = classes.into_iter().filter(|(_, c)| c.joint.len() < k).collect();
    if doubtful.values().map(|c| c.rows.len()).sum::<usize>() < forced_from {
        return;
    }
    // The most specific sets first: they settle almost everything. A tuple with suppressed cells stands for the set of
    // its other cells, which rows of other classes carry as well.
    let masks: BTreeSet<Vec<bool>> =
        doubtful.keys().map(|tuple| tuple.iter().map(|c| *c != SUPPRESSED).collect()).collect();
    for mask in masks {
        let mut sets: HashMap<Vec<CellId>, Class> = HashMap::new();
        let project = |row: usize| -> Vec<CellId> {
            group.columns.iter().zip(&mask).filter(|(_, m)| **m).map(|(c, _)| c[row]).collect()
        };
        for row in group.present_rows() {
            sets.entry(project(row as usize)).or_default().add(row, heavy, subjects, k);
        }
        doubtful.retain(|tuple, class| {
            if !tuple.iter().zip(&mask).all(|(c, m)| (*c != SUPPRESSED) == *m) {
                return true;
            }
            let set = &sets[&project(class.rows[0] as usize)];
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
    let rows: Vec<u32> = doubtful.into_values().flat_map(|c| c.rows).collect();
    search_subsets(heavy, group, forced_from, subjects, k, &rows, 0, &mut Vec::new(), doomed);
}

/// Depth-first over the cell sets that at least `forced_from` of `rows` carry.
#[allow(clippy::too_many_arguments, reason = "a recursion over one fixed scene")]
fn search_subsets(
    heavy: &Heavy,
    group: &GroupCells,
    forced_from: usize,
    subjects: &[u64],
    k: usize,
    rows: &[u32],
    from: usize,
    chosen: &mut Vec<(usize, CellId)>,
    doomed: &mut BTreeSet<u32>,
) {
    if rows.len() < forced_from {
        return;
    }
    for column in from..group.columns.len() {
        let mut parts: BTreeMap<CellId, Vec<u32>> = BTreeMap::new();
        for &row in rows {
            parts.entry(group.columns[column][row as usize]).or_default().push(row);
        }
        parts.remove(&SUPPRESSED);
        for (cell, part) in parts {
            if part.len() < forced_from {
                continue;
            }
            chosen.push((column, cell));
            let mut whole = Class::default();
            for row in group.present_rows().into_iter().filter(|&row| group.contains(row, chosen)) {
                whole.add(row, heavy, subjects, k);
            }
            // Where Y is heavier than X, the pair is settled on X's side when the groups change places.
            if whole.joint.len() < k && whole.rows.len() <= heavy.count {
                doomed.extend(&whole.rows);
            } else {
                search_subsets(heavy, group, forced_from, subjects, k, &part, column + 1, chosen, doomed);
            }
            chosen.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every pair of cell sets of two groups, counted by brute force.
    fn forced_below(groups: &[GroupCells], subjects: &[u64], k: usize) -> bool {
        let n = groups.iter().map(|g| g.present_rows().len()).max().unwrap_or(0);
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
            GroupCells { attributes: vec![0], columns: vec![vec![9; 5]] },
            GroupCells { attributes: vec![1], columns: vec![vec![7, 8, 8, 8, 8]] },
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
            let column = |i: usize| rows.iter().map(|r| r.1[i]).collect::<Vec<_>>();
            let mut groups = vec![
                GroupCells { attributes: vec![0, 1], columns: vec![column(0), column(1)] },
                GroupCells { attributes: vec![2, 3], columns: vec![column(2), column(3)] },
                GroupCells { attributes: vec![4], columns: vec![column(4)] },
            ];
            let untouched = groups.clone();
            let withdrawn = withdraw_forced_pairs(&mut groups, &subjects, k);
            prop_assert!(!forced_below(&groups, &subjects, k));
            prop_assert_eq!(withdrawn > 0, forced_below(&untouched, &subjects, k));
        }
    }
}
