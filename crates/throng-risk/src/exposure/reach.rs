//! Counts the records that few attributes are enough to identify, and finds these attributes.

use std::time::Instant;

use super::subset_walk::{SubsetWalk, SubsetWalkScope, count_row_subjects};
use crate::counting::{AttributeSet, CpuCounter, RowSet};

/// Records below k over some set of a given number of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ReachStep {
    /// Number of known attributes; for each record, the attributes that identify it best.
    pub size: usize,
    /// Records below k over at least one set of that size. Grows with the size, since a superset has at least as
    /// many.
    pub records: u64,
    /// Subjects with such a record (records, without subjects).
    pub people: u64,
}

/// Result of checking small sets of attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubsetReach {
    /// Sizes 1, 2, … up to the largest checked size.
    pub steps: Vec<ReachStep>,
    /// Records at risk per searched attribute, ascending.
    ///
    /// A record counts if its value is part of a *minimal* combination of values with support below k. The
    /// combination has at most as many attributes as there are steps. Without the attribute, at least k would share
    /// it.
    pub at_risk: Vec<(usize, u64)>,
    /// True if the last step has as many records below k as all attributes together. Larger sets then add no record.
    pub exhausted: bool,
}

/// Checks all sets of 1, 2, … attributes until they have as many records below k as all of them together
/// (`below_all`).
///
/// Ends earlier if the limit of work or time is reached.
///
/// `qids` are the minimal QIDs. Supersets of none of them have no record below k and are skipped. Pass `None` if the
/// list is incomplete. Time and memory are those of a walk through the sets.
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
    // Allocates no row set before a size has been checked, since a long table may not allow any.
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
