//! A batch that may be released: the type that only verification can make.

use super::series::VerifiedSeries;
use crate::ledger::ledger_delta::LedgerDelta;
use crate::treatment::proposal::ProposedGroup;

/// Verified fragments, sorted by their encoded bytes: per group, or over all groups if their rows are joined.
#[derive(Debug)]
pub struct ReleasableBatch {
    groups: Vec<ProposedGroup>,
    /// The lines of all groups are released as one output.
    joined: bool,
    release: ReleaseCounts,
    series: VerifiedSeries,
}

/// Counts over all groups.
#[derive(Debug, Default)]
pub(super) struct ReleaseCounts {
    pub delta: LedgerDelta,
    pub risk: ReidentificationRisk,
    pub crowd: ClassSizeStats,
    /// By group, the distinct subjects of its smallest class in this batch.
    pub smallest_crowds: Vec<u64>,
}

/// Prosecutor's re-identification risk of the released lines: 1 / distinct subjects of their class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReidentificationRisk {
    /// The highest risk of any line, 0 to 1.
    pub highest: f64,
    /// Sum of the risk over the lines.
    pub sum: f64,
    /// Lines counted.
    pub lines: u64,
    /// Lines in classes with fewer than k subjects. Verification refuses such lines.
    pub below_k: u64,
}

impl ReidentificationRisk {
    pub(super) fn of_class(support: usize, lines: u64, k: usize) -> Self {
        let each = 1.0 / support.max(1) as f64;
        Self { highest: each, sum: each * lines as f64, lines, below_k: if support < k { lines } else { 0 } }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.highest = self.highest.max(other.highest);
        self.sum += other.sum;
        self.lines += other.lines;
        self.below_k += other.below_k;
    }

    /// Mean over the lines; 0 if nothing is released.
    #[must_use]
    pub fn average(&self) -> f64 {
        if self.lines == 0 { 0.0 } else { self.sum / self.lines as f64 }
    }
}

/// Distinct subjects in the classes of the released lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSizeStats {
    /// Subjects of the smallest class; 0 if nothing is released.
    pub smallest: u64,
    /// Sum of the class sizes over the lines.
    pub sum: u64,
    /// Lines counted.
    pub lines: u64,
    /// Lines in classes with fewer than k subjects.
    pub below_k: u64,
}

impl ClassSizeStats {
    pub(super) fn of_class(subjects: usize, lines: u64, k: usize) -> Self {
        let smallest = subjects as u64;
        Self { smallest, sum: smallest * lines, lines, below_k: if subjects < k { lines } else { 0 } }
    }

    pub(super) fn add(&mut self, other: Self) {
        if other.lines > 0 {
            self.smallest = if self.lines == 0 { other.smallest } else { self.smallest.min(other.smallest) };
        }
        self.sum += other.sum;
        self.lines += other.lines;
        self.below_k += other.below_k;
    }
}

/// One released line and the row of the batch that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedLine<'a> {
    /// The encoded line, without its line break.
    pub bytes: &'a [u8],
    /// The row of the batch.
    pub row: u32,
}

impl ReleasableBatch {
    /// Makes a verified batch; `joined` lines are released as one output.
    pub(super) fn new(groups: Vec<ProposedGroup>, joined: bool, release: ReleaseCounts) -> Self {
        let verified = Self { groups, joined, release, series: VerifiedSeries::default() };
        debug_assert!(
            (0..verified.groups()).all(|group| verified.lines(group).count() == verified.len(group)),
            "a sink gets other lines than were counted"
        );
        verified
    }

    /// Returns a batch that releases nothing.
    #[must_use]
    pub fn without_lines(groups: usize) -> Self {
        Self::new(vec![ProposedGroup::default(); groups], false, ReleaseCounts::default())
    }

    /// Attaches verified rows of series to the batch.
    pub fn attach(&mut self, series: VerifiedSeries) {
        self.series = series;
    }

    /// Takes the rows of series out of the batch.
    pub fn take_series(&mut self) -> VerifiedSeries {
        std::mem::take(&mut self.series)
    }

    /// Rows of series.
    #[must_use]
    pub fn series(&self) -> &VerifiedSeries {
        &self.series
    }

    /// Number of groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The lines of a group in the order of release.
    pub fn lines(&self, group: usize) -> impl Iterator<Item = VerifiedLine<'_>> {
        let group = &self.groups[group];
        group.runs.iter().flat_map(move |all| {
            let bytes = &group.arena[all.line.clone()];
            group.rows[all.rows.clone()].iter().map(move |&row| VerifiedLine { bytes, row })
        })
    }

    /// Number of outputs that receive lines: one per group, or one for all.
    #[must_use]
    pub fn outputs(&self) -> usize {
        if self.joined { 1 } else { self.groups() }
    }

    /// The lines of an output in the order of release, each with its group.
    ///
    /// Joined rows are sorted over all groups, so their position depends only on their content, even if every cell of
    /// them is missing.
    #[must_use]
    pub fn output(&self, output: usize) -> Vec<(usize, VerifiedLine<'_>)> {
        if !self.joined {
            return self.lines(output).map(|line| (output, line)).collect();
        }
        let all = (0..self.groups()).flat_map(|group| self.lines(group).map(move |line| (group, line)));
        let mut all: Vec<(usize, VerifiedLine<'_>)> = all.collect();
        all.sort_by_key(|(_, line)| line.bytes);
        all
    }

    /// Number of lines of a group.
    #[must_use]
    pub fn len(&self, group: usize) -> usize {
        self.groups[group].rows.len()
    }

    /// Checks that no line is released.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|g| g.rows.is_empty())
    }

    /// Changes to the ledger that take effect when these lines have been committed.
    #[must_use]
    pub fn delta(&self) -> &LedgerDelta {
        &self.release.delta
    }

    /// Class sizes of the released lines.
    #[must_use]
    pub fn crowd(&self) -> ClassSizeStats {
        self.release.crowd
    }

    /// Distinct subjects of the smallest class of a group in this batch; 0 if nothing of the group is released.
    #[must_use]
    pub fn smallest_crowd(&self, group: usize) -> u64 {
        self.release.smallest_crowds.get(group).copied().unwrap_or(0)
    }

    /// Risk of the released lines.
    #[must_use]
    pub fn risk(&self) -> ReidentificationRisk {
        self.release.risk
    }
}
