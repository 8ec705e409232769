//! Reference strategy: level by level without supersets of QIDs.

use super::search_request::{MAX_LEVEL_SETS, QidBorders, QidSearchContext, QidSearchProgress};
use crate::counting::{AttributeSet, ComputeError};
use std::collections::HashSet;

const SETS_PER_THREAD: usize = 256;

/// Time: one group-by per non-QID and minimal QID. Memory: the sets of two levels, and the answer.
pub(super) fn search(run: &QidSearchContext<'_>) -> Result<QidBorders, ComputeError> {
    let QidSearchContext { counter, question, clock, progress, .. } = *run;
    let mut borders = QidBorders::of_finished_search(vec![], vec![]);
    let mut level = vec![AttributeSet::new()];
    let mut candidates: Vec<AttributeSet> = question.columns.iter().map(|c| AttributeSet::from_iter([c])).collect();
    while !candidates.is_empty() {
        let mut next = Vec::new();
        for batch in candidates.chunks((SETS_PER_THREAD * question.threads.max(1)).max(counter.preferred_batch_size()))
        {
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
            progress(QidSearchProgress {
                evaluated: borders.evaluated,
                pruned: 0,
                found,
                open: candidates.len() - batch.len(),
            });
        }
        borders.maximal_non_qids.extend(uncovered(level, &next));
        level = next;
        if !borders.complete {
            break;
        }
        let held = level.len() + borders.minimal_qids.len() + borders.maximal_non_qids.len();
        let room = run.max_held_sets().saturating_sub(held);
        candidates = next_candidates(&level, room, &|| clock.is_over()).unwrap_or_else(|| {
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

/// Returns sets without a superset in the next level.
pub(super) fn uncovered(level: Vec<AttributeSet>, next: &[AttributeSet]) -> impl Iterator<Item = AttributeSet> + use<> {
    let covered: HashSet<AttributeSet> = next.iter().flat_map(|set| set.iter().map(|a| set.without(a))).collect();
    level.into_iter().filter(move |set| !covered.contains(set))
}

/// Returns the sets one larger with all subsets in the level, both in canonical order.
///
/// `None` above `most` or [`MAX_LEVEL_SETS`], or if stopped.
pub(super) fn next_candidates(
    level: &[AttributeSet],
    most: usize,
    stop: &dyn Fn() -> bool,
) -> Option<Vec<AttributeSet>> {
    let most = most.min(MAX_LEVEL_SETS);
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
