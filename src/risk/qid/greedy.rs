//! Sets of high cardinality first (dissertation §4.2.2, Alg. 3): they are likely QIDs, and small ones.
//!
//! A candidate is counted once its summed and its mean cardinality reach the thresholds; until then it is *deferred*, and
//! taken for a non-QID. When a walk through the levels leaves nothing to count, the thresholds are halved, and the
//! deferred sets that no counted non-QID covers are looked at again, larger ones first: a large non-QID settles all its
//! subsets. With thresholds of zero nothing is deferred, so the answer is complete.

use super::exhaustive::joined;
use super::{Borders, Progress, Run};
use crate::risk::compute::{AttributeSet, ComputeError};
use std::collections::{BTreeMap, BTreeSet};

/// Sets judged in one call.
const BATCH: usize = 1024;

/// What is known of a set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Deferred,
    NonQid,
    Qid,
}

/// Time: as [`exhaustive`](super::exhaustive), less the subsets of non-QIDs that were found before them. Memory: every
/// set looked at.
pub(super) fn search(run: &Run<'_>) -> Result<Borders, ComputeError> {
    let (table, question) = (run.table, run.question);
    let mut walk = Walk {
        run,
        states: BTreeMap::from([(AttributeSet::new(), State::NonQid)]),
        borders: Borders::settled(vec![], vec![]),
        found: 0,
    };
    let columns: Vec<usize> = question.columns.iter().collect();
    let mut cardinalities: Vec<usize> = columns.iter().map(|c| table.cardinality(*c)).collect();
    cardinalities.sort_unstable();
    let median = cardinalities.get(columns.len() / 2).copied().unwrap_or(0);
    let mut thresholds = Some((2 * median, median));
    while let Some((sum, mean)) = thresholds {
        walk.through_the_levels(&columns, sum, mean)?;
        walk.back_from_the_top(sum, mean)?;
        if !walk.borders.complete {
            break;
        }
        thresholds = (sum > 0).then_some((sum / 2, mean / 2));
    }
    Ok(walk.finish())
}

struct Walk<'a> {
    run: &'a Run<'a>,
    /// In canonical order.
    states: BTreeMap<AttributeSet, State>,
    borders: Borders,
    /// QIDs so far, minimal or not.
    found: usize,
}

impl Walk<'_> {
    fn reaches(&self, set: &AttributeSet, sum: usize, mean: usize) -> bool {
        let own: usize = set.iter().map(|c| self.run.table.cardinality(c)).sum();
        own >= sum && own >= mean * set.len()
    }

    /// Counts what reaches the thresholds and defers the rest, one size after the other.
    fn through_the_levels(&mut self, columns: &[usize], sum: usize, mean: usize) -> Result<(), ComputeError> {
        let mut candidates: Vec<AttributeSet> = columns.iter().map(|c| AttributeSet::from_iter([*c])).collect();
        while !candidates.is_empty() && self.borders.complete {
            let new = |set: &&AttributeSet| !self.states.contains_key(*set);
            let (now, later): (Vec<AttributeSet>, Vec<AttributeSet>) =
                candidates.iter().filter(new).cloned().partition(|set| self.reaches(set, sum, mean));
            self.states.extend(later.into_iter().map(|set| (set, State::Deferred)));
            self.count(&now)?;
            candidates.retain(|set| self.states.get(set).is_some_and(|state| *state != State::Qid));
            if self.run.clock.is_over() {
                self.borders.complete = false;
            }
            candidates = joined(&candidates).unwrap_or_else(|| {
                self.borders.complete = false;
                vec![]
            });
        }
        Ok(())
    }

    /// Counts the deferred sets that reach the thresholds and that no non-QID covers, one size after the other.
    fn back_from_the_top(&mut self, sum: usize, mean: usize) -> Result<(), ComputeError> {
        let largest = self.states.keys().next_back().map_or(0, AttributeSet::len);
        for size in (1..=largest).rev() {
            let of_size = |state: State| {
                let states = self.states.iter().filter(move |(set, s)| set.len() == size && **s == state);
                states.map(|(set, _)| set.clone())
            };
            let deferred: Vec<AttributeSet> =
                of_size(State::Deferred).filter(|set| self.reaches(set, sum, mean)).collect();
            self.count(&deferred)?;
            // What a non-QID covers is one.
            let of_size = self.states.iter().filter(|(set, s)| set.len() == size && **s == State::NonQid);
            let below: BTreeSet<AttributeSet> =
                of_size.flat_map(|(set, _)| set.iter().map(|c| set.without(c)).collect::<Vec<_>>()).collect();
            for set in below {
                if self.states.insert(set, State::NonQid) == Some(State::Deferred) {
                    self.borders.pruned += 1;
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, sets: &[AttributeSet]) -> Result<(), ComputeError> {
        for batch in sets.chunks(BATCH.max(self.run.counter.at_once())) {
            let run = self.run;
            let verdicts = run.counter.judge(batch, run.question.k, &|| run.clock.is_over())?;
            for (set, verdict) in batch.iter().zip(verdicts) {
                let Some(qid) = verdict else {
                    self.borders.complete = false;
                    continue;
                };
                self.borders.evaluated += 1;
                self.found += usize::from(qid);
                self.states.insert(set.clone(), if qid { State::Qid } else { State::NonQid });
            }
            let Borders { evaluated, pruned, .. } = self.borders;
            (run.progress)(Progress { evaluated, pruned, found: self.found, open: sets.len() });
        }
        Ok(())
    }

    fn finish(mut self) -> Borders {
        let sets = |state: State| -> BTreeSet<AttributeSet> {
            self.states.iter().filter(|(_, s)| **s == state).map(|(set, _)| set.clone()).collect()
        };
        let (qids, non_qids) = (sets(State::Qid), sets(State::NonQid));
        let is_minimal = |set: &&AttributeSet| {
            if self.borders.complete {
                set.iter().all(|c| non_qids.contains(&set.without(c)))
            } else {
                !qids.iter().any(|other| other.len() < set.len() && other.is_subset(set))
            }
        };
        let covered: BTreeSet<AttributeSet> =
            non_qids.iter().flat_map(|set| set.iter().map(|c| set.without(c)).collect::<Vec<_>>()).collect();
        let minimal: Vec<AttributeSet> = qids.iter().filter(is_minimal).cloned().collect();
        self.borders.minimal_qids = minimal;
        // Cut short, what is known below a non-QID may not be marked level by level.
        let complete = self.borders.complete;
        let is_maximal = |set: &&AttributeSet| {
            !covered.contains(*set)
                && (complete || !non_qids.iter().any(|other| other.len() > set.len() && set.is_subset(other)))
        };
        self.borders.maximal_non_qids = non_qids.iter().filter(is_maximal).cloned().collect();
        self.borders
    }
}
