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
use rayon::prelude::*;
use std::collections::{BTreeSet, HashSet};

/// The cells of one group that leave: `columns[i][row]` belongs to `attributes[i]`.
#[derive(Clone, Debug)]
pub struct GroupCells {
    pub attributes: Vec<usize>,
    pub columns: Vec<Vec<CellId>>,
    /// How many of the columns, from the first, form the class; the others stand beside it.
    pub quasi: usize,
    /// What a row's fragment is worth to a reader: the sum over its present cells of one minus their loss.
    pub worth: Vec<f32>,
}

impl GroupCells {
    fn withdraw(&mut self, row: u32) {
        for column in &mut self.columns {
            column[row as usize] = SUPPRESSED;
        }
    }

    /// `rows` with everyone who shares a class with one of them: a class goes whole or not at all, so that those who stay
    /// keep their crowd.
    fn with_classes(&self, rows: BTreeSet<u32>) -> BTreeSet<u32> {
        if self.quasi == self.columns.len() || self.quasi == 0 {
            return rows;
        }
        let class = |row: u32| -> Vec<CellId> { self.columns[..self.quasi].iter().map(|c| c[row as usize]).collect() };
        let classes: BTreeSet<Vec<CellId>> = rows.iter().map(|&row| class(row)).collect();
        let all = u32::try_from(self.worth.len()).expect("a batch is bounded");
        let present = |row: &u32| self.columns[..self.quasi].iter().any(|c| c[*row as usize] != SUPPRESSED);
        (0..all).filter(|row| rows.contains(row) || (present(row) && classes.contains(&class(*row)))).collect()
    }

    fn worth_of(&self, rows: impl Iterator<Item = u32>) -> f64 {
        rows.map(|row| f64::from(self.worth[row as usize])).sum()
    }
}

/// A set of rows of the batch.
#[derive(Clone, PartialEq)]
struct Rows(Vec<u64>);

impl Rows {
    fn none(rows: usize) -> Self {
        Self(vec![0; rows.div_ceil(64)])
    }

    fn insert(&mut self, row: usize) {
        self.0[row / 64] |= 1 << (row % 64);
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().zip(0u32..).flat_map(|(&word, at)| {
            std::iter::successors(Some(word), |w| Some(w & w.wrapping_sub(1)))
                .take_while(|w| *w != 0)
                .map(move |w| at * 64 + w.trailing_zeros())
        })
    }

    /// Whether at least `k` distinct subjects are among the rows of both sets.
    fn have_joint_crowd(&self, other: &Self, subjects: &[u64], k: usize, joint: &mut Vec<u64>) -> bool {
        joint.clear();
        for row in self.and(other).iter() {
            let subject = subjects[row as usize];
            if subject != NO_SUBJECT && !joint.contains(&subject) {
                joint.push(subject);
                if joint.len() >= k {
                    return true;
                }
            }
        }
        joint.len() >= k
    }
}

/// What is counted of a group for as long as it does not change.
struct View {
    /// Rows that have a fragment.
    present: Rows,
    /// Number of them.
    rows: usize,
    /// Rows by cell, for each column.
    counts: Vec<Vec<u32>>,
    /// Rows that carry the most frequent cell.
    reach: usize,
    /// Rows by tuple, counted when first asked for.
    classes: Option<Vec<Vec<u32>>>,
    /// Rows by column and cell, likewise.
    carriers: hashbrown::HashMap<(usize, CellId), Rows>,
}

impl View {
    fn of(group: &GroupCells) -> Self {
        let all = group.columns.first().map_or(0, Vec::len);
        let mut present = Rows::none(all);
        let mut counts = Vec::with_capacity(group.columns.len());
        for column in &group.columns {
            let mut count = vec![0u32; column.iter().max().map_or(0, |c| *c as usize + 1)];
            for (row, &cell) in column.iter().enumerate() {
                if cell != SUPPRESSED {
                    present.insert(row);
                    count[cell as usize] += 1;
                }
            }
            counts.push(count);
        }
        let reach = counts.iter().flatten().copied().max().unwrap_or(0) as usize;
        Self { rows: present.count(), present, counts, reach, classes: None, carriers: hashbrown::HashMap::new() }
    }

