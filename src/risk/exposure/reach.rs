//! How little is enough: which records fall to how few attributes, and to which.

use std::time::Instant;

use hashbrown::HashMap;
use rayon::prelude::*;

use super::crowds::{Crowds, split, supports_of};
use super::rows::Rows;
use crate::counting::{AttributeSet, Columns};

/// Row visits that looking may cost: sets × rows. A bound on work and not on time, so that the same table gives the
/// same report on every machine. It bounds the memory too: an eighth of a byte a visit.
const ROW_VISITS: u64 = 500_000_000;

/// Sets of one size that are listed at all.
const SETS: u64 = 1_000_000;

/// Sets between two looks at the clock, about.
const BATCH: usize = 256;

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
/// is not complete, give none.
///
/// Time: the sets that share all but their last attribute split the same classes, and only those that still have
/// support k: what is below k already stays below. Memory: an eighth of a byte a record and set of two sizes.
pub fn reach(
    table: &Columns,
    searched: &AttributeSet,
    qids: Option<&[AttributeSet]>,
    k: u32,
    below_all: u64,
    until: Option<Instant>,
    progress: &dyn Fn(usize, usize),
) -> Reached {
    let attributes: Vec<usize> = searched.iter().collect();
    let mut at_risk = vec![Rows::none(table.rows()); attributes.len()];
    let mut reached = Rows::none(table.rows());
    let mut steps: Vec<Reach> = Vec::new();
    let mut smaller: HashMap<AttributeSet, Rows> = HashMap::new();
    let mut visits = 0;
    for size in 1..=attributes.len() {
        if reached.len() == below_all {
            break;
        }
        let Some(sets) = sets_of(&attributes, size, qids) else { break };
        visits += sets.len() as u64 * table.rows() as u64;
        if visits > ROW_VISITS {
            break;
        }
        let mut larger: HashMap<AttributeSet, Rows> = HashMap::new();
        let mut done = 0;
        for batch in batches(&sets) {
            if until.is_some_and(|until| Instant::now() >= until) {
                return finished(steps, &attributes, &at_risk, false);
            }
            let below: Vec<Vec<Vec<u32>>> = batch.par_iter().map(|family| rows_that_fall(table, family, k)).collect();
            for (set, rows) in batch.iter().copied().flatten().zip(below.into_iter().flatten()) {
                let mut below = Rows::of(&rows, table.rows());
                let mut minimal = below.clone();
                for attribute in set.iter() {
                    if let Some(without) = smaller.get(&set.without(attribute)) {
                        minimal.remove(without);
                        below.add(without);
                    }
                }
                if below.is_empty() {
                    continue;
                }
                reached.add(&below);
                if !minimal.is_empty() {
                    let members =
                        attributes.iter().zip(&mut at_risk).filter(|(attribute, _)| set.contains(**attribute));
                    members.for_each(|(_, rows)| rows.add(&minimal));
                }
                larger.insert(set.clone(), below);
            }
            done += batch.iter().map(|family| family.len()).sum::<usize>();
            progress(done, sets.len());
        }
        steps.push(Reach { size, records: reached.len(), people: reached.people(table) });
        smaller = larger;
    }
    let exhausted = reached.len() == below_all;
    finished(steps, &attributes, &at_risk, exhausted)
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

fn but_last(set: &AttributeSet) -> AttributeSet {
    set.last().map_or_else(AttributeSet::new, |last| set.without(last))
}

/// For each set of a family, the rows that are below k over it and were not over the set without its last attribute.
fn rows_that_fall(table: &Columns, family: &[AttributeSet], k: u32) -> Vec<Vec<u32>> {
    let Some(first) = family.first() else { return Vec::new() };
    let prefix = but_last(first);
    // Combinations have at least one attribute: nobody falls to none, however small the table.
    let k_before = if prefix.is_empty() { 0 } else { k };
    let crowds = Crowds::of(table, &prefix);
    let rows: Vec<u32> =
        (0_u32..).zip(crowds.below(k_before)).filter(|(_, below)| !below).map(|(row, _)| row).collect();
    // Classes that are left, numbered anew.
    let mut numbers = vec![u32::MAX; crowds.supports.len()];
    let mut classes = 0_u32;
    for (number, support) in numbers.iter_mut().zip(&crowds.supports) {
        if *support >= k_before {
            *number = classes;
            classes += 1;
        }
    }
    let class_of: Vec<u32> = rows.iter().map(|&row| numbers[crowds.class_of[row as usize] as usize]).collect();
    let subjects: Option<Vec<u32>> =
        table.subject_numbers().map(|subjects| rows.iter().map(|&row| subjects[row as usize]).collect());
    let fall = |set: &AttributeSet| {
        let Some(last) = set.last() else { return Vec::new() };
        let codes: Vec<u32> = rows.iter().map(|&row| table.column(last)[row as usize]).collect();
        let mut class_of = class_of.clone();
        let classes = split(&mut class_of, classes as usize, &codes, table.cardinality(last));
        let supports = supports_of(&class_of, classes, subjects.as_deref());
        rows.iter().zip(&class_of).filter(|(_, class)| supports[**class as usize] < k).map(|(row, _)| *row).collect()
    };
    family.iter().map(fall).collect()
}

fn finished(steps: Vec<Reach>, attributes: &[usize], at_risk: &[Rows], exhausted: bool) -> Reached {
    let at_risk = attributes.iter().zip(at_risk).map(|(attribute, rows)| (*attribute, rows.len())).collect();
    Reached { steps, at_risk, exhausted }
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
