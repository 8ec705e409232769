//! The policy of least reconstruction error under a ceiling ([HCE] Alg. 1; docs/methods.md §15.5).
//!
//! Policies are looked at in the order of what generalization alone costs, which bounds what they cost from below: once it is above the
//! best, no other can be better. A policy above the ceiling excludes all its generalizations, as in the paper.

use super::fill::{Asked, Drawing, Filled, Lines, fill};
use super::partition::{Tuples, highest, is_below};
use crate::anonymity::lattice::antichain::{Antichain, Inheritance};
use crate::anonymity::lattice::check::Checker;
use crate::anonymity::lattice::policy::{Lattice, Policy};
use crate::anonymity::lattice::search::{Progress, VISITED};
use crate::anonymity::lattice::settle::Fate;
use crate::anonymity::lattice::table::Records;
use crate::anonymity::lattice::until::Until;
use crate::anonymity::quality::{Densities, Rce};
use rayon::prelude::*;
use std::time::Instant;

/// What is sought.
pub struct Question<'a> {
    /// Judges classes by their true records, and knows how many may be suppressed.
    pub checker: &'a Checker<'a>,
    /// The records of its table; exactly one sensitive attribute.
    pub records: &'a Records,
    /// The ceiling; none: any.
    pub h: Option<f64>,
    /// How classes are filled.
    pub asked: Asked,
    /// What names the class of a row under a policy.
    pub identity: &'a (dyn Fn(&[u8], u32) -> u128 + Sync),
    /// See [`Drawing::seed`].
    pub seed: &'a (dyn Fn(u128, u32) -> u128 + Sync),
    /// See [`Drawing::mark`], of the sensitive values.
    pub mark: &'a (dyn Fn(u32) -> u64 + Sync),
}

/// A policy that keeps everything asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// A level for each quasi attribute.
    pub policy: Policy,
    /// Over all records to be released.
    pub rce: Rce,
    /// Counterfeits that fill its classes.
    pub counterfeits: u64,
    /// Records that do not leave.
    pub suppressed: u64,
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The best first; at most [`KEPT`].
    pub candidates: Vec<Candidate>,
    /// Whether no policy can be better than the first.
    pub complete: bool,
    /// Policies whose classes were looked at.
    pub checked: u64,
}

/// A lattice that is too large to go through.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a ceiling goes through the whole lattice, and this one has more than {VISITED} policies; give hierarchies fewer levels, or remove anonymize.ceiling.lines"
)]
pub struct TooLarge;

/// Candidates kept for where the best turns out to hide too little.
pub const KEPT: usize = 16;
/// Policies looked at side by side: fixed, so that the number of threads changes nothing.
const BATCH: usize = 16;

/// The code of a sensitive value that leaves as `*`.
pub const HIDDEN: u32 = u32::MAX;

