//! Search for the admissible policy of least cost (\[FL2] §2.4–2.7; docs/internals/methods.md §7).

use super::antichain::{Antichain, InheritanceDirection};
use super::policy::{Lattice, LatticePolicy, policy_rank};
use super::policy_check::{PolicyChecker, PolicyOutcome};
use super::search_deadline::SearchDeadline;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Search strategy; all find the same optimum.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LatticeStrategy {
    /// Best first, then branch and bound: any size, and under a time limit.
    #[default]
    Bfs,
    /// Greedy chains with binary search; like all below, at most 2²² policies.
    Flash,
    /// Flash in two phases.
    Flash2p,
    /// Every policy.
    Dfs,
    /// Divide and conquer.
    Ola,
    /// Subsets of attributes, small ones first.
    Incognito,
}

impl LatticeStrategy {
    /// Returns the spelling in configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Reasons why a search cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the variants and their fields")]
pub enum LatticeSearchError {
    #[error("strategy {strategy} searches the whole lattice, which has more than {limit} policies; use bfs")]
    TooLarge { strategy: &'static str, limit: u64 },
}

/// Maximum policies of a completely visited lattice.
pub const MAX_VISITED_POLICIES: u64 = 1 << 22;

/// Progress of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct LatticeSearchProgress {
    /// Seconds since the search began.
    pub seconds: f64,
    /// Checked policies.
    pub checked: u64,
    /// Displayed measure of the best policy.
    pub best: Option<f64>,
    /// Current pass, from 1.
    pub pass: usize,
    /// Remaining total time, if limited.
    pub left: Option<Duration>,
}

/// Best policy of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct BestLatticePolicy {
    /// One level per attribute.
    pub policy: LatticePolicy,
    /// Cost; see [`QualityMeasure::shown`](crate::quality::QualityMeasure::shown).
    pub cost: f64,
    /// Suppressed records.
    pub suppressed: u64,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct LatticeSearchResult {
    /// None if no policy is admissible or found in time.
    pub best: Option<BestLatticePolicy>,
    /// True if the best is proved optimal.
    pub complete: bool,
    /// Checked policies.
    pub checked: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Every improvement.
    pub history: Vec<LatticeSearchProgress>,
    /// Bytes of the antichains and stored losses.
    pub knowledge_bytes: usize,
}

pub(super) struct LatticeSearch<'a> {
    pub checker: &'a PolicyChecker<'a>,
    pub lattice: Lattice,
    pub losing_policies: Antichain,
    /// For measures that levels do not bound.
    beaten_policies: Antichain,
    pub best: Option<BestLatticePolicy>,
    pub checked: u64,
    search_started: Instant,
    until: SearchDeadline<'a>,
    history: Vec<LatticeSearchProgress>,
    /// Records lost by a policy and all its specializations, by position.
    losses: HashMap<u128, u64>,
    watch: &'a (dyn Fn(&LatticeSearchProgress) + Sync),
    last_progress_report: Instant,
}

/// Fixed, so that the thread count does not affect results.
pub(super) const CHECK_BATCH_POLICIES: usize = 16;
const MAX_STORED_LOSSES: usize = 1 << 21;
const SEARCH_PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

impl<'a> LatticeSearch<'a> {
    pub fn new(
        checker: &'a PolicyChecker<'a>,
        until: SearchDeadline<'a>,
        watch: &'a (dyn Fn(&LatticeSearchProgress) + Sync),
    ) -> Self {
        let (lattice, begun) = (checker.lattice(), Instant::now());
        Self {
            checker,
            losing_policies: Antichain::new(InheritanceDirection::Downward, lattice.width()),
            beaten_policies: Antichain::new(InheritanceDirection::Upward, lattice.width()),
            lattice,
            best: None,
            checked: 0,
            search_started: begun,
            until,
            history: Vec::new(),
            losses: HashMap::new(),
            watch,
            last_progress_report: begun,
        }
    }

    /// Returns the result; `complete` if it is proved.
    pub fn into_search_result(self, complete: bool) -> LatticeSearchResult {
        let losses = self.losses.capacity() * size_of::<(u128, u64)>();
        LatticeSearchResult {
            best: self.best,
            complete,
            checked: self.checked,
            seconds: self.search_started.elapsed().as_secs_f64(),
            history: self.history,
            knowledge_bytes: self.losing_policies.bytes() + self.beaten_policies.bytes() + losses,
        }
    }
}

