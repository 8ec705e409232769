//! The counting guard between disjoint groups (METHODS §10, linking guard): what a reader can join by counting alone.
//!
//! # The claim
//! Let N be the largest number of fragments that one group of the batch has. For two groups A ≠ B, a non-empty set X of
//! cells of A that occur together and such a set Y of B (a cell is a column and a coverage; suppressed cells say nothing
//! and are left out), let `n_X` and `m_Y` be the rows whose fragment contains X, Y. Where `n_X` + `m_Y` ≥ N + 1, some
//! record must carry both, whoever joins the fragments. [`forced_pair`] is true exactly when for some such pair fewer
//! than k distinct subjects carry both X and Y. Fragments that contradict themselves are answered with true as well.
//!
//! # Why the answer is exact
//! 1. *One side is heavy.* `n_X` + `m_Y` > N needs one of them above N/2. Each ordered pair (A, B) is searched with X
//!    heavy, so every cell of X is in more than half of the rows: at most one a column. Y is any set with
//!    `m_Y` ≥ N + 1 − `n_X`.
//! 2. *Intervals of X.* The subjects S(X, Y) on the joint rows only fall as X grows, and so does `n_X`. So for all X
//!    between P and Q ⊇ P at once: if every Y with `m_Y` ≥ N + 1 − `n_P` has S(Q, Y) ≥ k, none of them is a violation.
//!    The same holds for a union of intervals, with the smallest threshold and the rows that all their Q share. Otherwise
//!    the union is halved, and a single interval is divided at one cell; at P = Q the bound is the definition itself.
//! 3. *Thin sets.* For fixed rows Q, the question is whether a set Y in at least t rows has fewer than k subjects in Q:
//!    [`thin_sets`] answers it exactly. A question about more than one X may also be given up as "perhaps"; it then
//!    counts as a yes, and its parts are asked.
//!
//! Runtime: O(cells) to read a batch in, one step where no group has a cell above N/2, else O(rows · width) a question in
//! the usual case. At worst the questions are exponential in the heavy cells of A, and one question in the width of B, on
//! tuples with few subjects only.
//!
//! Only conjunctions of published cells are judged: neither unions of cells nor joins over three and more groups.
//!
//! This is written independently of the treatment that avoids forced pairs, and shares no code with it: it is the check.

mod runs;
#[cfg(test)]
mod tests;
mod thin_sets;

use runs::{Numbers, Rows, Runs};
use thin_sets::{Question, Subjects};

/// The fragments of one group of a batch as they are about to leave.
pub struct Fragments {
    /// By column: the number of each coverage, from 1.
    numbers: Vec<Numbers<u128>>,
    runs: Runs,
    /// A call to [`Fragments::add`] did not fit the width.
    misfit: bool,
}

impl Fragments {
    /// No fragments yet, of `width` cells each.
    #[must_use]
    pub fn new(width: usize) -> Self {
        let numbers = (0..width).map(|_| Numbers::default()).collect();
        Self { numbers, runs: Runs { width, carried: vec![0], ..Runs::default() }, misfit: false }
    }

    /// Adds one fragment for each of `rows` (indices into the batch, each at most once a group). `cells` are coverage
    /// digests by column; `None` is a suppressed cell. The same cells may be added again with other rows.
    pub fn add(&mut self, cells: &[Option<u128>], rows: &[u32]) {
        if cells.len() != self.runs.width {
            self.misfit = true;
            return;
        }
        for (cell, numbers) in cells.iter().zip(&mut self.numbers) {
            let number = cell.map_or(0, |digest| {
                let next = self.runs.carried.len() as u32;
                let number = *numbers.entry(digest).or_insert(next);
                if number == next {
                    self.runs.carried.push(0);
                }
                self.runs.carried[number as usize] += rows.len() as u32;
                number
            });
            self.runs.cells.push(number);
        }
        self.runs.rows.extend_from_slice(rows);
        self.runs.ends.push(self.runs.rows.len());
    }

    /// Every row at most once and within the batch.
    fn is_sound(&self, batch: usize) -> bool {
        let mut taken = Rows::none(batch);
        !self.misfit && self.runs.rows.iter().all(|&row| (row as usize) < batch && taken.insert(row))
    }
}

/// True if counting joins two groups below `k`: see the module for the claim. `subjects` is by row of the batch; 0 is no
/// subject and supports nobody. Also true where a row is twice in one group or not in `subjects`, or where cells did not
/// fit the width of their group, since nothing can be proven of such a batch.
#[must_use]
pub fn forced_pair(groups: &[Fragments], subjects: &[u64], k: usize) -> bool {
    forced_pair_among(groups, subjects, k, 0)
}