    /// Rows by tuple. Two rows are of one class as long as they were in every column: classes are split column by column.
    fn classes(&mut self, group: &GroupCells) -> &[Vec<u32>] {
        self.classes.get_or_insert_with(|| {
            let rows: Vec<u32> = self.present.iter().collect();
            let mut class = vec![0u32; rows.len()];
            let mut classes = usize::from(!rows.is_empty());
            for (column, counts) in group.columns.iter().zip(&self.counts) {
                classes = split(&mut class, classes, &rows, column, counts.len());
            }
            let mut classes: Vec<Vec<u32>> = vec![Vec::new(); classes];
            for (class, row) in class.into_iter().zip(rows) {
                classes[class as usize].push(row);
            }
            classes
        })
    }
}

/// Tables of this many numbers are looked up by place; larger ones would be mostly empty and are hashed.
const PLACES: usize = 1 << 16;

/// Splits classes by their cells in one more column, whose cells are below `cells`; returns how many there are then. Numbers
/// are given in the order of the first row.
fn split(class: &mut [u32], classes: usize, rows: &[u32], column: &[CellId], cells: usize) -> usize {
    let of = class.iter_mut().zip(rows.iter().map(|row| column[*row as usize]));
    let mut next = 0;
    if classes * cells <= PLACES {
        let mut numbers = vec![u32::MAX; classes * cells];
        for (class, cell) in of {
            let number = &mut numbers[*class as usize * cells + cell as usize];
            if *number == u32::MAX {
                *number = next;
                next += 1;
            }
            *class = *number;
        }
    } else {
        let mut numbers: hashbrown::HashMap<(u32, CellId), u32> = hashbrown::HashMap::new();
        for (class, cell) in of {
            *class = *numbers.entry((*class, cell)).or_insert_with(|| {
                next += 1;
                next - 1
            });
        }
    }
    next as usize
}

/// A heavy set of cells of one group: the rows that carry it.
struct Heavy {
    rows: Rows,
    count: usize,
}

/// Withdraws fragments until no pair of cell sets of two groups is forced below `k`; returns how many.
///
/// Either every fragment with the rarer cells is withdrawn, or every fragment with the heavy ones, whichever loses
/// less. Both remove whole classes of a group, so that the support of those that stay is unchanged.
///
/// Time: one pass over the cells, and one over the fragments for each heavy set that can force anything; exponential in
/// the heavy cells of one group only.
pub fn withdraw_forced_pairs(groups: &mut [GroupCells], subjects: &[u64], k: usize) -> u64 {
    withdraw_forced_pairs_among(groups, subjects, k, 0)
}

/// As [`withdraw_forced_pairs`], where the fragments are known to be those of at least `people` rows.
pub fn withdraw_forced_pairs_among(groups: &mut [GroupCells], subjects: &[u64], k: usize, people: usize) -> u64 {
    let mut views: Vec<View> = groups.par_iter().map(View::of).collect();
    let mut withdrawn = 0;
    loop {
        let before = withdrawn;
        for a in 0..groups.len() {
            withdrawn += withdraw_against(groups, &mut views, a, subjects, k, people);
        }
        if withdrawn == before {
            return withdrawn;
        }
    }
}

