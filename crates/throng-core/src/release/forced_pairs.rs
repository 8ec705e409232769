//! Counting guard between disjoint groups (docs/internals/methods.md §10.3 and §12.7).
//!
//! # Claim
//! A *label* of a column is a printed cell, its coverage, or a coverage above it, without the root. A row is below its
//! printed cells and below all coverages that contain them. Suppressed cells are below nothing.
//!
//! For groups A ≠ B, N is the number of rows with a fragment in A or B, limited by [`RecordCountBound`]. Non-empty
//! label sets X of A and Y of B have `n_X` and `m_Y` > 0 rows below all their labels. If `n_X` + `m_Y` > N, some
//! record is below both.
//!
//! [`check_forced_pairs`] forces a batch exactly if fewer than k distinct subjects are below such X and Y, or if
//! fragments contradict themselves. Unions without a label and joins of three groups are not judged.
//!
//! # Proof
//! 1. *Labels are cells.* Each column is read as one column per label depth.
//! 2. *One side is heavy.* `n_X` or `m_Y` exceeds N/2. All ordered pairs (A, B) are searched with X heavy. Its cells
//!    are in more than half of the rows: at most one per column.
//! 3. *Intervals of X.* `n_X` and the joint subjects S(X, Y) never increase as X grows. If S(Q, Y) ≥ k for all Y with
//!    `m_Y` > N − `n_P`, no X between P and Q ⊇ P violates the claim. A union of intervals uses the smallest threshold
//!    and the joint rows of all Q. Otherwise it is divided; P = Q is the definition.
//! 4. *Small sets.* `small_sets` decides if a Y in at least t rows has fewer than k subjects in the rows of Q. An
//!    undecided question counts as yes and is divided.
//!
//! Time: usually O(rows · width) per question; the worst case is exponential in the labels.

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
    /// No join below k.
    Free,
    /// Join below k, or contradictory fragments.
    Forced,
    /// Step limit at these two groups.
    StepsExhausted([usize; 2]),
}

/// Upper bound on N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordCountBound {
    /// Fragments of the largest group.
    OfLargest,
    /// Maximum of that and this number.
    AtLeast(usize),
    /// None, for groups with different rows by design.
    OfBoth,
}

/// Checks if counting joins two groups below `k`. `subjects` is by row; 0 is no subject.
///
/// Contradictory fragments also force a batch. The step limit is divided by `parts`.
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
    // Minimum rows of a label in a forced pair, by group.
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

#[derive(Clone, Copy, PartialEq)]
enum IntervalVerdict {
    Clear,
    Violated,
    Unknown { of: usize },
}

impl IntervalVerdict {
    fn or_else(self, next: impl FnOnce() -> Self) -> Self {
        if self == Self::Clear { next() } else { self }
    }
}

/// All sets X of one group from P (rows `least`) to P ∪ `between`.
struct LabelSetInterval<'a> {
    least: RowBitSet,
    /// `n_P`.
    carried: usize,
    /// Heaviest first, none implied by P.
    between: Vec<&'a RowBitSet>,
    /// Q = P ∪ `between`.
    joint: RowBitSet,
}

impl<'a> LabelSetInterval<'a> {
    /// Groups sets with similar thresholds.
    fn down_to(cells: &'a [RowBitSet], lightest: usize) -> Self {
        Self::new(cells[lightest].clone(), cells[..lightest].iter())
    }

    fn new(least: RowBitSet, further: impl Iterator<Item = &'a RowBitSet>) -> Self {
        let between: Vec<&RowBitSet> = further.filter(|cell| !least.is_within(cell)).collect();
        let joint = between.iter().fold(least.clone(), |joint, cell| joint.and(cell));
        Self { carried: least.count(), least, between, joint }
    }

    fn divided(&self) -> Option<[Self; 2]> {
        let (lightest, rest) = self.between.split_last()?;
        let with = Self::new(self.least.and(lightest), rest.iter().copied());
        Some([with, Self::new(self.least.clone(), rest.iter().copied())])
    }
}

#[derive(Clone, Copy)]
struct PairQuestion<'a> {
    interval: &'a LabelSetInterval<'a>,
    of: usize,
    /// N of the two groups.
    records: usize,
}

impl PairQuestion<'_> {
    /// The exchanged pair covers light sets.
    fn is_heavy(&self) -> bool {
        2 * self.interval.carried > self.records
    }

    /// t of P.
    fn least(&self) -> usize {
        self.records + 1 - self.interval.carried
    }
}

struct ForcedPairSearch {
    k: usize,
    subjects: SubjectCounter,
    left: usize,
}

/// Steps per cell for several X, before they are divided.
const STEPS_PER_CELL: usize = 64;

/// Steps for one batch, about ten seconds.
const BATCH_STEP_LIMIT: usize = 1 << 32;

impl ForcedPairSearch {
    /// `asked` is sorted by threshold; `runs` are narrowed to `floor`.
    fn violated(&mut self, runs: &TupleRuns, floor: usize, asked: &[PairQuestion], patience: usize) -> IntervalVerdict {
        let Some((first, others)) = asked.split_first() else { return IntervalVerdict::Clear };
        let least = first.least();
        // Worth a pass if the threshold has doubled.
        let fewer = (least >= 2 * floor).then(|| runs.narrowed(least));
        let passes = 1 + 2 * usize::from(fewer.is_some());
        self.left = self.left.saturating_sub(passes * (runs.cells.len() + runs.rows.len()));
        let (runs, floor) = fewer.as_ref().map_or((runs, floor), |fewer| (fewer, least));
        // Distant thresholds share little work.
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
