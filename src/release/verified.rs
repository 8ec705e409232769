//! A batch that may leave: the type that only verification can make.

use super::series::VerifiedSeries;
use crate::anonymity::treatment::proposal::ProposedGroup;
use throng_core::ledger::delta::LedgerDelta;

/// Verified fragments, sorted by their encoded bytes: group after group, or of all groups together where their rows are joined.
#[derive(Debug)]
pub struct Verified {
    groups: Vec<ProposedGroup>,
    /// The lines of all groups leave as one.
    joined: bool,
    release: Release,
    series: VerifiedSeries,
}

/// The counts of all groups together.
#[derive(Debug, Default)]
pub(super) struct Release {
    pub delta: LedgerDelta,
    pub risk: Risk,
    pub crowd: Crowd,
    /// By group, the distinct subjects of its smallest class in this batch.
    pub smallest_crowds: Vec<u64>,
}

/// Prosecutor's re-identification risk of the lines that leave: 1 / distinct subjects of their class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Risk {
    /// The highest of any line, 0 to 1.
    pub highest: f64,
    /// Sum over the lines, and their number.
    pub sum: f64,
    /// Lines counted.
    pub lines: u64,
    /// Lines whose class has fewer than k: verification lets none of them through.
    pub below_k: u64,
}

impl Risk {
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

    /// Mean over the lines; 0 when nothing leaves.
    #[must_use]
    pub fn average(&self) -> f64 {
        if self.lines == 0 { 0.0 } else { self.sum / self.lines as f64 }
    }
}

/// Distinct subjects in the classes of the lines that leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crowd {
    /// The fewest of any class; 0 when nothing leaves.
    pub smallest: u64,
    /// Sum over the lines, and their number.
    pub sum: u64,
    /// Lines counted.
    pub lines: u64,
    /// Lines whose class has fewer than k subjects.
    pub below_k: u64,
}

impl Crowd {
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

/// One line that leaves, and the row of the batch that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The encoded line, without its line break.
    pub bytes: &'a [u8],
    /// The row of the batch.
    pub row: u32,
}

impl Verified {
    /// The lines of `groups`, which leave as one where they are `joined`, with what their `release` counts.
    pub(super) fn new(groups: Vec<ProposedGroup>, joined: bool, release: Release) -> Self {
        let verified = Self { groups, joined, release, series: VerifiedSeries::default() };
        debug_assert!(
            (0..verified.groups()).all(|group| verified.lines(group).count() == verified.len(group)),
            "a sink is handed other lines than were counted"
        );
        verified
    }

    /// A batch of which nothing leaves.
    #[must_use]
    pub fn nothing(groups: usize) -> Self {
        Self::new(vec![ProposedGroup::default(); groups], false, Release::default())
    }

    /// Lets verified rows of series leave with the batch.
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

    /// The lines of a group in the order in which they leave.
    pub fn lines(&self, group: usize) -> impl Iterator<Item = Line<'_>> {
        let group = &self.groups[group];
        group.runs.iter().flat_map(move |run| {
            let bytes = &group.arena[run.line.clone()];
            group.rows[run.rows.clone()].iter().map(move |&row| Line { bytes, row })
        })
    }

    /// Number of outputs that the lines leave to: one a group, or one for all.
    #[must_use]
    pub fn outputs(&self) -> usize {
        if self.joined { 1 } else { self.groups() }
    }

    /// The lines of an output in the order in which they leave, each with its group.
    ///
    /// Joined rows are sorted over all groups of the batch. Where they stand is then a function of what they say: rows that say
    /// nothing, because every cell of them is missing, are not told apart by their place either.
    #[must_use]
    pub fn output(&self, output: usize) -> Vec<(usize, Line<'_>)> {
        if !self.joined {
            return self.lines(output).map(|line| (output, line)).collect();
        }
        let all = (0..self.groups()).flat_map(|group| self.lines(group).map(move |line| (group, line)));
        let mut all: Vec<(usize, Line<'_>)> = all.collect();
        all.sort_by_key(|(_, line)| line.bytes);
        all
    }

    /// Number of lines of a group.
    #[must_use]
    pub fn len(&self, group: usize) -> usize {
        self.groups[group].rows.len()
    }

    /// Whether nothing leaves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|g| g.rows.is_empty())
    }

    /// What the ledger must learn when these lines have been committed.
    #[must_use]
    pub fn delta(&self) -> &LedgerDelta {
        &self.release.delta
    }

    /// The crowd of what leaves.
    #[must_use]
    pub fn crowd(&self) -> Crowd {
        self.release.crowd
    }

    /// Distinct subjects of the smallest class of a group in this batch; 0 when nothing of it leaves.
    #[must_use]
    pub fn smallest_crowd(&self, group: usize) -> u64 {
        self.release.smallest_crowds.get(group).copied().unwrap_or(0)
    }

    /// Risk of what leaves.
    #[must_use]
    pub fn risk(&self) -> Risk {
        self.release.risk
    }
}
