//! Verified batches.

use super::series::VerifiedSeries;
use crate::ledger::ledger_delta::LedgerDelta;
use crate::treatment::proposal::ProposedGroup;

/// Verified fragments, made by verification only and sorted by their bytes.
#[derive(Debug)]
pub struct ReleasableBatch {
    groups: Vec<ProposedGroup>,
    joined: bool,
    release: ReleaseCounts,
    series: VerifiedSeries,
}

#[derive(Debug, Default)]
pub(super) struct ReleaseCounts {
    pub delta: LedgerDelta,
    pub risk: ReidentificationRisk,
    pub crowd: ClassSizeStats,
    /// Distinct subjects of the smallest class, by group.
    pub smallest_crowds: Vec<u64>,
}

/// Prosecutor's re-identification risk of a line: 1 / distinct subjects of its class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReidentificationRisk {
    /// Highest risk, 0 to 1.
    pub highest: f64,
    /// Sum over the lines.
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

    /// Mean over the lines; 0 without lines.
    #[must_use]
    pub fn average(&self) -> f64 {
        if self.lines == 0 { 0.0 } else { self.sum / self.lines as f64 }
    }
}

/// Distinct subjects in the classes of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSizeStats {
    /// Smallest class; 0 without lines.
    pub smallest: u64,
    /// Sum over the lines.
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

/// One released line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedLine<'a> {
    /// Bytes without line break.
    pub bytes: &'a [u8],
    /// Row of the batch.
    pub row: u32,
}

impl ReleasableBatch {
    pub(super) fn new(groups: Vec<ProposedGroup>, joined: bool, release: ReleaseCounts) -> Self {
        let verified = Self { groups, joined, release, series: VerifiedSeries::default() };
        debug_assert!(
            (0..verified.groups()).all(|group| verified.lines(group).count() == verified.len(group)),
            "a sink gets other lines than were counted"
        );
        verified
    }

    /// Batch that releases nothing.
    #[must_use]
    pub fn without_lines(groups: usize) -> Self {
        Self::new(vec![ProposedGroup::default(); groups], false, ReleaseCounts::default())
    }

    /// Attaches rows of series.
    pub fn attach(&mut self, series: VerifiedSeries) {
        self.series = series;
    }

    /// Takes the rows of series.
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

    /// Lines of a group, in release order.
    pub fn lines(&self, group: usize) -> impl Iterator<Item = VerifiedLine<'_>> {
        let group = &self.groups[group];
        group.runs.iter().flat_map(move |all| {
            let bytes = &group.arena[all.line.clone()];
            group.rows[all.rows.clone()].iter().map(move |&row| VerifiedLine { bytes, row })
        })
    }

    /// Number of outputs: one per group, or one for all.
    #[must_use]
    pub fn outputs(&self) -> usize {
        if self.joined { 1 } else { self.groups() }
    }

    /// Lines of an output with their groups, in release order.
    ///
    /// Joined rows are sorted over all groups, so their order depends only on their content.
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

    /// Ledger changes at the commit.
    #[must_use]
    pub fn delta(&self) -> &LedgerDelta {
        &self.release.delta
    }

    /// Class sizes.
    #[must_use]
    pub fn crowd(&self) -> ClassSizeStats {
        self.release.crowd
    }

    /// Subjects of the smallest class of a group; 0 without lines.
    #[must_use]
    pub fn smallest_crowd(&self, group: usize) -> u64 {
        self.release.smallest_crowds.get(group).copied().unwrap_or(0)
    }

    /// Risk of the lines.
    #[must_use]
    pub fn risk(&self) -> ReidentificationRisk {
        self.release.risk
    }
}
