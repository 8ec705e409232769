//! Greedy strategy: checks sets of high cardinality first (\[POD] §4.2.2, Alg. 3).
//!
//! A candidate is *deferred* as a non-QID until the sum and mean of its cardinalities reach thresholds. Each pass
//! halves them and rechecks uncovered deferred sets. At zero the answer is complete.
//!
//! The search takes half of a time limit; extracting the borders takes at most as long.

use super::exhaustive::next_candidates;
use super::search_request::{QidBorders, QidSearchContext, QidSearchProgress};
use crate::counting::{AttributeSet, ComputeError};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

const GREEDY_SETS_PER_CALL: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum GreedySetState {
    Deferred,
    NonQid,
    Qid,
}

/// Memory: every checked set.
pub(super) fn search(run: &QidSearchContext<'_>) -> Result<QidBorders, ComputeError> {
    let question = run.question;
    let mut walk = GreedySearch {
        run,
        states: BTreeMap::from([(AttributeSet::new(), GreedySetState::NonQid)]),
        borders: QidBorders::of_finished_search(vec![], vec![]),
        found: 0,
    };
    let columns: Vec<usize> = question.columns.iter().collect();
    let mut cardinalities: Vec<usize> = columns.iter().map(|c| run.cardinalities[*c]).collect();
    cardinalities.sort_unstable();
    let median = cardinalities.get(columns.len() / 2).copied().unwrap_or(0);
    let mut thresholds = Some((2 * median, median));
    while let Some((sum, mean)) = thresholds {
        walk.count_levels(&columns, sum, mean)?;
        walk.recheck_deferred(sum, mean)?;
        if !walk.borders.complete {
            break;
        }
        thresholds = (sum > 0).then_some((sum / 2, mean / 2));
    }
    Ok(walk.extract_borders())
}

struct GreedySearch<'a> {
    run: &'a QidSearchContext<'a>,
    states: BTreeMap<AttributeSet, GreedySetState>,
    borders: QidBorders,
    found: usize,
}

impl GreedySearch<'_> {
    fn is_over(&self) -> bool {
        self.run.clock.has_reached(self.half_budget())
    }

    fn half_budget(&self) -> Option<Duration> {
        self.run.question.budget.map(|budget| budget / 2)
    }

    fn check_time(&mut self) -> bool {
        self.borders.complete &= !self.is_over();
        self.borders.complete
    }

    fn reaches_thresholds(&self, set: &AttributeSet, sum: usize, mean: usize) -> bool {
        let own: usize = set.iter().map(|c| self.run.cardinalities[c]).sum();
        own >= sum && own >= mean * set.len()
    }

    fn count_levels(&mut self, columns: &[usize], sum: usize, mean: usize) -> Result<(), ComputeError> {
        let mut candidates: Vec<AttributeSet> = columns.iter().map(|c| AttributeSet::from_iter([*c])).collect();
        while !candidates.is_empty() && self.check_time() {
            let new = |set: &&AttributeSet| !self.states.contains_key(*set);
            let (now, later): (Vec<AttributeSet>, Vec<AttributeSet>) =
                candidates.iter().filter(new).cloned().partition(|set| self.reaches_thresholds(set, sum, mean));
            self.states.extend(later.into_iter().map(|set| (set, GreedySetState::Deferred)));
            self.count(&now)?;
            candidates.retain(|set| self.states.get(set).is_some_and(|state| *state != GreedySetState::Qid));
            if !self.check_time() {
                break;
            }
            let room = self.run.max_held_sets().saturating_sub(self.states.len());
            candidates = next_candidates(&candidates, room, &|| self.is_over()).unwrap_or_else(|| {
                self.borders.complete = false;
                self.borders.out_of_memory = !self.is_over();
                vec![]
            });
        }
        Ok(())
    }

    /// Checks larger sets first.
    fn recheck_deferred(&mut self, sum: usize, mean: usize) -> Result<(), ComputeError> {
        let largest = self.states.keys().next_back().map_or(0, AttributeSet::len);
        for size in (1..=largest).rev() {
            if !self.check_time() {
                break;
            }
            let of_size = |state: GreedySetState| {
                let states = self.states.iter().filter(move |(set, s)| set.len() == size && **s == state);
                states.map(|(set, _)| set.clone())
            };
            let deferred: Vec<AttributeSet> =
                of_size(GreedySetState::Deferred).filter(|set| self.reaches_thresholds(set, sum, mean)).collect();
            self.count(&deferred)?;
            // Subsets of non-QIDs are non-QIDs.
            let of_size = self.states.iter().filter(|(set, s)| set.len() == size && **s == GreedySetState::NonQid);
            let below: BTreeSet<AttributeSet> =
                of_size.flat_map(|(set, _)| set.iter().map(|c| set.without(c)).collect::<Vec<_>>()).collect();
            for set in below {
                if self.states.insert(set, GreedySetState::NonQid) == Some(GreedySetState::Deferred) {
                    self.borders.pruned += 1;
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, sets: &[AttributeSet]) -> Result<(), ComputeError> {
        for batch in sets.chunks(GREEDY_SETS_PER_CALL.max(self.run.counter.preferred_batch_size())) {
            if !self.check_time() {
                break;
            }
            let run = self.run;
            let half = self.half_budget();
            let verdicts = run.counter.judge(batch, run.question.k, &|| run.clock.has_reached(half))?;
            for (set, verdict) in batch.iter().zip(verdicts) {
                let Some(qid) = verdict else {
                    self.borders.complete = false;
                    continue;
                };
                self.borders.evaluated += 1;
                self.found += usize::from(qid);
                self.states.insert(set.clone(), if qid { GreedySetState::Qid } else { GreedySetState::NonQid });
            }
            let QidBorders { evaluated, pruned, .. } = self.borders;
            (run.progress)(QidSearchProgress { evaluated, pruned, found: self.found, open: sets.len() });
        }
        Ok(())
    }

    /// Subsets of checked sets were checked, so single steps reach all sets.
    fn extract_borders(mut self) -> QidBorders {
        let states: HashMap<&AttributeSet, GreedySetState> =
            self.states.iter().map(|(set, state)| (set, *state)).collect();
        let mut minimal = Vec::new();
        let mut above: HashSet<&AttributeSet> = HashSet::new();
        for (set, state) in self.states.iter().filter(|(_, state)| **state != GreedySetState::NonQid) {
            let is_qid = |part: &AttributeSet| states.get(part) == Some(&GreedySetState::Qid) || above.contains(part);
            if set.iter().any(|c| is_qid(&set.without(c))) {
                above.insert(set);
            } else if *state == GreedySetState::Qid {
                minimal.push(set.clone());
            }
        }
        let mut maximal = Vec::new();
        let mut covered: HashSet<AttributeSet> = HashSet::new();
        for (set, state) in self.states.iter().rev() {
            let below = covered.contains(set);
            if below || *state == GreedySetState::NonQid {
                covered.extend(set.iter().map(|c| set.without(c)));
            }
            if !below && *state == GreedySetState::NonQid {
                maximal.push(set.clone());
            }
        }
        maximal.reverse();
        self.borders.minimal_qids = minimal;
        self.borders.maximal_non_qids = maximal;
        self.borders
    }
}
