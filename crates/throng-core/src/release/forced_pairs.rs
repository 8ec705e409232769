//! Counting guard between disjoint groups (docs/internals/methods.md §10.3 and §12.7): joins that an observer can derive by
//! counting alone.
//!
//! # The claim
//! A *label* of a column is a printed cell, its coverage, or a coverage above it in the hierarchy, without the root.
//! A row is below a printed cell if it has that cell, and below a coverage if its cell has that coverage or one below
//! it. Suppressed cells are below nothing.
//!
//! For two groups A ≠ B let N be the number of rows with a fragment in A or in B. If the groups are released with the
//! same rows by design ([`RecordCountBound`]), N is at most the number of fragments of the largest group. Let X and Y be
//! non-empty sets of labels of A and B that some row is below, and `n_X`, `m_Y` the numbers of rows below all of
//! them. If `n_X` + `m_Y` > N, some record must be below both.
//!
//! [`check_forced_pairs`] forces a batch exactly if for some such pair fewer than k distinct subjects are below both X and Y, or
//! if fragments contradict themselves. A batch that needs more than `BATCH_STEP_LIMIT` steps is
//! [`CountingResult::StepsExhausted`].
//!
//! *On N.* The rows of A and B are the strict choice for groups with different rows, even against an observer that
//! knows the rows of each group. The largest group alone would miss pairs forced among the few rows of two small
//! groups.
//!
//! # Why the answer is exact
//! 1. *Labels are cells.* A column is read as one column per depth of its labels. A set of labels is then a set of
//!    cells.
//! 2. *One side is heavy.* `n_X` + `m_Y` > N needs one of them above N/2. Each ordered pair (A, B) is searched with X
//!    heavy, so every cell of X is in more than half of the rows: at most one per column.
//! 3. *Intervals of X.* The subjects S(X, Y) on the joint rows and `n_X` only decrease as X grows. One check
//!    therefore covers all X between P and Q ⊇ P: if every Y with `m_Y` > N − `n_P` has S(Q, Y) ≥ k, none is a
//!    violation. The same holds for a union of intervals, with the smallest threshold and the joint rows of all Q.
//!    Otherwise the union is halved, and a single interval is divided at one cell. At P = Q the bound is the
//!    definition.
//! 4. *Small sets.* `small_sets` decides exactly if a set Y in at least t rows has fewer than k subjects in the
//!    rows Q. A question about several X may end with "perhaps", which counts as yes; its parts are then checked.
//!
//! Time: O(cells) to read a batch; then O(rows · width) per question in the usual case. The worst case is exponential
//! in the labels, on tuples with few subjects only.
//!
//! Only conjunctions of labels are judged: neither unions of cells that are no label nor joins over three and more
//! groups.

mod labels;
mod runs;
mod small_sets;
#[cfg(test)]
mod tests;

pub use labels::GroupFragments;
use runs::{RowBitSet, TupleRuns};
use small_sets::{SmallSetQuery, SubjectCounter};

/// Result of the counting check of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountingResult {
    /// Counting joins nothing below k.
    Free,
    /// Counting joins two groups, or the batch contradicts itself.
    Forced,
    /// The steps ran out before a result for these two groups.
    StepsExhausted([usize; 2]),
}

/// Lower bound on the number of records, in addition to the rows of the two groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordCountBound {
    /// The number of fragments of the largest group.
    OfLargest,
    /// The larger of that number and this one.
    AtLeast(usize),
    /// The groups have different rows by design: N of two groups is the number of rows of both.
    OfBoth,
}

/// Checks if counting joins two groups below `k`, given the bound `records`. `subjects` is by row of the batch; 0 is
/// no subject. A batch is also forced if a row is twice in one group or not in `subjects`, or if cells do not fit
/// their group. Each of the `parts` of a batch has an equal share of the steps.
#[must_use]
pub fn check_forced_pairs(
    groups: &[GroupFragments],
    subjects: &[u64],
    k: usize,
    records: RecordCountBound,
    parts: usize,
) -> CountingResult {
    check_within_steps(groups, subjects, k, records, BATCH_STEP_LIMIT / parts.max(1))
}

