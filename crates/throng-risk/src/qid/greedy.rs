//! Sets of high cardinality first ([POD] §4.2.2, Alg. 3): they are likely QIDs, and small ones.
//!
//! A candidate is counted once its summed and its mean cardinality reach the thresholds; until then it is *deferred*, and
//! taken for a non-QID. When a walk through the levels leaves nothing to count, the thresholds are halved, and the
//! deferred sets that no counted non-QID covers are looked at again, larger ones first: a large non-QID settles all its
//! subsets. With thresholds of zero nothing is deferred, so the answer is complete.
//!
//! With a budget, half of it is for this walk. What the walk found is sorted out in one more look at each set, which takes
//! no longer than finding the set has.

use super::exhaustive::joined;
use super::question::{Borders, Progress, Run};
use crate::counting::{AttributeSet, ComputeError};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

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
    let question = run.question;
    let mut walk = Walk {
        run,
        states: BTreeMap::from([(AttributeSet::new(), State::NonQid)]),
        borders: Borders::settled(vec![], vec![]),
        found: 0,
    };
    let columns: Vec<usize> = question.columns.iter().collect();
    let mut cardinalities: Vec<usize> = columns.iter().map(|c| run.cardinalities[*c]).collect();
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
    fn is_over(&self) -> bool {
        self.run.clock.has_reached(self.half())
    }

    fn half(&self) -> Option<Duration> {
        self.run.question.budget.map(|budget| budget / 2)
    }

    /// Notes that time is up.
    fn goes_on(&mut self) -> bool {
        self.borders.complete &= !self.is_over();
        self.borders.complete
    }

    fn reaches(&self, set: &AttributeSet, sum: usize, mean: usize) -> bool {
        let own: usize = set.iter().map(|c| self.run.cardinalities[c]).sum();
        own >= sum && own >= mean * set.len()
    }

    /// Counts what reaches the thresholds and defers the rest, one size after the other.
    fn through_the_levels(&mut self, columns: &[usize], sum: usize, mean: usize) -> Result<(), ComputeError> {
        let mut candidates: Vec<AttributeSet> = columns.iter().map(|c| AttributeSet::from_iter([*c])).collect();
        while !candidates.is_empty() && self.goes_on() {
            let new = |set: &&AttributeSet| !self.states.contains_key(*set);
            let (now, later): (Vec<AttributeSet>, Vec<AttributeSet>) =
                candidates.iter().filter(new).cloned().partition(|set| self.reaches(set, sum, mean));
            self.states.extend(later.into_iter().map(|set| (set, State::Deferred)));
            self.count(&now)?;
            candidates.retain(|set| self.states.get(set).is_some_and(|state| *state != State::Qid));
            if !self.goes_on() {
                break;
            }
            let room = self.run.most_sets().saturating_sub(self.states.len());
            candidates = joined(&candidates, room, &|| self.is_over()).unwrap_or_else(|| {
                self.borders.complete = false;
                self.borders.out_of_memory = !self.is_over();
                vec![]
            });
        }
        Ok(())
    }

    /// Counts the deferred sets that reach the thresholds and that no non-QID covers, one size after the other.
    fn back_from_the_top(&mut self, sum: usize, mean: usize) -> Result<(), ComputeError> {
        let largest = self.states.keys().next_back().map_or(0, AttributeSet::len);
        for size in (1..=largest).rev() {
            if !self.goes_on() {
                break;
            }
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
            if !self.goes_on() {
                break;
            }
            let run = self.run;
            let half = self.half();
            let verdicts = run.counter.judge(batch, run.question.k, &|| run.clock.has_reached(half))?;
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

    /// Every subset of a set looked at was looked at, so one step down or up at a time meets all that is below or above.
    fn finish(mut self) -> Borders {
        let states: HashMap<&AttributeSet, State> = self.states.iter().map(|(set, state)| (set, *state)).collect();
        let mut minimal = Vec::new();
        let mut above: HashSet<&AttributeSet> = HashSet::new();
        for (set, state) in self.states.iter().filter(|(_, state)| **state != State::NonQid) {
            let is_qid = |part: &AttributeSet| states.get(part) == Some(&State::Qid) || above.contains(part);
            if set.iter().any(|c| is_qid(&set.without(c))) {
                above.insert(set);
            } else if *state == State::Qid {
                minimal.push(set.clone());
            }
        }
        let mut maximal = Vec::new();
        let mut covered: HashSet<AttributeSet> = HashSet::new();
        for (set, state) in self.states.iter().rev() {
            let below = covered.contains(set);
            if below || *state == State::NonQid {
                covered.extend(set.iter().map(|c| set.without(c)));
            }
            if !below && *state == State::NonQid {
                maximal.push(set.clone());
            }
        }
        maximal.reverse();
        self.borders.minimal_qids = minimal;
        self.borders.maximal_non_qids = maximal;
        self.borders
    }
}
