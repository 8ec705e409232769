//! The counting guard between disjoint groups (docs/methods.md §10.3 and §12.7): what a reader can join by
//! counting alone.
//!
//! # The claim
//! A *label* of a column is a printed cell, or the coverage of one, or a coverage that its attribute's hierarchy has above a
//! printed one, short of the root; a row is below a printed cell if it is its own, and below a coverage if its cell has that
//! or one below it. Suppressed cells are below nothing. For two groups
//! A ≠ B let N be the number of rows that have a fragment in A or in B, or the largest number of fragments that one group of
//! the batch has, if that is less and the groups leave with the same rows by design ([`Records`]). For a non-empty set X of labels of A that some row is below and such a set Y of B, let
//! `n_X` and `m_Y` be the rows below all of X, Y. Where `n_X` + `m_Y` ≥ N + 1, some record must be below both, whoever
//! joins the fragments. [`judge`] forces a batch exactly when for some such pair fewer than k distinct subjects are below both
//! X and Y. Fragments that contradict themselves, and questions that take more steps than [`PATIENCE_IN_ALL`], are answered with
//! true as well: such a batch is not [`Counting::Free`].
//!
//! *On N.* No reader can be sure of more than what follows from the rows that A and B really have, even if he knows which
//! record has a fragment in which group: so that number makes the reading strict where groups leave with different rows. The
//! largest group alone would hide what is forced among the few rows of two small ones.
//!
//! # Why the answer is exact
//! 1. *Labels are cells.* A column is read as one column for each depth of its labels: a row has there the label of that
//!    depth that it is below, if any. A set of labels is then a set of cells, and what follows speaks of cells.
//! 2. *One side is heavy.* `n_X` + `m_Y` > N needs one of them above N/2. Each ordered pair (A, B) is searched with X
//!    heavy, so every cell of X is in more than half of the rows: at most one a column. Y is any set with
//!    `m_Y` ≥ N + 1 − `n_X`.
//! 3. *Intervals of X.* The subjects S(X, Y) on the joint rows only fall as X grows, and so does `n_X`. So for all X
//!    between P and Q ⊇ P at once: if every Y with `m_Y` ≥ N + 1 − `n_P` has S(Q, Y) ≥ k, none of them is a violation.
//!    The same holds for a union of intervals, with the smallest threshold and the rows that all their Q share. Otherwise
//!    the union is halved, and a single interval is divided at one cell; at P = Q the bound is the definition itself.
//! 4. *Small sets.* For fixed rows Q, the question is whether a set Y in at least t rows has fewer than k subjects in Q:
//!    [`small_sets`] answers it exactly. A question about more than one X may also be given up as "perhaps"; it then
//!    counts as a yes, and its parts are asked.
//!
//! Runtime: O(cells) to read a batch in, one step where no group has a label above N/2, else O(rows · width) a question in
//! the usual case. At worst the questions are exponential in the heavy labels of A, and one question in the labels of B, on
//! tuples with few subjects only; [`PATIENCE_IN_ALL`] ends it.
//!
//! Only conjunctions of labels are judged: neither unions of cells that are no label nor joins over three and more groups.
//!
//! This is written independently of the treatment that avoids forced pairs, and shares no code with it: it is the check.

mod labels;
mod runs;
mod small_sets;
#[cfg(test)]
mod tests;

pub use labels::Fragments;
use runs::{Rows, Runs};
use small_sets::{Question, Subjects};

/// What counting says of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// It joins nothing below k.
    Free,
    /// It joins two groups, or nothing can be proven of such a batch.
    Forced,
    /// There was no time to tell of these two groups.
    Unjudged([usize; 2]),
}

/// How many records there are at least for everybody who counts, beside those of the two groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// As many as the largest group has fragments.
    OfLargest,
    /// As many, and so many.
    AtLeast(usize),
    /// The groups have different rows by design: N of two groups is the number of rows of both.
    OfBoth,
}

