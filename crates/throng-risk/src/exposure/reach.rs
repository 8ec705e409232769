//! How little is enough: which records fall to how few attributes, and to which.

use std::time::Instant;

use super::walk::{Scope, Walk, people};
use crate::counting::{AttributeSet, CpuCounter, RowSet};

/// Records that some set of so many attributes leaves below k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Reach {
    /// Attributes known; for each record the ones that give it away soonest.
    pub size: usize,
    /// Records below k over at least one set of that size. It grows with the size: a superset leaves no fewer.
    pub records: u64,
    /// People with such a record (the records where the table names no people).
    pub people: u64,
}

/// What sets of few attributes do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Sizes 1, 2, … as far as was looked.
    pub steps: Vec<Reach>,
    /// For each searched attribute, ascending: records with a value of it in a *minimal* combination of values that has
    /// support below k, of up to as many attributes as there are steps. Without the attribute, that combination would
    /// be shared by k and more.
    pub at_risk: Vec<(usize, u64)>,
    /// The last step leaves as many records below k as all attributes together: nobody else falls to more.
    pub exhausted: bool,
}

/// Looks at all sets of 1, 2, … attributes until they leave as many records below k as all of them together
/// (`below_all`), or the work or the time is used up.
///
/// `qids` are minimal QIDs: sets that are above none of them leave nobody below k and are not looked at. Where that list
/// is not complete, give none. Time and memory are those of a walk through the sets.
pub fn reach(
    counter: &CpuCounter<'_>,
    searched: &AttributeSet,
    qids: Option<&[AttributeSet]>,
    k: u32,
    below_all: u64,
    until: Option<Instant>,
    progress: &dyn Fn(usize, usize),
) -> Reached {
    let mut walk = Walk::new(Scope { counter, qids, k, until, progress }, searched);
    let attributes: Vec<usize> = searched.iter().collect();
    // Nothing is held before a size has been looked at: of a long table, none may be.
    let mut at_risk: Vec<RowSet> = vec![RowSet::default(); attributes.len()];
    let mut reached = RowSet::default();
    let mut steps: Vec<Reach> = Vec::new();
    while reached.len() < below_all {
        let mut found: Vec<(AttributeSet, RowSet)> = Vec::new();
        if !walk.step(&mut |set, minimal| found.push((set.clone(), minimal.clone()))) {
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
        steps.push(Reach { size: walk.size, records: reached.len(), people: people(counter, &reached) });
    }
    let exhausted = reached.len() == below_all;
    let at_risk = attributes.iter().zip(&at_risk).map(|(attribute, rows)| (*attribute, rows.len())).collect();
    Reached { steps, at_risk, exhausted }
}
