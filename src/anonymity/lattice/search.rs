//! The search for the admissible policy of least cost: what all strategies share.
//!
//! Every strategy decides an order; what may be left out is decided here, by two conclusions that are always sound ([FL2] §2.4–2.7):
//! too many records are lost for every specialisation, and a bound from generalization alone is beaten already. All exact strategies return the same policy: the least cost, then the least
//! sum of levels, then the first in lexicographic order.

use super::antichain::{Antichain, Inheritance};
use super::check::{Checker, Outcome};
use super::policy::{Lattice, Policy, rank};
use super::until::Until;
pub use crate::config::Strategy;
use rayon::prelude::*;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A search that cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum SearchError {
    #[error("strategy {strategy} goes through the whole lattice, and this one has more than {limit} policies; use bfs")]
    TooLarge { strategy: &'static str, limit: u64 },
}

/// Policies that a strategy which visits all of them may have.
pub const VISITED: u64 = 1 << 22;

/// How the search is going.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Seconds since the search began.
    pub seconds: f64,
    /// Policies checked so far.
    pub checked: u64,
    /// The measure of the best policy so far, as shown.
    pub best: Option<f64>,
    /// Which of several passes searches, from 1.
    pub pass: usize,
    /// Time left for everything, where it is limited and somebody tells.
    pub left: Option<Duration>,
}

/// The best policy of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// A level for each attribute.
    pub policy: Policy,
    /// Of the search's measure; see [`Measure::shown`](crate::anonymity::quality::Measure::shown).
    pub cost: f64,
    /// Records to be released that it suppresses.
    pub suppressed: u64,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// None if no policy is admissible, or none was found in time.
    pub best: Option<Best>,
    /// Whether every policy was checked or excluded: the best is the optimum.
    pub complete: bool,
    /// Policies checked.
    pub checked: u64,
    /// Seconds that the search took.
    pub seconds: f64,
    /// Every improvement.
    pub history: Vec<Progress>,
    /// Memory of what was known of the lattice, at its largest.
    pub knowledge_bytes: usize,
}

/// The state of a search.
pub(super) struct Search<'a> {
    pub checker: &'a Checker<'a>,
    pub lattice: Lattice,
    /// Policies whose specialisations lose too many records.
    pub lost: Antichain,
    /// Policies whose generalizations are beaten, where levels alone do not tell.
    beaten: Antichain,
    pub best: Option<Best>,
    pub checked: u64,
    begun: Instant,
    until: Until<'a>,
    history: Vec<Progress>,
    /// By position: records lost by a policy and all its specialisations; of checked policies, and handed down.
    losses: HashMap<u128, u64>,
    watch: &'a (dyn Fn(&Progress) + Sync),
    reported: Instant,
}

/// Policies checked side by side: fixed, so that the number of threads changes nothing.
pub(super) const BATCH: usize = 16;
/// Losses remembered at most.
const REMEMBERED: usize = 1 << 21;
/// How often the watcher hears of a search that does not improve.
const TELL: Duration = Duration::from_millis(200);

impl<'a> Search<'a> {
    /// A search of which nothing is known yet.
    pub fn new(checker: &'a Checker<'a>, until: Until<'a>, watch: &'a (dyn Fn(&Progress) + Sync)) -> Self {
        let (lattice, begun) = (checker.lattice(), Instant::now());
        Self {
            checker,
            lost: Antichain::new(Inheritance::Downward, lattice.width()),
            beaten: Antichain::new(Inheritance::Upward, lattice.width()),
            lattice,
            best: None,
            checked: 0,
            begun,
            until,
            history: Vec::new(),
            losses: HashMap::new(),
            watch,
            reported: begun,
        }
    }

    /// What was found; `complete`: every policy was checked or excluded.
    pub fn found(self, complete: bool) -> Found {
        let losses = self.losses.capacity() * size_of::<(u128, u64)>();
        Found {
            best: self.best,
            complete,
            checked: self.checked,
            seconds: self.begun.elapsed().as_secs_f64(),
            history: self.history,
            knowledge_bytes: self.lost.bytes() + self.beaten.bytes() + losses,
        }
    }
}