/// Whether counting joins two groups below `k`, where so many `records` are known of: see the module for the claim. `subjects`
/// is by row of the batch; 0 is no subject and supports nobody. Forced is also a batch where a row is twice in one group or not
/// in `subjects`, or where cells did not fit the width of their group. Each of the `parts` of a batch has its share of the steps.
#[must_use]
pub fn judge(groups: &[Fragments], subjects: &[u64], k: usize, records: Records, parts: usize) -> Counting {
    judge_within(groups, subjects, k, records, PATIENCE_IN_ALL / parts.max(1))
}

fn judge_within(groups: &[Fragments], subjects: &[u64], k: usize, of: Records, steps: usize) -> Counting {
    let Some(taken) = groups.iter().map(|group| group.taken(subjects.len())).collect::<Option<Vec<Rows>>>() else {
        return Counting::Forced;
    };
    let totals: Vec<Vec<u32>> = groups.iter().map(Fragments::totals).collect();
    let tops: Vec<usize> = totals.iter().map(|of| of.iter().copied().max().unwrap_or(0) as usize).collect();
    let most = taken.iter().map(Rows::count).max().unwrap_or(0);
    let most = match of {
        Records::OfLargest => most,
        Records::AtLeast(known) => known.max(most),
        Records::OfBoth => usize::MAX,
    };
    let records = |a: usize, b: usize| most.min(taken[a].or(&taken[b]).count());
    let mut of_pairs = vec![vec![0; groups.len()]; groups.len()];
    // By group: how many rows a label has at least that can be part of anything forced.
    let mut floors = vec![usize::MAX; groups.len()];
    for (a, b) in (0..groups.len()).flat_map(|a| (0..groups.len()).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        of_pairs[a][b] = records(a, b);
        floors[a] = floors[a].min((of_pairs[a][b] + 1).saturating_sub(tops[b]).max(1));
    }
    let runs: Vec<Runs> = groups
        .iter()
        .zip(&totals)
        .zip(floors.iter().zip(&tops))
        .map(
            |((group, totals), (&floor, &top))| {
                if top >= floor { group.by_depth(totals, floor) } else { Runs::default() }
            },
        )
        .collect();
    let heavy: Vec<Vec<Rows>> = runs
        .iter()
        .zip(&of_pairs)
        .map(|(runs, records)| {
            let least = records.iter().copied().filter(|&records| records > 0).min().unwrap_or(0);
            runs.heavy(least, subjects.len())
        })
        .collect();
    if heavy.iter().all(Vec::is_empty) {
        return Counting::Free;
    }
    let intervals: Vec<Vec<Interval>> = heavy
        .iter()
        .map(|cells| (0..cells.len()).map(|lightest| Interval::down_to(cells, lightest)).collect())
        .collect();
    let mut search = Search { k, subjects: Subjects::new(subjects), left: steps };
    for (b, runs) in runs.iter().enumerate() {
        let others = intervals.iter().enumerate().filter(|(a, _)| *a != b);
        let mut against: Vec<PairQuestion> = others
            .flat_map(|(a, of_group)| of_group.iter().map(move |interval| (a, interval)))
            .map(|(a, interval)| PairQuestion { interval, of: a, records: of_pairs[a][b] })
            .filter(|asked| asked.is_heavy() && asked.interval.carried + tops[b] > asked.records)
            .collect();
        against.sort_by_key(PairQuestion::least);
        let Some(heaviest) = against.first() else { continue };
        let floor = heaviest.least();
        match search.violated(&runs.narrowed(floor), floor, &against, PATIENCE) {
            Verdict::Clear => {}
            Verdict::Violated => return Counting::Forced,
            Verdict::Unknown { of } => return Counting::Unjudged([of, b]),
        }
    }
    Counting::Free
}

/// What is known of some X.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Clear,
    Violated,
    /// The steps ended before that was known of an X of this group.
    Unknown {
        of: usize,
    },
}

