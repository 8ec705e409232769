//! Enumeration of sets with the records that each first puts below k.

use crate::counting::{AttributeSet, CpuCounter, RowSet};
use hashbrown::HashMap;
use rayon::prelude::*;
use std::time::Instant;

/// Most row visits. Bounds work, so that the report is reproducible, and memory: an eighth of a byte each.
const MAX_WALK_VISITS: u64 = 500_000_000;

const MAX_SETS_PER_SIZE: u64 = 1_000_000;

const WALK_SETS_PER_BATCH: usize = 256;

#[derive(Clone, Copy)]
pub(super) struct SubsetWalkScope<'a> {
    pub counter: &'a CpuCounter<'a>,
    pub qids: Option<&'a [AttributeSet]>,
    pub k: u32,
    pub until: Option<Instant>,
    /// Receives checked and total sets of a size.
    pub progress: &'a dyn Fn(usize, usize),
}

/// Level-wise walk. Sets with all but the last attribute in common split the same classes.
///
/// Memory: an eighth of a byte per record and set, for two sizes.
pub(super) struct SubsetWalk<'a> {
    scope: SubsetWalkScope<'a>,
    pub attributes: Vec<usize>,
    pub size: usize,
    visits: u64,
    below: HashMap<AttributeSet, RowSet>,
}

impl<'a> SubsetWalk<'a> {
    pub fn new(scope: SubsetWalkScope<'a>, searched: &AttributeSet) -> Self {
        Self { scope, attributes: searched.iter().collect(), size: 0, visits: 0, below: HashMap::new() }
    }

    /// Checks the next size. Calls `each` with every set and the records below k over it and over no proper subset.
    ///
    /// Returns false at the last size or a limit; the walk is then unusable.
    pub fn check_next_size(&mut self, each: &mut dyn FnMut(&AttributeSet, &RowSet)) -> bool {
        let SubsetWalkScope { counter, qids, k, until, progress } = self.scope;
        if self.size == self.attributes.len() {
            return false;
        }
        let Some(sets) = sets_above_qids(&self.attributes, self.size + 1, qids) else { return false };
        self.visits += sets.len() as u64 * counter.table().rows() as u64;
        if self.visits > MAX_WALK_VISITS {
            return false;
        }
        let mut larger: HashMap<AttributeSet, RowSet> = HashMap::new();
        let mut done = 0;
        for batch in batches(&sets) {
            if until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
            let parts = &self.below;
            let of_family = |family: &&[AttributeSet]| below_per_set(counter, parts, family, k);
            let fallen: Vec<Vec<(RowSet, RowSet)>> = batch.par_iter().map(of_family).collect();
            for (set, (below, minimal)) in batch.iter().copied().flatten().zip(fallen.into_iter().flatten()) {
                if !minimal.is_empty() {
                    each(set, &minimal);
                }
                if !below.is_empty() {
                    larger.insert(set.clone(), below);
                }
            }
            done += batch.iter().map(|family| family.len()).sum::<usize>();
            progress(done, sets.len());
        }
        self.size += 1;
        self.below = larger;
        true
    }
}

/// Returns per set of a family its records below k, and those for which it is minimal.
///
/// `parts` holds the records below k over the sets that are one smaller.
fn below_per_set(
    counter: &CpuCounter<'_>,
    parts: &HashMap<AttributeSet, RowSet>,
    family: &[AttributeSet],
    k: u32,
) -> Vec<(RowSet, RowSet)> {
    let none = || RowSet::none(counter.table().rows());
    let of_parts = |set: &AttributeSet| {
        let mut rows = none();
        set.iter().filter_map(|attribute| parts.get(&set.without(attribute))).for_each(|part| rows.add(part));
        rows
    };
    let known: Vec<RowSet> = family.iter().map(of_parts).collect();
    let mut found = vec![none(); family.len()];
    counter.store_error(counter.visit_records_below(family, &known, k, &mut |at, row, _| found[at].insert(row)));
    let minimal_too = |(mut below, mut minimal): (RowSet, RowSet)| {
        minimal.remove(&below);
        below.add(&minimal);
        (below, minimal)
    };
    known.into_iter().zip(found).map(minimal_too).collect()
}

pub(super) fn count_row_subjects(counter: &CpuCounter<'_>, rows: &RowSet) -> u64 {
    let table = counter.table();
    if table.subjects().is_none() {
        return rows.len();
    }
    let mut seen = RowSet::none(table.support());
    counter.store_error(counter.visit_row_subjects(|row, person| {
        if rows.contains(row) {
            seen.insert(person);
        }
    }));
    seen.len()
}

fn without_last(set: &AttributeSet) -> AttributeSet {
    set.last().map_or_else(AttributeSet::new, |last| set.without(last))
}

fn batches(sets: &[AttributeSet]) -> Vec<Vec<&[AttributeSet]>> {
    let mut batches: Vec<Vec<&[AttributeSet]>> = Vec::new();
    let mut count = WALK_SETS_PER_BATCH;
    for family in sets.chunk_by(|a, b| without_last(a) == without_last(b)) {
        if count >= WALK_SETS_PER_BATCH {
            batches.push(Vec::new());
            count = 0;
        }
        count += family.len();
        if let Some(batch) = batches.last_mut() {
            batch.push(family);
        }
    }
    batches
}

/// Returns the sets that contain a QID, in canonical order; `None` if too many.
fn sets_above_qids(attributes: &[usize], size: usize, qids: Option<&[AttributeSet]>) -> Option<Vec<AttributeSet>> {
    let all = (0..size as u64).try_fold(1_u64, |n, i| {
        Some(n.checked_mul(attributes.len() as u64 - i)? / (i + 1)).filter(|n| *n <= MAX_SETS_PER_SIZE)
    });
    all?;
    let relevant: Option<Vec<&AttributeSet>> = qids.map(|qids| qids.iter().filter(|qid| qid.len() <= size).collect());
    let mut sets = Vec::new();
    let mut chosen: Vec<usize> = (0..size).collect();
    loop {
        let set: AttributeSet = chosen.iter().map(|&place| attributes[place]).collect();
        if relevant.as_ref().is_none_or(|qids| qids.iter().any(|qid| qid.is_subset(&set))) {
            sets.push(set);
        }
        let Some(place) = (0..size).rev().find(|&place| chosen[place] + size < attributes.len() + place) else { break };
        chosen[place] += 1;
        for behind in place + 1..size {
            chosen[behind] = chosen[behind - 1] + 1;
        }
    }
    Some(sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enumeration_is_canonical_and_skips_sets_without_qids() {
        let of = |sets: &[&[usize]]| sets.iter().map(|s| s.iter().copied().collect()).collect::<Vec<AttributeSet>>();
        let sets = sets_above_qids(&[1, 4, 5, 9], 2, None).expect("few");
        assert_eq!(sets, of(&[&[1, 4], &[1, 5], &[1, 9], &[4, 5], &[4, 9], &[5, 9]]));
        assert_eq!(sets_above_qids(&[1, 4], 2, None).expect("one"), of(&[&[1, 4]]));
        let qids = of(&[&[4], &[1, 9], &[1, 5, 9]]);
        assert_eq!(
            sets_above_qids(&[1, 4, 5, 9], 2, Some(&qids)).expect("few"),
            of(&[&[1, 4], &[1, 9], &[4, 5], &[4, 9]])
        );
        let many: Vec<usize> = (0..1024).collect();
        assert_eq!(sets_above_qids(&many, 1, None).map(|sets| sets.len()), Some(1024));
        assert!(sets_above_qids(&many, 2, None).is_some() && sets_above_qids(&many, 3, None).is_none());
    }
}
