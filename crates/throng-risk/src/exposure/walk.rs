//! All sets of 1, 2, … attributes, and the records that each of them leaves below k first.

use crate::counting::{AttributeSet, CpuCounter, RowSet};
use hashbrown::HashMap;
use rayon::prelude::*;
use std::time::Instant;

/// Row visits that looking may cost: sets × rows. A bound on work and not on time, so that the same table gives the
/// same report on every machine. It bounds the memory too: an eighth of a byte a visit.
const ROW_VISITS: u64 = 500_000_000;

/// Sets of one size that are listed at all.
const SETS: u64 = 1_000_000;

/// Sets between two looks at the clock, about.
const BATCH: usize = 256;

/// What is looked at, and for how long.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    /// Counts the table; a file that fails is remembered there.
    pub counter: &'a CpuCounter<'a>,
    /// Minimal QIDs: sets that are above none of them leave nobody below k and are not looked at. Where that list is not
    /// complete, none.
    pub qids: Option<&'a [AttributeSet]>,
    /// The support that is enough.
    pub k: u32,
    /// When the time is up.
    pub until: Option<Instant>,
    /// Told the sets of a size that are done, and how many there are.
    pub progress: &'a dyn Fn(usize, usize),
}

/// A walk through the sets, size by size.
///
/// Time: the sets that share all but their last attribute split the same classes, and only those that still have
/// support k: what is below k already stays below. Memory: an eighth of a byte a record and set of two sizes.
pub(super) struct Walk<'a> {
    scope: Scope<'a>,
    /// Ascending.
    pub attributes: Vec<usize>,
    /// Attributes of a set, as far as was looked.
    pub size: usize,
    visits: u64,
    /// The records below k over each set of that size.
    below: HashMap<AttributeSet, RowSet>,
}

impl<'a> Walk<'a> {
    pub fn new(scope: Scope<'a>, searched: &AttributeSet) -> Self {
        Self { scope, attributes: searched.iter().collect(), size: 0, visits: 0, below: HashMap::new() }
    }

    /// Looks at all sets of the next size. `each` is given every set that is *minimal* for some records, and these: they are
    /// below k over the set and over no part of it. False where there is no such size, or the work or the time was used up
    /// before its end; nothing may be asked after that.
    pub fn step(&mut self, each: &mut dyn FnMut(&AttributeSet, &RowSet)) -> bool {
        let Scope { counter, qids, k, until, progress } = self.scope;
        if self.size == self.attributes.len() {
            return false;
        }
        let Some(sets) = sets_of(&self.attributes, self.size + 1, qids) else { return false };
        self.visits += sets.len() as u64 * counter.table().rows() as u64;
        if self.visits > ROW_VISITS {
            return false;
        }
        let mut larger: HashMap<AttributeSet, RowSet> = HashMap::new();
        let mut done = 0;
        for batch in batches(&sets) {
            if until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
            let parts = &self.below;
            let of_family = |family: &&[AttributeSet]| below_each(counter, parts, family, k);
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

/// For each set of a family, which shares all but the last attribute: the records below k over it, and those of them that are below k over
/// no part of it; `parts` are the records below k over the sets that are one smaller.
fn below_each(
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
    counter.remember(counter.below_each(family, &known, k, &mut |at, row, _| found[at].insert(row)));
    let minimal_too = |(mut below, mut minimal): (RowSet, RowSet)| {
        minimal.remove(&below);
        below.add(&minimal);
        (below, minimal)
    };
    known.into_iter().zip(found).map(minimal_too).collect()
}

/// Distinct people of some rows, or the rows where nobody is named.
pub(super) fn people(counter: &CpuCounter<'_>, rows: &RowSet) -> u64 {
    let table = counter.table();
    if table.subjects().is_none() {
        return rows.len();
    }
    let mut seen = RowSet::none(table.support());
    counter.remember(counter.each_person(|row, person| {
        if rows.contains(row) {
            seen.insert(person);
        }
    }));
    seen.len()
}

/// The set without its last attribute.
fn but_last(set: &AttributeSet) -> AttributeSet {
    set.last().map_or_else(AttributeSet::new, |last| set.without(last))
}

/// Sets that share all but their last attribute, some such families at a time.
fn batches(sets: &[AttributeSet]) -> Vec<Vec<&[AttributeSet]>> {
    let mut batches: Vec<Vec<&[AttributeSet]>> = Vec::new();
    let mut count = BATCH;
    for family in sets.chunk_by(|a, b| but_last(a) == but_last(b)) {
        if count >= BATCH {
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

/// Every set of `size` attributes that is above a QID, in canonical order; none where they would be too many.
fn sets_of(attributes: &[usize], size: usize, qids: Option<&[AttributeSet]>) -> Option<Vec<AttributeSet>> {
    let all = (0..size as u64)
        .try_fold(1_u64, |n, i| Some(n.checked_mul(attributes.len() as u64 - i)? / (i + 1)).filter(|n| *n <= SETS));
    all?;
    let relevant: Option<Vec<&AttributeSet>> = qids.map(|qids| qids.iter().filter(|qid| qid.len() <= size).collect());
    let mut sets = Vec::new();
    let mut chosen: Vec<usize> = (0..size).collect();
    loop {
        let set: AttributeSet = chosen.iter().map(|&place| attributes[place]).collect();
        if relevant.as_ref().is_none_or(|qids| qids.iter().any(|qid| qid.is_subset(&set))) {
            sets.push(set);
        }
        // The last place that can still move up, and those behind it right after.
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
    fn sets_come_in_canonical_order_and_only_above_qids() {
        let of = |sets: &[&[usize]]| sets.iter().map(|s| s.iter().copied().collect()).collect::<Vec<AttributeSet>>();
        let sets = sets_of(&[1, 4, 5, 9], 2, None).expect("few");
        assert_eq!(sets, of(&[&[1, 4], &[1, 5], &[1, 9], &[4, 5], &[4, 9], &[5, 9]]));
        assert_eq!(sets_of(&[1, 4], 2, None).expect("one"), of(&[&[1, 4]]));
        let qids = of(&[&[4], &[1, 9], &[1, 5, 9]]);
        assert_eq!(sets_of(&[1, 4, 5, 9], 2, Some(&qids)).expect("few"), of(&[&[1, 4], &[1, 9], &[4, 5], &[4, 9]]));
        let many: Vec<usize> = (0..1024).collect();
        assert_eq!(sets_of(&many, 1, None).map(|sets| sets.len()), Some(1024));
        assert!(sets_of(&many, 2, None).is_some() && sets_of(&many, 3, None).is_none());
    }
}