fn check_within_steps(
    groups: &[GroupFragments],
    subjects: &[u64],
    k: usize,
    of: RecordCountBound,
    steps: usize,
) -> CountingResult {
    let Some(taken) = groups.iter().map(|group| group.taken(subjects.len())).collect::<Option<Vec<RowBitSet>>>() else {
        return CountingResult::Forced;
    };
    let totals: Vec<Vec<u32>> = groups.iter().map(GroupFragments::totals).collect();
    let tops: Vec<usize> = totals.iter().map(|of| of.iter().copied().max().unwrap_or(0) as usize).collect();
    let most = taken.iter().map(RowBitSet::count).max().unwrap_or(0);
    let most = match of {
        RecordCountBound::OfLargest => most,
        RecordCountBound::AtLeast(known) => known.max(most),
        RecordCountBound::OfBoth => usize::MAX,
    };
    let records = |a: usize, b: usize| most.min(taken[a].or(&taken[b]).count());
    let mut of_pairs = vec![vec![0; groups.len()]; groups.len()];
    // By group: the minimum number of rows of a label that can be part of a forced pair.
    let mut floors = vec![usize::MAX; groups.len()];
    for (a, b) in (0..groups.len()).flat_map(|a| (0..groups.len()).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        of_pairs[a][b] = records(a, b);
        floors[a] = floors[a].min((of_pairs[a][b] + 1).saturating_sub(tops[b]).max(1));
    }
    let runs: Vec<TupleRuns> = groups
        .iter()
        .zip(&totals)
        .zip(floors.iter().zip(&tops))
        .map(
            |((group, totals), (&floor, &top))| {
                if top >= floor { group.by_depth(totals, floor) } else { TupleRuns::default() }
            },
        )
        .collect();
    let heavy: Vec<Vec<RowBitSet>> = runs
        .iter()
        .zip(&of_pairs)
        .map(|(runs, records)| {
            let least = records.iter().copied().filter(|&records| records > 0).min().unwrap_or(0);
            runs.heavy(least, subjects.len())
        })
        .collect();
    if heavy.iter().all(Vec::is_empty) {
        return CountingResult::Free;
    }
    let intervals: Vec<Vec<LabelSetInterval>> = heavy
        .iter()
        .map(|cells| (0..cells.len()).map(|lightest| LabelSetInterval::down_to(cells, lightest)).collect())
        .collect();
    let mut search = ForcedPairSearch { k, subjects: SubjectCounter::new(subjects), left: steps };
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
        match search.violated(&runs.narrowed(floor), floor, &against, STEPS_PER_CELL) {
            IntervalVerdict::Clear => {}
            IntervalVerdict::Violated => return CountingResult::Forced,
            IntervalVerdict::Unknown { of } => return CountingResult::StepsExhausted([of, b]),
        }
    }
    CountingResult::Free
}

/// Search result for a set X.
#[derive(Clone, Copy, PartialEq)]
enum IntervalVerdict {
    Clear,
    Violated,
    /// The steps ran out at an X of this group.
    Unknown {
        of: usize,
    },
}

impl IntervalVerdict {
    /// Returns this result, or that of `next` if no violation was found.
    fn or_else(self, next: impl FnOnce() -> Self) -> Self {
        if self == Self::Clear { next() } else { self }
    }
}

/// All sets X of one group from `P` (with the rows `least`) up to `P` and all of `between`.
struct LabelSetInterval<'a> {
    least: RowBitSet,
    /// Number of rows of `least`: `n_P`.
    carried: usize,
    /// Rows of the further cells, heaviest first, none of them implied by P.
    between: Vec<&'a RowBitSet>,
    /// The rows of P and all further cells: Q.
    joint: RowBitSet,
}