impl Verdict {
    /// This, and what follows if nothing was found.
    fn or_else(self, next: impl FnOnce() -> Self) -> Self {
        if self == Self::Clear { next() } else { self }
    }
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

/// Some X of one group, asked of another group.
#[derive(Clone, Copy)]
struct PairQuestion<'a> {
    interval: &'a Interval<'a>,
    /// The group of X.
    of: usize,
    /// N of the two groups.
    records: usize,
}

impl PairQuestion<'_> {
    /// Where X is no heavier than half, Y would have to be: that pair is met with the groups exchanged.
    fn is_heavy(&self) -> bool {
        2 * self.interval.carried > self.records
    }

    /// Rows from which a Y is forced: t of P.
    fn least(&self) -> usize {
        self.records + 1 - self.interval.carried
    }
}

/// One batch under one k.
struct Search {
    k: usize,
    subjects: Subjects,
    /// Steps that all questions may still take.
    left: usize,
}

/// Steps that a question about several X may take for each cell of the group, before it is divided.
const PATIENCE: usize = 64;

/// Steps for one batch, after which it is not judged: about ten seconds of work.
const PATIENCE_IN_ALL: usize = 1 << 32;

impl Search {
    /// Is there a violating X among `asked` (lowest threshold first) with a Y of `runs`, narrowed to `floor`?
    fn violated(&mut self, runs: &Runs, floor: usize, asked: &[PairQuestion], patience: usize) -> Verdict {
        let Some((first, others)) = asked.split_first() else { return Verdict::Clear };
        let least = first.least();
        // Fewer cells, fewer tuples: worth a pass when the threshold has doubled.
        let fewer = (least >= 2 * floor).then(|| runs.narrowed(least));
        let passes = 1 + 2 * usize::from(fewer.is_some());
        self.left = self.left.saturating_sub(passes * (runs.cells.len() + runs.rows.len()));
        let (runs, floor) = fewer.as_ref().map_or((runs, floor), |fewer| (fewer, least));
        // Thresholds far apart have little to share: a question each.
        let alike = asked.partition_point(|x| x.least() < 2 * least);
        if alike < asked.len() {
            let (heavier, lighter) = asked.split_at(alike);
            let of_heavier = self.violated(runs, floor, heavier, patience);
            return of_heavier.or_else(|| self.violated(runs, floor, lighter, patience));
        }
        let joint = others.iter().fold(first.interval.joint.clone(), |joint, x| joint.and(&x.interval.joint));
        let parts = if others.is_empty() { first.interval.divided() } else { None };
        let further = parts.as_ref().map_or(0, |parts| parts[1].between.len());
        self.left = self.left.saturating_sub((others.len() + further) * self.subjects.words());
        let is_one_set = others.is_empty() && parts.is_none();
        let may = if is_one_set { usize::MAX } else { patience.saturating_mul(runs.cells.len()) };
        let budget = may.min(self.left);
        let question = Question { k: self.k, least, budget, subjects: &mut self.subjects };
        let (found, steps) = question.has_small_set(runs, &joint);
        self.left = self.left.saturating_sub(steps);
        if !found {
            return Verdict::Clear;
        }
        if self.left == 0 {
            return Verdict::Unknown { of: first.of };
        }
        if let Some(parts) = parts {
            let parts =
                parts.each_ref().map(|interval| PairQuestion { interval, of: first.of, records: first.records });
            let heavy = parts.iter().filter(|x| x.is_heavy());
            return heavy.fold(Verdict::Clear, |verdict, x| {
                verdict.or_else(|| self.violated(runs, floor, &[*x], patience.saturating_mul(2)))
            });
        }
        if is_one_set {
            return Verdict::Violated;
        }
        let (heavier, lighter) = asked.split_at(asked.len() / 2);
        let of_heavier = self.violated(runs, floor, heavier, patience);
        of_heavier.or_else(|| self.violated(runs, floor, lighter, patience))
    }
}