/// As [`forced_pair`], where N is at least `people`: the fragments are known to be those of so many rows.
#[must_use]
pub fn forced_pair_among(groups: &[Fragments], subjects: &[u64], k: usize, people: usize) -> bool {
    if !groups.iter().all(|group| group.is_sound(subjects.len())) {
        return true;
    }
    let most = groups.iter().map(|group| group.runs.rows.len()).max().unwrap_or(0).max(people);
    let heavy: Vec<Vec<Rows>> = groups.iter().map(|group| group.runs.heavy(most, subjects.len())).collect();
    if heavy.iter().all(Vec::is_empty) {
        return false;
    }
    let intervals: Vec<Vec<Interval>> = heavy
        .iter()
        .map(|cells| (0..cells.len()).map(|lightest| Interval::down_to(cells, lightest)).collect())
        .collect();
    let mut search = Search { most, k, subjects: Subjects::new(subjects) };
    groups.iter().enumerate().any(|(b, group)| {
        let top = group.runs.carried.iter().copied().max().unwrap_or(0) as usize;
        let others = intervals.iter().enumerate().filter(|(a, _)| *a != b).flat_map(|(_, of_group)| of_group);
        let mut against: Vec<&Interval> = others.filter(|x| x.carried + top > most).collect();
        against.sort_by_key(|x| std::cmp::Reverse(x.carried));
        let Some(heaviest) = against.first() else { return false };
        let floor = most + 1 - heaviest.carried;
        search.violated(&group.runs.narrowed(floor), floor, &against, PATIENCE)
    })
}

/// All sets X of one group from `P` (its rows are `least`) up to `P` and all of `between`.
struct Interval<'a> {
    least: Rows,
    /// Rows of `least`: `n_P`.
    carried: usize,
    /// Rows of the further cells, heaviest first, none of them implied by P.
    between: Vec<&'a Rows>,
    /// The rows of P and all further cells: Q.
    joint: Rows,
}

impl<'a> Interval<'a> {
    /// The sets whose lightest cell is the one named, so that their threshold is close to its own.
    fn down_to(cells: &'a [Rows], lightest: usize) -> Self {
        Self::new(cells[lightest].clone(), cells[..lightest].iter())
    }

    fn new(least: Rows, further: impl Iterator<Item = &'a Rows>) -> Self {
        let between: Vec<&Rows> = further.filter(|cell| !least.is_within(cell)).collect();
        let joint = between.iter().fold(least.clone(), |joint, cell| joint.and(cell));
        Self { carried: least.count(), least, between, joint }
    }

    /// The sets with the lightest further cell and those without it; none where one set is all there is.
    fn divided(&self) -> Option<[Self; 2]> {
        let (lightest, rest) = self.between.split_last()?;
        let with = Self::new(self.least.and(lightest), rest.iter().copied());
        Some([with, Self::new(self.least.clone(), rest.iter().copied())])
    }
}

/// One batch under one k.
struct Search {
    /// N.
    most: usize,
    k: usize,
    subjects: Subjects,
}

/// Items that a question about several X may look at for each tuple of the group, before it is divided.
const PATIENCE: usize = 16;

impl Search {
    /// Is there a violating X in one of `intervals` (heaviest first) with a Y of `runs`, narrowed to `floor`?
    fn violated(&mut self, runs: &Runs, floor: usize, intervals: &[&Interval], patience: usize) -> bool {
        let Some((first, others)) = intervals.split_first() else { return false };
        let least = self.most + 1 - first.carried;
        // Fewer cells, fewer tuples: worth a pass when the threshold has doubled.
        let fewer = (least >= 2 * floor).then(|| runs.narrowed(least));
        let (runs, floor) = fewer.as_ref().map_or((runs, floor), |fewer| (fewer, least));
        // Thresholds far apart have little to share: a question each.
        let alike = intervals.partition_point(|x| self.most + 1 - x.carried < 2 * least);
        if alike < intervals.len() {
            let (heavier, lighter) = intervals.split_at(alike);
            return self.violated(runs, floor, heavier, patience) || self.violated(runs, floor, lighter, patience);
        }
        let joint = others.iter().fold(first.joint.clone(), |joint, x| joint.and(&x.joint));
        let parts = if others.is_empty() { first.divided() } else { None };
        let is_one_set = others.is_empty() && parts.is_none();
        let budget = if is_one_set { usize::MAX } else { patience.saturating_mul(runs.ends.len()) };
        let question = Question { k: self.k, least, budget, subjects: &mut self.subjects };
        if !question.has_thin_set(runs, &joint) {
            return false;
        }
        if let Some(parts) = parts {
            let most = self.most;
            // Where X is no longer heavy, Y would have to be: that pair is met with the groups exchanged.
            let mut heavy = parts.iter().filter(|x| 2 * x.carried > most);
            return heavy.any(|x| self.violated(runs, floor, &[x], patience.saturating_mul(2)));
        }
        let (heavier, lighter) = intervals.split_at(intervals.len() / 2);
        is_one_set || self.violated(runs, floor, heavier, patience) || self.violated(runs, floor, lighter, patience)
    }
}
