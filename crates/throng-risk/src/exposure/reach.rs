//! Records that few attributes identify.

use std::time::Instant;

use super::subset_walk::{SubsetWalk, SubsetWalkScope, count_row_subjects};
use crate::counting::{AttributeSet, CpuCounter, RowSet};

/// Records below k over some set of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ReachStep {
    /// Number of known attributes.
    pub size: usize,
    /// Records below k over at least one such set.
    pub records: u64,
    /// Subjects below k over at least one such set.
    pub people: u64,
}

/// Result of checking small sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubsetReach {
    /// Steps for sizes 1, 2, ….
    pub steps: Vec<ReachStep>,
    /// Records per searched attribute, ascending, with its value in a minimal combination of support below k.
    pub at_risk: Vec<(usize, u64)>,
    /// True if larger sets add no record.
    pub exhausted: bool,
}

/// Checks sets of 1, 2, … attributes until they put `below_all` records below k, or until a limit of work or time.
///
/// `qids` are the minimal QIDs, `None` if incomplete.
pub fn subset_reach(
    counter: &CpuCounter<'_>,
    searched: &AttributeSet,
    qids: Option<&[AttributeSet]>,
    k: u32,
    below_all: u64,
    until: Option<Instant>,
    progress: &dyn Fn(usize, usize),
) -> SubsetReach {
    let mut walk = SubsetWalk::new(SubsetWalkScope { counter, qids, k, until, progress }, searched);
    let attributes: Vec<usize> = searched.iter().collect();
    let mut at_risk: Vec<RowSet> = vec![RowSet::default(); attributes.len()];
    let mut reached = RowSet::default();
    let mut steps: Vec<ReachStep> = Vec::new();
    while reached.len() < below_all {
        let mut found: Vec<(AttributeSet, RowSet)> = Vec::new();
        if !walk.check_next_size(&mut |set, minimal| found.push((set.clone(), minimal.clone()))) {
            break;
        }
        if steps.is_empty() {
            at_risk.iter_mut().chain([&mut reached]).for_each(|rows| *rows = RowSet::none(counter.table().rows()));
        }
        for (set, minimal) in &found {
            reached.add(minimal);
            let members = set.iter().filter_map(|attribute| attributes.binary_search(&attribute).ok());
            members.for_each(|place| at_risk[place].add(minimal));
        }
        steps.push(ReachStep {
            size: walk.size,
            records: reached.len(),
            people: count_row_subjects(counter, &reached),
        });
    }
    let exhausted = reached.len() == below_all;
    let at_risk = attributes.iter().zip(&at_risk).map(|(attribute, rows)| (*attribute, rows.len())).collect();
    SubsetReach { steps, at_risk, exhausted }
}