impl<'a> LabelSetInterval<'a> {
    /// Returns the sets with `lightest` as their lightest cell, so that their thresholds are close together.
    fn down_to(cells: &'a [RowBitSet], lightest: usize) -> Self {
        Self::new(cells[lightest].clone(), cells[..lightest].iter())
    }

    fn new(least: RowBitSet, further: impl Iterator<Item = &'a RowBitSet>) -> Self {
        let between: Vec<&RowBitSet> = further.filter(|cell| !least.is_within(cell)).collect();
        let joint = between.iter().fold(least.clone(), |joint, cell| joint.and(cell));
        Self { carried: least.count(), least, between, joint }
    }

    /// Divides the interval into the sets with the lightest further cell and those without it; none if there is only
    /// one set.
    fn divided(&self) -> Option<[Self; 2]> {
        let (lightest, rest) = self.between.split_last()?;
        let with = Self::new(self.least.and(lightest), rest.iter().copied());
        Some([with, Self::new(self.least.clone(), rest.iter().copied())])
    }
}

/// Sets X of one group, checked against another group.
#[derive(Clone, Copy)]
struct PairQuestion<'a> {
    interval: &'a LabelSetInterval<'a>,
    /// The group of X.
    of: usize,
    /// N of the two groups.
    records: usize,
}

impl PairQuestion<'_> {
    /// Checks that X has more than half of the rows. The exchanged pair covers the other case.
    fn is_heavy(&self) -> bool {
        2 * self.interval.carried > self.records
    }

    /// Minimum rows of a forced Y: t of P.
    fn least(&self) -> usize {
        self.records + 1 - self.interval.carried
    }
}

/// Search of one batch for one k.
struct ForcedPairSearch {
    k: usize,
    subjects: SubjectCounter,
    /// Remaining steps for all questions.
    left: usize,
}

/// Steps per cell of the group for a question about several X, before it is divided.
const STEPS_PER_CELL: usize = 64;

/// Steps for one batch, about ten seconds of work. After them the batch is not judged.
const BATCH_STEP_LIMIT: usize = 1 << 32;

impl ForcedPairSearch {
    /// Searches for a violating X among `asked` (lowest threshold first) with a Y of `runs`, narrowed to `floor`.
    fn violated(&mut self, runs: &TupleRuns, floor: usize, asked: &[PairQuestion], patience: usize) -> IntervalVerdict {
        let Some((first, others)) = asked.split_first() else { return IntervalVerdict::Clear };
        let least = first.least();
        // Fewer cells give fewer tuples. The pass is worth it if the threshold has doubled.
        let fewer = (least >= 2 * floor).then(|| runs.narrowed(least));
        let passes = 1 + 2 * usize::from(fewer.is_some());
        self.left = self.left.saturating_sub(passes * (runs.cells.len() + runs.rows.len()));
        let (runs, floor) = fewer.as_ref().map_or((runs, floor), |fewer| (fewer, least));
        // Distant thresholds share little work, so they become separate questions.
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
        let question = SmallSetQuery { k: self.k, least, budget, subjects: &mut self.subjects };
        let (found, steps) = question.has_small_set(runs, &joint);
        self.left = self.left.saturating_sub(steps);
        if !found {
            return IntervalVerdict::Clear;
        }
        if self.left == 0 {
            return IntervalVerdict::Unknown { of: first.of };
        }
        if let Some(parts) = parts {
            let parts =
                parts.each_ref().map(|interval| PairQuestion { interval, of: first.of, records: first.records });
            let heavy = parts.iter().filter(|x| x.is_heavy());
            return heavy.fold(IntervalVerdict::Clear, |verdict, x| {
                verdict.or_else(|| self.violated(runs, floor, &[*x], patience.saturating_mul(2)))
            });
        }
        if is_one_set {
            return IntervalVerdict::Violated;
        }
        let (heavier, lighter) = asked.split_at(asked.len() / 2);
        let of_heavier = self.violated(runs, floor, heavier, patience);
        of_heavier.or_else(|| self.violated(runs, floor, lighter, patience))
    }
}