impl LatticeSearch<'_> {
    pub fn must_end_search(&self) -> bool {
        self.until.must_stop_now()
    }

    fn cannot_beat_best(&self, bound: f64, policy: &[u8]) -> bool {
        self.best.as_ref().is_some_and(|best| {
            bound > best.cost
                || bound == best.cost
                    && (policy_rank(policy), policy) > (policy_rank(&best.policy), best.policy.as_ref())
        })
    }

    pub fn excludes_between(&self, least: &[u8], greatest: &[u8]) -> bool {
        let beaten = self.best.as_ref().is_some_and(|best| self.checker.bound(least, 0) > best.cost);
        beaten || self.beaten_policies.covers(least) || self.losing_policies.covers(greatest)
    }

    pub fn excludes(&self, policy: &[u8]) -> bool {
        self.best.is_some() && self.cannot_beat_best(self.checker.bound(policy, 0), policy)
            || self.beaten_policies.covers(policy)
            || self.losing_policies.covers(policy)
    }

    fn known_loss(&self, policy: &[u8]) -> Option<u64> {
        self.lattice.position(policy).and_then(|position| self.losses.get(&position)).copied()
    }

    fn store_known_loss(&mut self, policy: &[u8], lost: u64) {
        if self.losses.len() < MAX_STORED_LOSSES {
            self.losses.extend(self.lattice.position(policy).map(|position| (position, lost)));
        }
    }

    pub fn has_known_loss(&self, policy: &[u8]) -> bool {
        self.known_loss(policy).is_some()
    }

    /// Returns true if the losses one level above exclude `policy`; then stores its loss.
    pub fn excludes_by_parent_losses(&mut self, policy: &[u8]) -> bool {
        let above = self.lattice.generalizations(policy);
        let lost = above.filter_map(|x| self.known_loss(&x)).max().unwrap_or(0);
        let excluded = lost > self.checker.limit()
            || lost > 0 && self.best.is_some() && self.cannot_beat_best(self.checker.bound(policy, lost), policy);
        if excluded {
            self.store_known_loss(policy, lost);
        }
        excluded
    }

    pub fn check(&mut self, policies: &[LatticePolicy]) -> Vec<PolicyOutcome> {
        let checker = self.checker;
        let outcomes: Vec<PolicyOutcome> = if policies.len() == 1 {
            vec![checker.check(&policies[0])]
        } else {
            policies.par_iter().with_max_len(1).map(|policy| checker.check(policy)).collect()
        };
        for (policy, outcome) in policies.iter().zip(&outcomes) {
            self.record_policy_outcome(policy, outcome);
        }
        if self.last_progress_report.elapsed() >= SEARCH_PROGRESS_INTERVAL {
            self.report_search_progress();
        }
        outcomes
    }

    fn record_policy_outcome(&mut self, policy: &LatticePolicy, outcome: &PolicyOutcome) {
        self.checked += 1;
        if outcome.failing > self.checker.limit() {
            self.losing_policies.insert(policy);
            return;
        }
        self.store_known_loss(policy, outcome.failing);
        if outcome.admissible && !self.cannot_beat_best(outcome.cost, policy) {
            self.best =
                Some(BestLatticePolicy { policy: policy.clone(), cost: outcome.cost, suppressed: outcome.suppressed });
            let progress = self.progress();
            self.history.push(progress);
            self.report_search_progress();
        }
        if !self.checker.measure().is_of_cells() && self.best.as_ref().is_some_and(|best| outcome.bound > best.cost) {
            self.beaten_policies.insert(policy);
        }
    }

    fn progress(&self) -> LatticeSearchProgress {
        let measure = self.checker.measure();
        let shown = |best: &BestLatticePolicy| measure.shown(best.cost, self.lattice.width());
        LatticeSearchProgress {
            seconds: self.search_started.elapsed().as_secs_f64(),
            checked: self.checked,
            best: self.best.as_ref().map(shown),
            pass: 1,
            left: None,
        }
    }

    fn report_search_progress(&mut self) {
        self.last_progress_report = Instant::now();
        (self.watch)(&self.progress());
    }

    /// Checks the necessary `policies`; returns false when the search must end.
    pub fn check_needed(&mut self, policies: impl Iterator<Item = LatticePolicy>) -> bool {
        let mut batch: Vec<LatticePolicy> = Vec::with_capacity(CHECK_BATCH_POLICIES);
        for policy in policies {
            if self.must_end_search() {
                return false;
            }
            if self.excludes(&policy) {
                continue;
            }
            batch.push(policy);
            if batch.len() == CHECK_BATCH_POLICIES {
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
