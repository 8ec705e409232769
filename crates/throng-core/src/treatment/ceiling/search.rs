//! Searches the policy of least reconstruction error under a ceiling (\[HCE] Alg. 1; docs/internals/methods.md §15.5).

use super::fill::{CounterfeitDraw, FillLimits, FilledClasses, TrueLines, fill_classes};
use super::partition::{DistinctTuples, is_within_ceiling, max_degree};
use crate::lattice::antichain::{Antichain, InheritanceDirection};
use crate::lattice::policy::{Lattice, LatticePolicy};
use crate::lattice::policy_check::PolicyChecker;
use crate::lattice::row_decisions::RowDecision;
use crate::lattice::search::{LatticeSearchProgress, MAX_VISITED_POLICIES};
use crate::lattice::search_deadline::SearchDeadline;
use crate::lattice::table::TableRecords;
use crate::quality::{CellDensities, ReconstructionError};
use rayon::prelude::*;
use std::time::Instant;

/// Input of the search.
pub struct CeilingQuery<'a> {
    /// Checker of the true records.
    pub checker: &'a PolicyChecker<'a>,
    /// Records of the table, with one sensitive attribute.
    pub records: &'a TableRecords,
    /// Ceiling; `None`: no limit.
    pub h: Option<f64>,
    /// Limits for filling classes.
    pub fill_limits: FillLimits,
    /// Returns the identity of a row's class under a policy.
    pub identity: &'a (dyn Fn(&[u8], u32) -> u128 + Sync),
    /// See [`CounterfeitDraw::seed`].
    pub seed: &'a (dyn Fn(u128, u32) -> u128 + Sync),
    /// See [`CounterfeitDraw::number_of_value`]; for the sensitive values.
    pub sensitive_number: &'a (dyn Fn(u32) -> u64 + Sync),
}

/// Policy that satisfies all requirements.
#[derive(Clone, Debug, PartialEq)]
pub struct CeilingCandidate {
    /// One level per quasi-identifier.
    pub policy: LatticePolicy,
    /// Reconstruction error over all records to be released.
    pub rce: ReconstructionError,
    /// Number of counterfeits.
    pub counterfeits: u64,
    /// Number of unreleased records.
    pub suppressed: u64,
}

/// Result of the search.
#[derive(Clone, Debug, Default)]
pub struct CeilingOutcome {
    /// Candidates, best first; at most [`MAX_CANDIDATES`].
    pub candidates: Vec<CeilingCandidate>,
    /// Set if no policy is better than the first candidate.
    pub complete: bool,
    /// Number of checked policies.
    pub checked: u64,
}

/// Error for a lattice that is too large.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a ceiling searches the whole lattice, which has more than {MAX_VISITED_POLICIES} policies; give hierarchies fewer levels, or remove anonymize.ceiling.lines"
)]
pub struct LatticeTooLarge;

/// Maximum number of candidates, for the case that the best hides too little.
pub const MAX_CANDIDATES: usize = 16;
/// Fixed, so that the number of threads does not affect the result.
const POLICIES_PER_BATCH: usize = 16;

/// Code of a sensitive value released as `*`.
pub const HIDDEN_VALUE: u32 = u32::MAX;

