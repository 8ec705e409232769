//! Best first, then branch and bound (\[PRU] "Effective pruning in large search spaces").
//!
//! Unlike \[PRU], starts at the top, where checks are cheap. The first phase follows the cheapest policy downward; the
//! second proves it by rank.

use crate::lattice::policy::{LatticePolicy, policy_rank};
use crate::lattice::search::{CHECK_BATCH_POLICIES, LatticeSearch};
use ordered_float::OrderedFloat;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

pub fn search_best_first(search: &mut LatticeSearch<'_>) -> bool {
    if !find_good_policy(search) {
        return false;
    }
    prove_best_policy(search)
}

/// More in large lattices, because the second phase is slow there.
fn max_idle_expansions(search: &LatticeSearch<'_>) -> u64 {
    let large = (search.lattice.approximate_size().sqrt() / 16.0).min(4096.0) as u64;
    large.max(search.lattice.width() as u64)
}

fn find_good_policy(search: &mut LatticeSearch<'_>) -> bool {
    let top: LatticePolicy = search.lattice.top().into();
    let mut seen: HashSet<LatticePolicy> = HashSet::from([top.clone()]);
    let outcome = search.check(std::slice::from_ref(&top)).remove(0);
    let mut open = BinaryHeap::new();
    open.push((Reverse(OrderedFloat(outcome.cost)), top));
    let patience = max_idle_expansions(search);
    let mut idle = 0;
    while let Some((_, next)) = open.pop() {
        if search.must_end_search() {
            return false;
        }
        if idle > patience {
            break;
        }
        let before = search.best.as_ref().map(|best| best.cost);
        let lattice = search.lattice.clone();
        let below: Vec<LatticePolicy> = lattice
            .one_level_specializations(&next)
            .filter(|x| !search.losing_policies.covers(x) && seen.insert(x.clone()))
            .collect();
        for batch in below.chunks(CHECK_BATCH_POLICIES) {
            if search.must_end_search() {
                return false;
            }
            for (policy, outcome) in batch.iter().zip(search.check(batch)) {
                if outcome.failing <= search.checker.limit() && outcome.cost.is_finite() {
                    open.push((Reverse(OrderedFloat(outcome.cost)), policy.clone()));
                }
            }
        }
        idle = if search.best.as_ref().map(|best| best.cost) == before { idle + 1 } else { 0 };
    }
    true
}

fn prove_best_policy(search: &mut LatticeSearch<'_>) -> bool {
    let width = search.lattice.width();
    for wanted in (0..=policy_rank(search.lattice.top())).rev() {
        let mut branch = RankBranch {
            target_rank: wanted,
            least: search.lattice.bottom(),
            greatest: search.lattice.top().into(),
            pending_policies: Vec::new(),
        };
        if !branch.grow(search, 0, 0, width) || !branch.flush(search) {
            return false;
        }
    }
    true
}

struct RankBranch {
    target_rank: u32,
    /// Decided levels, followed by the bottom.
    least: LatticePolicy,
    /// Decided levels, followed by the top.
    greatest: LatticePolicy,
    pending_policies: Vec<LatticePolicy>,
}

const MAX_PENDING_POLICIES: usize = 64 * CHECK_BATCH_POLICIES;

impl RankBranch {
    /// Reads the clock at each step: a branch can run long without a candidate.
    fn grow(&mut self, search: &mut LatticeSearch<'_>, attribute: usize, sum: u32, width: usize) -> bool {
        if search.must_end_search() {
            return false;
        }
        if attribute == width {
            let settled = search.excludes(&self.least)
                || search.has_known_loss(&self.least)
                || search.excludes_by_parent_losses(&self.least);
            if !settled {
                self.pending_policies.push(self.least.clone());
            }
            return self.pending_policies.len() < MAX_PENDING_POLICIES || self.flush(search);
        }
        let behind: u32 = policy_rank(&search.lattice.top()[attribute + 1..]);
        let top = search.lattice.top()[attribute];
        for level in (0..=top).rev() {
            let now = sum + u32::from(level);
            if now > self.target_rank || now + behind < self.target_rank {
                continue;
            }
            self.least[attribute] = level;
            self.greatest[attribute] = level;
            let open = attribute + 1 == width || !search.excludes_between(&self.least, &self.greatest);
            if open && !self.grow(search, attribute + 1, now, width) {
                return false;
            }
        }
        self.least[attribute] = 0;
        self.greatest[attribute] = top;
        true
    }

    fn flush(&mut self, search: &mut LatticeSearch<'_>) -> bool {
        let found = std::mem::take(&mut self.pending_policies);
        for batch in found.chunks(CHECK_BATCH_POLICIES) {
            if search.must_end_search() {
                return false;
            }
            let needed: Vec<LatticePolicy> = batch.iter().filter(|policy| !search.excludes(policy)).cloned().collect();
            if !needed.is_empty() {
                search.check(&needed);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::{Domain, HierarchyLevel};
    use crate::lattice::policy_check::{PolicyChecker, PolicyTerms};
    use crate::lattice::search::LatticeStrategy;
    use crate::lattice::search_deadline::SearchDeadline;
    use crate::lattice::strategies::search_lattice;
    use crate::lattice::table::{LatticeTable, TableRecords};
    use crate::privacy::ClassPrivacyModel;
    use crate::quality::QualityMeasure;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    /// Each clock reading advances it by one second.
    fn search_with_clock_limit(limit: u64) -> (bool, bool, u64) {
        let domain = |name: usize| {
            let raw = HierarchyLevel { cell_of: vec![0, 1], loss: vec![0.0, 0.0] };
            let all = HierarchyLevel { cell_of: vec![0, 0], loss: vec![1.0] };
            Domain::new(name.to_string(), vec![raw, all]).expect("a hierarchy")
        };
        let value = |row: u32, column: u32| row.wrapping_mul(2_654_435_761).rotate_left(7 * column) >> 13 & 1;
        let quasi = (0..12).map(|column| (0..60).map(|row| value(row, column)).collect()).collect();
        let table =
            LatticeTable::new((0..12).map(domain).collect(), &TableRecords { quasi, ..TableRecords::default() })
                .expect("a table");
        let terms = PolicyTerms {
            models: vec![ClassPrivacyModel::KAnonymity { k: 5 }],
            limit: 0.0,
            measure: QualityMeasure::Loss,
        };
        let checker = PolicyChecker::new(&table, &terms).expect("terms");
        let looks = AtomicU64::new(0);
        let clock = || Duration::from_secs(looks.fetch_add(1, Ordering::Relaxed));
        let until = SearchDeadline::timed(&clock, Some(Duration::from_secs(limit)));
        let found = search_lattice(&checker, LatticeStrategy::Bfs, until, &|_| ()).expect("any size will do");
        (found.complete, found.best.is_some(), looks.load(Ordering::Relaxed))
    }

    #[test]
    fn best_first_without_candidates_ends_at_time_limit() {
        let (complete, _, all) = search_with_clock_limit(1 << 40);
        assert!(complete && all > 1000, "{all} looks in all");
        for limit in (1..20).map(|n| n * all / 20) {
            let (complete, has_best, looked) = search_with_clock_limit(limit);
            assert!(!complete && has_best);
            assert!(looked < limit + 40, "{looked} looks in the time of {limit}");
        }
    }
}