/// One pass over the pairs whose heavier side lies in group `a`.
fn withdraw_against(
    groups: &mut [GroupCells],
    views: &mut [View],
    a: usize,
    subjects: &[u64],
    k: usize,
    people: usize,
) -> u64 {
    let n = views.iter().map(|v| v.rows).max().unwrap_or(0).max(people);
    let reach = views.iter().enumerate().filter(|(b, _)| *b != a).map(|(_, v)| v.reach).max().unwrap_or(0);
    let mut withdrawn = 0;
    for heavy in heavy_sets(&groups[a], &views[a], n, reach) {
        let others = views.par_iter_mut().zip(groups.par_iter()).enumerate();
        let mut doomed: Vec<(usize, BTreeSet<u32>)> = others
            .filter(|(b, (view, _))| *b != a && heavy.count + view.reach > n)
            .map(|(b, (view, group))| {
                let light = Light { heavy: &heavy, group, forced_from: n + 1 - heavy.count, subjects, k };
                (b, group.with_classes(light.forced(view)))
            })
            .filter(|(_, rows)| !rows.is_empty())
            .collect();
        let worth: f64 = doomed.iter().map(|(b, rows)| groups[*b].worth_of(rows.iter().copied())).sum();
        if doomed.is_empty() {
            continue;
        }
        let carriers = groups[a].with_classes(heavy.rows.iter().collect());
        if groups[a].worth_of(carriers.iter().copied()) < worth {
            doomed = vec![(a, carriers)];
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
    let mut singles: Vec<Rows> = Vec::new();
    for (column, counts) in group.columns.iter().zip(&view.counts) {
        let heaviest = counts.iter().enumerate().max_by_key(|(_, count)| **count);
        if let Some((cell, _)) = heaviest.filter(|(_, count)| enough(**count as usize)) {
            singles.push(rows_with(column, cell as CellId));
        }
    }
    let mut found: Vec<Heavy> = Vec::new();
    let mut open: Vec<(usize, Option<Rows>)> = vec![(0, None)];
    while let Some((from, within)) = open.pop() {
        for (i, single) in singles.iter().enumerate().skip(from) {
            let rows = within.as_ref().map_or_else(|| single.clone(), |w| w.and(single));
            let count = rows.count();
            if enough(count) {
                open.push((i + 1, Some(rows.clone())));
                if !found.iter().any(|h| h.count == count && h.rows == rows) {
                    found.push(Heavy { rows, count });
                }
            }
        }
    }
    found
}

fn rows_with(column: &[CellId], cell: CellId) -> Rows {
    let mut rows = Rows::none(column.len());
    for (row, _) in column.iter().enumerate().filter(|(_, c)| **c == cell) {
        rows.insert(row);
    }
    rows
}

/// Cells of a set Y: by column, `None` where the column takes no part.
type CellSet = Vec<Option<CellId>>;

/// The question of one heavy set X to another group: which of its cell sets are forced together with X below k?
struct Light<'a> {
    heavy: &'a Heavy,
    group: &'a GroupCells,
    /// Rows from which a set is forced.
    forced_from: usize,
    subjects: &'a [u64],
    k: usize,
}

impl Light<'_> {
    /// The rows of every cell set Y, no heavier than X, that at least `forced_from` rows carry and fewer than `k`
    /// subjects carry together with X. (Where Y is heavier, the pair is settled when the groups change places.)
    fn forced(&self, view: &mut View) -> BTreeSet<u32> {
        let mut doomed = BTreeSet::new();
        let mut joint = Vec::with_capacity(self.k);
        // Every subset of a tuple with k joint subjects has them too: only the other tuples can be in trouble. Of those,
        // only cells that are frequent enough by themselves can be part of a forced set.
        let mut candidates: BTreeSet<CellSet> = BTreeSet::new();
        let doubtful: Vec<u32> = view
            .classes(self.group)
            .iter()
            .filter(|rows| !self.crowded(rows, &mut joint))
            .map(|rows| rows[0])
            .collect();
        for row in doubtful {
            let frequent = |(column, counts): (&Vec<CellId>, &Vec<u32>)| {
                let cell = column[row as usize];
                (cell != SUPPRESSED && counts[cell as usize] as usize >= self.forced_from).then_some(cell)
            };
            let set: CellSet = self.group.columns.iter().zip(&view.counts).map(frequent).collect();
            if set.iter().any(Option::is_some) {
                candidates.insert(set);
            }
        }
        if candidates.is_empty() {
            return doomed;
        }
        let mut judged: HashSet<CellSet> = HashSet::new();
        let mut open: Vec<CellSet> = candidates.into_iter().collect();
        while let Some(set) = open.pop() {
            if !judged.insert(set.clone()) {
                continue;
            }
            let mut rows: Option<Rows> = None;
            for (column, cell) in set.iter().enumerate().filter_map(|(column, cell)| Some((column, (*cell)?))) {
                let with = view.carriers.entry((column, cell));
                let with = with.or_insert_with(|| rows_with(&self.group.columns[column], cell));
                rows = Some(rows.map_or_else(|| with.clone(), |r| r.and(with)));
            }
            let Some(rows) = rows else { continue };
            if rows.have_joint_crowd(&self.heavy.rows, self.subjects, self.k, &mut joint) {
                continue;
            }
            let count = rows.count();
            if count >= self.forced_from && count <= self.heavy.count {
                doomed.extend(rows.iter());
                continue;
            }
            // Too rare to be forced (or too heavy to be settled here): its subsets are more frequent.
            for column in (0..set.len()).filter(|c| set[*c].is_some()) {
                let mut subset = set.clone();
                subset[column] = None;
                open.push(subset);
            }
        }
        doomed
    }

    fn crowded(&self, rows: &[u32], joint: &mut Vec<u64>) -> bool {
        joint.clear();
        for &row in rows {
            let subject = self.subjects[row as usize];
            let carries = self.heavy.rows.0[row as usize / 64] >> (row % 64) & 1 == 1;
            if carries && subject != NO_SUBJECT && !joint.contains(&subject) {
                joint.push(subject);
                if joint.len() >= self.k {
                    return true;
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every pair of cell sets of two groups, counted by brute force.
    fn forced_below(groups: &[GroupCells], subjects: &[u64], k: usize) -> bool {
        let n = groups
            .iter()
            .map(|g| (0..subjects.len()).filter(|&r| g.columns.iter().any(|c| c[r] != SUPPRESSED)).count())
            .max()
            .unwrap_or(0);
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
            (0..u32::try_from(subjects.len()).unwrap())
                .filter(|&r| set.iter().all(|&(c, cell)| g.columns[c][r as usize] == cell))
                .collect()
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
            GroupCells { attributes: vec![0], columns: vec![vec![9; 5]], quasi: 1, worth: vec![1.0; 5] },
            GroupCells { attributes: vec![1], columns: vec![vec![7, 8, 8, 8, 8]], quasi: 1, worth: vec![1.0; 5] },
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
                GroupCells { attributes: vec![0, 1], columns: vec![column(0), column(1)], quasi: 1, worth: worth.clone() },
                GroupCells { attributes: vec![2, 3], columns: vec![column(2), column(3)], quasi: 2, worth: worth.clone() },
                GroupCells { attributes: vec![4], columns: vec![column(4)], quasi: 1, worth },
            ];
            let untouched = groups.clone();
            let withdrawn = withdraw_forced_pairs(&mut groups, &subjects, k);
            prop_assert!(!forced_below(&groups, &subjects, k));
            prop_assert_eq!(withdrawn > 0, forced_below(&untouched, &subjects, k));
            for (group, before) in groups.iter().zip(&untouched) {
                let class = |g: &GroupCells, row: usize| -> Vec<CellId> { g.columns[..g.quasi].iter().map(|c| c[row]).collect() };
                for row in (0..subjects.len()).filter(|&r| class(group, r).iter().any(|c| *c != SUPPRESSED)) {
                    let members = |g: &GroupCells| (0..subjects.len()).filter(|&r| class(g, r) == class(before, row)).count();
                    prop_assert_eq!(members(group), members(before), "a class stays whole");
                }
            }
        }
    }
}