/// Searches the lattice; calls `watch` after every batch of policies.
///
/// # Errors
/// When the lattice has more than 2²² policies.
pub fn search_under_ceiling(
    question: &CeilingQuery<'_>,
    until: SearchDeadline<'_>,
    watch: &(dyn Fn(&LatticeSearchProgress) + Sync),
) -> Result<CeilingOutcome, LatticeTooLarge> {
    let begun = Instant::now();
    let table = question.checker.table();
    let lattice = table.lattice();
    if lattice.size().is_none_or(|size| size > u128::from(MAX_VISITED_POLICIES)) {
        return Err(LatticeTooLarge);
    }
    let work = CeilingSearch::new(question);
    let mut order: Vec<(f64, u32)> =
        (0..).zip(lattice.iter()).map(|(at, policy)| (work.densities.bound(&policy, table.counts()), at)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut too_steep = Antichain::new(InheritanceDirection::Upward, lattice.width());
    let mut found = CeilingOutcome::default();
    let mut rest = order.into_iter();
    loop {
        let best = found.candidates.first().map_or(f64::INFINITY, |best| best.rce.marginal);
        let mut batch: Vec<LatticePolicy> = Vec::with_capacity(POLICIES_PER_BATCH);
        let mut over = until.must_stop_now();
        while batch.len() < POLICIES_PER_BATCH && !over {
            let Some((_, at)) = rest.next().filter(|(bound, _)| *bound <= best) else { break };
            let policy = policy_at_position(&lattice, at);
            if !too_steep.covers(&policy) {
                batch.push(policy);
            }
            over = until.must_stop_now();
        }
        if batch.is_empty() || over {
            found.complete = !over;
            return Ok(found);
        }
        let judged: Vec<PolicyVerdict> =
            batch.par_iter().with_max_len(1).map(|policy| work.judge_policy(policy)).collect();
        for (policy, verdict) in batch.iter().zip(judged) {
            match verdict {
                PolicyVerdict::AboveCeiling => drop(too_steep.insert(policy)),
                PolicyVerdict::Unsuitable => found.checked += 1,
                PolicyVerdict::Suitable(candidate) => {
                    found.checked += 1;
                    found.insert_candidate(candidate);
                }
            }
        }
        watch(&LatticeSearchProgress {
            seconds: begun.elapsed().as_secs_f64(),
            checked: found.checked,
            best: found.candidates.first().map(|best| best.rce.marginal),
            pass: 1,
            left: until.remaining_time(),
        });
    }
}

impl CeilingOutcome {
    fn insert_candidate(&mut self, candidate: CeilingCandidate) {
        let before = |other: &CeilingCandidate| {
            other.rce.marginal.total_cmp(&candidate.rce.marginal).then(other.policy.cmp(&candidate.policy)).is_lt()
        };
        let place = self.candidates.partition_point(before);
        self.candidates.insert(place, candidate);
        self.candidates.truncate(MAX_CANDIDATES);
    }
}

fn policy_at_position(lattice: &Lattice, position: u32) -> LatticePolicy {
    let mut policy = lattice.bottom();
    let mut rest = position;
    for (level, &top) in policy.iter_mut().zip(lattice.top()).rev() {
        let levels = u32::from(top) + 1;
        *level = (rest % levels) as u8;
        rest /= levels;
    }
    policy
}

enum PolicyVerdict {
    AboveCeiling,
    Unsuitable,
    Suitable(CeilingCandidate),
}

/// Lines that a policy would release.
pub struct ReleasedLines {
    /// Row of each line.
    pub rows: Vec<u32>,
    /// Class of each line.
    pub class_of: Vec<u32>,
    /// Number of classes.
    pub classes: usize,
}

/// Query with the data that all policies share.
pub struct CeilingSearch<'a> {
    question: &'a CeilingQuery<'a>,
    /// Densities of the quasi-identifiers.
    pub densities: CellDensities,
    released: Vec<u32>,
    tuples: DistinctTuples,
    top: LatticePolicy,
}

impl<'a> CeilingSearch<'a> {
    /// Computes the shared data.
    pub fn new(question: &'a CeilingQuery<'a>) -> Self {
        let (table, records) = (question.checker.table(), question.records);
        let released: Vec<u32> = (0..records.len() as u32).filter(|&row| records.is_released(row as usize)).collect();
        Self {
            densities: CellDensities::new(table.domains(), table.counts()),
            tuples: DistinctTuples::new(&records.quasi, &released),
            released,
            top: table.lattice().top().into(),
            question,
        }
    }

    /// Returns the highest degree of a record to be released.
    pub fn highest_record_degree(&self, policy: &[u8]) -> f64 {
        let tuples: Vec<u32> = (0..self.tuples.counts.len() as u32).collect();
        max_degree(self.question.checker.table().domains(), &self.tuples.columns, &tuples, policy)
    }

    /// Returns the lines of a policy before filling.
    pub fn released_lines(&self, policy: &[u8]) -> ReleasedLines {
        let settled = self.question.checker.decide_records(policy, self.question.records);
        let kept = |row: &u32| settled.decision_by_row[*row as usize] == RowDecision::ClassReleased;
        self.group_lines(policy, self.released.iter().copied().filter(kept).collect())
    }

    /// Returns `rows` as lines with their classes.
    pub fn group_lines(&self, policy: &[u8], rows: Vec<u32>) -> ReleasedLines {
        let (class, classes) = self.tuples.partition(self.question.checker.table().domains(), policy);
        let class_of = rows.iter().map(|&row| class[self.tuples.tuple_of_row[row as usize] as usize]).collect();
        ReleasedLines { rows, class_of, classes }
    }