/// Searches; `watch` hears of every improvement.
///
/// # Errors
/// When the lattice has more than 2²² policies.
pub fn search(
    question: &Question<'_>,
    until: Until<'_>,
    watch: &(dyn Fn(&Progress) + Sync),
) -> Result<Found, TooLarge> {
    let begun = Instant::now();
    let table = question.checker.table();
    let lattice = table.lattice();
    if lattice.size().is_none_or(|size| size > u128::from(VISITED)) {
        return Err(TooLarge);
    }
    let work = Work::new(question);
    let mut order: Vec<(f64, u32)> =
        (0..).zip(lattice.iter()).map(|(at, policy)| (work.densities.bound(&policy, table.counts()), at)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut too_steep = Antichain::new(Inheritance::Upward, lattice.width());
    let mut found = Found::default();
    let mut rest = order.into_iter();
    loop {
        let best = found.candidates.first().map_or(f64::INFINITY, |best| best.rce.marginal);
        let mut batch: Vec<Policy> = Vec::with_capacity(BATCH);
        let mut over = until.is_over();
        while batch.len() < BATCH && !over {
            let Some((_, at)) = rest.next().filter(|(bound, _)| *bound <= best) else { break };
            let policy = at_position(&lattice, at);
            if !too_steep.covers(&policy) {
                batch.push(policy);
            }
            over = until.is_over();
        }
        if batch.is_empty() || over {
            found.complete = !over;
            return Ok(found);
        }
        let judged: Vec<Verdict> = batch.par_iter().with_max_len(1).map(|policy| work.judge(policy)).collect();
        for (policy, verdict) in batch.iter().zip(judged) {
            match verdict {
                Verdict::TooSteep => drop(too_steep.insert(policy)),
                Verdict::Unfit => found.checked += 1,
                Verdict::Fits(candidate) => {
                    found.checked += 1;
                    found.take(candidate);
                }
            }
        }
        watch(&Progress {
            seconds: begun.elapsed().as_secs_f64(),
            checked: found.checked,
            best: found.candidates.first().map(|best| best.rce.marginal),
            pass: 1,
            left: until.left(),
        });
    }
}

impl Found {
    fn take(&mut self, candidate: Candidate) {
        let before = |other: &Candidate| {
            other.rce.marginal.total_cmp(&candidate.rce.marginal).then(other.policy.cmp(&candidate.policy)).is_lt()
        };
        let place = self.candidates.partition_point(before);
        self.candidates.insert(place, candidate);
        self.candidates.truncate(KEPT);
    }
}

/// The policy at a position in lexicographic order.
fn at_position(lattice: &Lattice, position: u32) -> Policy {
    let mut policy = lattice.bottom();
    let mut rest = position;
    for (level, &top) in policy.iter_mut().zip(lattice.top()).rev() {
        let levels = u32::from(top) + 1;
        *level = (rest % levels) as u8;
        rest /= levels;
    }
    policy
}

enum Verdict {
    TooSteep,
    Unfit,
    Fits(Candidate),
}

/// The lines that would leave by a policy.
pub struct Leaving {
    /// The records.
    pub rows: Vec<u32>,
    /// By line: its class.
    pub class_of: Vec<u32>,
    /// Number of classes.
    pub classes: usize,
}

/// A question with what is counted once.
pub struct Work<'a> {
    question: &'a Question<'a>,
    /// Of the quasi attributes.
    pub densities: Densities,
    released: Vec<u32>,
    tuples: Tuples,
    top: Policy,
}

impl<'a> Work<'a> {
    /// Counts what every policy is asked of.
    pub fn new(question: &'a Question<'a>) -> Self {
        let (table, records) = (question.checker.table(), question.records);
        let released: Vec<u32> = (0..records.len() as u32).filter(|&row| records.is_released(row as usize)).collect();
        Self {
            densities: Densities::new(table.domains(), table.counts()),
            tuples: Tuples::new(&records.quasi, &released),
            released,
            top: table.lattice().top().into(),
            question,
        }
    }

    /// The highest degree of any record to be released.
    pub fn degree(&self, policy: &[u8]) -> f64 {
        let tuples: Vec<u32> = (0..self.tuples.counts.len() as u32).collect();
        highest(self.question.checker.table().domains(), &self.tuples.columns, &tuples, policy)
    }

    /// The lines that leave by a policy before anything is filled.
    pub fn leaving(&self, policy: &[u8]) -> Leaving {
        let settled = self.question.checker.settle(policy, self.question.records);
        let kept = |row: &u32| settled.fates[*row as usize] == Fate::Kept;
        self.lines(policy, self.released.iter().copied().filter(kept).collect())
    }

    /// `rows` as lines of classes.
    pub fn lines(&self, policy: &[u8], rows: Vec<u32>) -> Leaving {
        let (class, classes) = self.tuples.partition(self.question.checker.table().domains(), policy);
        let class_of = rows.iter().map(|&row| class[self.tuples.of[row as usize] as usize]).collect();
        Leaving { rows, class_of, classes }
    }

