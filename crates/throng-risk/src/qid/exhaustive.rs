//! Level by level: all sets of one size that no known QID is a subset of, then the next size. The reference.

use super::question::{Borders, MOST_SETS, Progress, Run};
use crate::counting::{AttributeSet, ComputeError};
use std::collections::HashSet;

/// Sets asked in one call: between two calls the clock is read.
const BATCH: usize = 256;

/// Counts every set whose subsets are all non-QIDs.
///
/// Time: one group-by over the rows a set counted, as many as there are non-QIDs and minimal QIDs together.
/// Memory: the sets of two levels, and the answer.
pub(super) fn search(run: &Run<'_>) -> Result<Borders, ComputeError> {
    let Run { counter, question, clock, progress, .. } = *run;
    let mut borders = Borders::settled(vec![], vec![]);
    let mut level = vec![AttributeSet::new()];
    let mut candidates: Vec<AttributeSet> = question.columns.iter().map(|c| AttributeSet::from_iter([c])).collect();
    while !candidates.is_empty() {
        let mut next = Vec::new();
        for batch in candidates.chunks((BATCH * question.threads.max(1)).max(counter.at_once())) {
            if clock.is_over() {
                borders.complete = false;
                break;
            }
            let counts = counter.count(batch, question.k)?;
            for (set, count) in batch.iter().zip(counts) {
                if count.is_qid() { borders.minimal_qids.push(set.clone()) } else { next.push(set.clone()) }
            }
            borders.evaluated += batch.len() as u64;
            let found = borders.minimal_qids.len();
            progress(Progress { evaluated: borders.evaluated, pruned: 0, found, open: candidates.len() - batch.len() });
        }
        borders.maximal_non_qids.extend(uncovered(level, &next));
        level = next;
        if !borders.complete {
            break;
        }
        let held = level.len() + borders.minimal_qids.len() + borders.maximal_non_qids.len();
        let room = run.most_sets().saturating_sub(held);
        candidates = joined(&level, room, &|| clock.is_over()).unwrap_or_else(|| {
            borders.complete = false;
            borders.out_of_memory = !clock.is_over();
            vec![]
        });
    }
    borders.maximal_non_qids.extend(level);
    borders.minimal_qids.sort_unstable();
    borders.maximal_non_qids.sort_unstable();
    Ok(borders)
}

/// The sets of a level that are subsets of none of the next.
pub(super) fn uncovered(level: Vec<AttributeSet>, next: &[AttributeSet]) -> impl Iterator<Item = AttributeSet> + use<> {
    let covered: HashSet<AttributeSet> = next.iter().flat_map(|set| set.iter().map(|a| set.without(a))).collect();
    level.into_iter().filter(move |set| !covered.contains(set))
}

/// All sets one larger whose subsets are all in the level; `None` beyond `most` and [`MOST_SETS`], or where `stop` was true
/// before all were found. The level is in canonical order, and so is what comes.
pub(super) fn joined(level: &[AttributeSet], most: usize, stop: &dyn Fn() -> bool) -> Option<Vec<AttributeSet>> {
    let most = most.min(MOST_SETS);
    let known: HashSet<&AttributeSet> = level.iter().collect();
    let prefix = |set: &AttributeSet| set.last().map(|last| set.without(last));
    let mut candidates = Vec::new();
    for family in level.chunk_by(|a, b| prefix(a) == prefix(b)) {
        for (at, set) in family.iter().enumerate() {
            if candidates.len() > most || stop() {
                return None;
            }
            for other in &family[at + 1..] {
                let candidate = set.union(other);
                if candidate.iter().all(|a| known.contains(&candidate.without(a))) {
                    candidates.push(candidate);
                }
            }
        }
    }
    Some(candidates)
}