impl Search<'_> {
    /// Whether the time is up, or somebody stops it.
    pub fn over(&self) -> bool {
        self.until.is_over()
    }

    /// Whether a policy with this bound and rank cannot be better than the best.
    fn beats(&self, bound: f64, policy: &[u8]) -> bool {
        self.best.as_ref().is_some_and(|best| {
            bound > best.cost
                || bound == best.cost && (rank(policy), policy) > (rank(&best.policy), best.policy.as_ref())
        })
    }

    /// Whether no extension of a policy whose first attributes are as in `least`, and the rest between `least` and
    /// `greatest`, needs a check.
    pub fn excludes_between(&self, least: &[u8], greatest: &[u8]) -> bool {
        let beaten = self.best.as_ref().is_some_and(|best| self.checker.bound(least, 0) > best.cost);
        beaten || self.beaten.covers(least) || self.lost.covers(greatest)
    }

    /// Whether `policy` needs no check: it is known not to be admissible, or not to be better than the best.
    pub fn excludes(&self, policy: &[u8]) -> bool {
        self.best.is_some() && self.beats(self.checker.bound(policy, 0), policy)
            || self.beaten.covers(policy)
            || self.lost.covers(policy)
    }

    fn known_loss(&self, policy: &[u8]) -> Option<u64> {
        self.lattice.position(policy).and_then(|position| self.losses.get(&position)).copied()
    }

    fn remember(&mut self, policy: &[u8], lost: u64) {
        if self.losses.len() < REMEMBERED {
            self.losses.extend(self.lattice.position(policy).map(|position| (position, lost)));
        }
    }

    /// Whether `policy` has been checked, or excluded for what it loses, as far as that is remembered.
    pub fn is_settled(&self, policy: &[u8]) -> bool {
        self.known_loss(policy).is_some()
    }

    /// Whether it needs no check after what the policies one level above have lost. Remembers it for those below.
    pub fn excludes_after_those_above(&mut self, policy: &[u8]) -> bool {
        let above = self.lattice.generalizations(policy);
        let lost = above.filter_map(|x| self.known_loss(&x)).max().unwrap_or(0);
        let excluded = lost > self.checker.limit()
            || lost > 0 && self.best.is_some() && self.beats(self.checker.bound(policy, lost), policy);
        if excluded {
            self.remember(policy, lost);
        }
        excluded
    }

    /// Checks policies side by side and learns from them, in their order.
    pub fn check(&mut self, policies: &[Policy]) -> Vec<Outcome> {
        let checker = self.checker;
        let outcomes: Vec<Outcome> = if policies.len() == 1 {
            vec![checker.check(&policies[0])]
        } else {
            policies.par_iter().with_max_len(1).map(|policy| checker.check(policy)).collect()
        };
        for (policy, outcome) in policies.iter().zip(&outcomes) {
            self.learn(policy, outcome);
        }
        if self.reported.elapsed() >= TELL {
            self.tell();
        }
        outcomes
    }

    fn learn(&mut self, policy: &Policy, outcome: &Outcome) {
        self.checked += 1;
        if outcome.failing > self.checker.limit() {
            self.lost.insert(policy);
            return;
        }
        self.remember(policy, outcome.failing);
        if outcome.admissible && !self.beats(outcome.cost, policy) {
            self.best = Some(Best { policy: policy.clone(), cost: outcome.cost, suppressed: outcome.suppressed });
            let progress = self.progress();
            self.history.push(progress);
            self.tell();
        }
        if !self.checker.measure().is_of_cells() && self.best.as_ref().is_some_and(|best| outcome.bound > best.cost) {
            self.beaten.insert(policy);
        }
    }

    fn progress(&self) -> Progress {
        let measure = self.checker.measure();
        let shown = |best: &Best| measure.shown(best.cost, self.lattice.width());
        Progress {
            seconds: self.begun.elapsed().as_secs_f64(),
            checked: self.checked,
            best: self.best.as_ref().map(shown),
            pass: 1,
            left: None,
        }
    }

    fn tell(&mut self) {
        self.reported = Instant::now();
        (self.watch)(&self.progress());
    }

    /// Checks everything among `policies` that still needs it, a batch at a time. False when the time is up.
    pub fn check_needed(&mut self, policies: impl Iterator<Item = Policy>) -> bool {
        let mut batch: Vec<Policy> = Vec::with_capacity(BATCH);
        for policy in policies {
            if self.over() {
                return false;
            }
            if self.excludes(&policy) {
                continue;
            }
            batch.push(policy);
            if batch.len() == BATCH {
                self.check(&batch);
                batch.clear();
            }
        }
        if !batch.is_empty() {
            self.check(&batch);
        }
        true
    }
}