    /// Fills the classes of lines that show `shown`; `hides` and `mark` are of what is shown.
    pub fn fill(
        &self,
        policy: &[u8],
        leaving: &Leaving,
        shown: &[u32],
        hides: &dyn Fn(u32) -> bool,
        mark: &dyn Fn(u32) -> u64,
    ) -> Filled {
        let domains = self.question.checker.table().domains();
        let coarser = |step: u8| {
            let coarse: Policy =
                policy.iter().zip(&self.top).map(|(&level, &top)| level.saturating_add(step).min(top)).collect();
            // The policy before it was the top already.
            let last = policy.iter().zip(&self.top).all(|(&level, &top)| level.saturating_add(step - 1) >= top);
            (!last || step == 1).then(|| {
                let (class, _) = self.tuples.partition(domains, &coarse);
                leaving.rows.iter().map(|&row| class[self.tuples.of[row as usize] as usize]).collect()
            })
        };
        let drawing = Drawing {
            identity: &|line| (self.question.identity)(policy, leaving.rows[line]),
            seed: &|identity, number| (self.question.seed)(identity, number),
            mark,
            hides,
            coarser: &coarser,
        };
        let lines = Lines { class_of: &leaving.class_of, classes: leaving.classes, shown };
        fill(lines, self.question.asked, drawing)
    }

    /// Reconstruction error of a release: `leaving` without the removed classes of `filled`, all others suppressed. A cell that
    /// `hides` covers `1 / beside` values.
    pub fn rce(
        &self,
        policy: &[u8],
        leaving: &Leaving,
        shown: &[u32],
        filled: &Filled,
        (hides, beside): (&dyn Fn(u32) -> bool, f64),
    ) -> Rce {
        let genuine = filled.genuine();
        let mut sum = Rce::default();
        let mut left = 0;
        for ((&row, class), value) in leaving.rows.iter().zip(&leaving.class_of).zip(shown) {
            if filled.removed.binary_search(class).is_ok() {
                continue;
            }
            left += 1;
            let values = self.question.records.quasi.iter().map(|column| column[row as usize]);
            let beside = if hides(*value) { beside } else { 1.0 };
            let genuine = genuine.get(&(*class, *value)).copied().unwrap_or(1.0);
            sum += self.densities.of_record(values, policy, beside, genuine);
        }
        for _ in left..self.released.len() {
            sum += self.densities.of_suppressed();
        }
        sum
    }

    fn judge(&self, policy: &[u8]) -> Verdict {
        let question = self.question;
        if question.h.is_some_and(|h| !is_below(self.degree(policy), h)) {
            return Verdict::TooSteep;
        }
        if !self.could_be_filled(policy) {
            return Verdict::Unfit;
        }
        let leaving = self.leaving(policy);
        let limit = question.checker.limit();
        let suppressed = (self.released.len() - leaving.rows.len()) as u64;
        if suppressed > limit || leaving.rows.is_empty() {
            return Verdict::Unfit;
        }
        let (column, values) = &question.records.sensitive[0];
        let rare = |value: u32| question.records.rare.first().is_some_and(|rare| rare[value as usize]);
        let shown: Vec<u32> = leaving.rows.iter().map(|&row| column[row as usize]).collect();
        let shown: Vec<u32> = shown.into_iter().map(|value| if rare(value) { HIDDEN } else { value }).collect();
        let hides = |value: u32| value == HIDDEN;
        let mark = |value: u32| if value == HIDDEN { 0 } else { (question.mark)(value) };
        let filled = self.fill(policy, &leaving, &shown, &hides, &mark);
        let gone = leaving.class_of.iter().filter(|class| filled.removed.binary_search(class).is_ok()).count();
        let suppressed = suppressed + gone as u64;
        if suppressed > limit || gone == leaving.rows.len() {
            return Verdict::Unfit;
        }
        let beside = 1.0 / (*values).max(1) as f64;
        let rce = self.rce(policy, &leaving, &shown, &filled, (&hides, beside));
        let (policy, counterfeits) = (policy.into(), filled.counterfeits());
        Verdict::Fits(Candidate { policy, rce, counterfeits, suppressed })
    }

    /// Whether the two budgets together could serve every class below its lines: each takes its share of one of them.
    fn could_be_filled(&self, policy: &[u8]) -> bool {
        let (asked, limit) = (self.question.asked, self.question.checker.limit());
        let (class, classes) = self.tuples.partition(self.question.checker.table().domains(), policy);
        let share = |taken: u32, budget: u64| f64::from(taken) / budget as f64;
        let sizes = self.tuples.sizes(&class, classes);
        let small = sizes.into_iter().filter(|&size| size < asked.lines);
        let taken: f64 = small.map(|size| share(size, limit).min(share(asked.lines - size, asked.most))).sum();
        taken <= f64::from(u8::from(limit > 0) + u8::from(asked.most > 0)) + 1e-9
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