    /// Fills the classes of lines that show `shown`.
    pub fn fill_lines(
        &self,
        policy: &[u8],
        leaving: &ReleasedLines,
        shown: &[u32],
        hides: &dyn Fn(u32) -> bool,
        mark: &dyn Fn(u32) -> u64,
    ) -> FilledClasses {
        let domains = self.question.checker.table().domains();
        let coarser = |step: u8| {
            let coarse: LatticePolicy =
                policy.iter().zip(&self.top).map(|(&level, &top)| level.saturating_add(step).min(top)).collect();
            // The previous policy was already the top.
            let last = policy.iter().zip(&self.top).all(|(&level, &top)| level.saturating_add(step - 1) >= top);
            (!last || step == 1).then(|| {
                let (class, _) = self.tuples.partition(domains, &coarse);
                leaving.rows.iter().map(|&row| class[self.tuples.tuple_of_row[row as usize] as usize]).collect()
            })
        };
        let drawing = CounterfeitDraw {
            identity: &|line| (self.question.identity)(policy, leaving.rows[line]),
            seed: &|identity, number| (self.question.seed)(identity, number),
            number_of_value: mark,
            is_inexact: hides,
            coarser_classes: &coarser,
        };
        let lines = TrueLines { class_of: &leaving.class_of, classes: leaving.classes, shown };
        fill_classes(lines, self.question.fill_limits, drawing)
    }

    /// Returns the reconstruction error of `released_lines` without the removed classes of `filled`.
    ///
    /// An inexact cell has the density of the second element.
    pub fn rce(
        &self,
        policy: &[u8],
        leaving: &ReleasedLines,
        shown: &[u32],
        filled: &FilledClasses,
        (hides, beside): (&dyn Fn(u32) -> bool, f64),
    ) -> ReconstructionError {
        let genuine = filled.truth_probabilities();
        let mut sum = ReconstructionError::default();
        let mut left = 0;
        for ((&row, class), value) in leaving.rows.iter().zip(&leaving.class_of).zip(shown) {
            if filled.removed.binary_search(class).is_ok() {
                continue;
            }
            left += 1;
            let values = self.question.records.quasi.iter().map(|column| column[row as usize]);
            let beside = if hides(*value) { beside } else { 1.0 };
            let genuine = genuine.get(&(*class, *value)).copied().unwrap_or(1.0);
            sum += self.densities.record_error(values, policy, beside, genuine);
        }
        for _ in left..self.released.len() {
            sum += self.densities.suppressed_record_error();
        }
        sum
    }

    fn judge_policy(&self, policy: &[u8]) -> PolicyVerdict {
        let question = self.question;
        if question.h.is_some_and(|h| !is_within_ceiling(self.highest_record_degree(policy), h)) {
            return PolicyVerdict::AboveCeiling;
        }
        if !self.limits_can_suffice(policy) {
            return PolicyVerdict::Unsuitable;
        }
        let leaving = self.released_lines(policy);
        let limit = question.checker.limit();
        let suppressed = (self.released.len() - leaving.rows.len()) as u64;
        if suppressed > limit || leaving.rows.is_empty() {
            return PolicyVerdict::Unsuitable;
        }
        let (column, values) = &question.records.sensitive[0];
        let rare = |value: u32| question.records.rare.first().is_some_and(|rare| rare[value as usize]);
        let shown: Vec<u32> = leaving.rows.iter().map(|&row| column[row as usize]).collect();
        let shown: Vec<u32> = shown.into_iter().map(|value| if rare(value) { HIDDEN_VALUE } else { value }).collect();
        let hides = |value: u32| value == HIDDEN_VALUE;
        let mark = |value: u32| if value == HIDDEN_VALUE { 0 } else { (question.sensitive_number)(value) };
        let filled = self.fill_lines(policy, &leaving, &shown, &hides, &mark);
        let gone = leaving.class_of.iter().filter(|class| filled.removed.binary_search(class).is_ok()).count();
        let suppressed = suppressed + gone as u64;
        if suppressed > limit || gone == leaving.rows.len() {
            return PolicyVerdict::Unsuitable;
        }
        let beside = 1.0 / (*values).max(1) as f64;
        let rce = self.rce(policy, &leaving, &shown, &filled, (&hides, beside));
        let (policy, counterfeits) = (policy.into(), filled.counterfeits());
        PolicyVerdict::Suitable(CeilingCandidate { policy, rce, counterfeits, suppressed })
    }

    /// Each class with too few lines takes the smaller share of one of both limits.
    fn limits_can_suffice(&self, policy: &[u8]) -> bool {
        let (asked, limit) = (self.question.fill_limits, self.question.checker.limit());
        let (class, classes) = self.tuples.partition(self.question.checker.table().domains(), policy);
        let share = |taken: u32, budget: u64| f64::from(taken) / budget as f64;
        let sizes = self.tuples.sizes(&class, classes);
        let small = sizes.into_iter().filter(|&size| size < asked.min_lines);
        let taken: f64 =
            small.map(|size| share(size, limit).min(share(asked.min_lines - size, asked.max_counterfeits))).sum();
        taken <= f64::from(u8::from(limit > 0) + u8::from(asked.max_counterfeits > 0)) + 1e-9
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
