//! A batch that may leave: the type that only verification can make.

use super::ledger::LedgerDelta;
use crate::anonymity::treatment::proposal::ProposedGroup;

/// Verified fragments, group after group, sorted by their encoded bytes inside a group.
#[derive(Debug)]
pub struct Verified {
    groups: Vec<ProposedGroup>,
    delta: LedgerDelta,
    smallest: usize,
}

/// One line that leaves, and the row of the batch that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub bytes: &'a [u8],
    pub row: u32,
}

impl Verified {
    pub(super) fn new(groups: Vec<ProposedGroup>, delta: LedgerDelta, smallest: usize) -> Self {
        Self { groups, delta, smallest }
    }

    /// A batch of which nothing leaves.
    #[must_use]
    pub fn nothing(groups: usize) -> Self {
        Self { groups: vec![ProposedGroup::default(); groups], delta: LedgerDelta::default(), smallest: usize::MAX }
    }

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
        &self.delta
    }

    /// Support of the smallest class among those that leave, counted up to k; `usize::MAX` when nothing leaves.
    #[must_use]
    pub fn smallest_support(&self) -> usize {
        self.smallest
    }
}
