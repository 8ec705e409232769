//! Search strategies. All return false when the search must end.

mod best_first;

use super::antichain::{Antichain, InheritanceDirection};
use super::policy::{Lattice, LatticePolicy, policy_rank};
use super::policy_check::PolicyChecker;
use super::search::{
    CHECK_BATCH_POLICIES, LatticeSearch, LatticeSearchError, LatticeSearchProgress, LatticeSearchResult,
    LatticeStrategy, MAX_VISITED_POLICIES,
};
use super::search_deadline::SearchDeadline;
use std::collections::HashSet;

/// Searches the lattice of `checker` until `until`; calls `watch` for every improvement and five times per second.
///
/// Only `bfs` accepts more than 2²² policies ([`MAX_VISITED_POLICIES`]); it keeps antichains and at most 2²¹ losses of
/// 40 bytes.
///
/// # Errors
/// When the lattice is too large for the strategy.
pub fn search_lattice(
    checker: &PolicyChecker<'_>,
    strategy: LatticeStrategy,
    until: SearchDeadline<'_>,
    watch: &(dyn Fn(&LatticeSearchProgress) + Sync),
) -> Result<LatticeSearchResult, LatticeSearchError> {
    if strategy != LatticeStrategy::Bfs
        && checker.lattice().size().is_none_or(|size| size > u128::from(MAX_VISITED_POLICIES))
    {
        return Err(LatticeSearchError::TooLarge { strategy: strategy.name(), limit: MAX_VISITED_POLICIES });
    }
    let mut search = LatticeSearch::new(checker, until, watch);
    let run = match strategy {
        LatticeStrategy::Bfs => best_first::search_best_first,
        LatticeStrategy::Flash => search_flash,
        LatticeStrategy::Flash2p => search_flash_two_phases,
        LatticeStrategy::Dfs => check_all_policies,
        LatticeStrategy::Ola => search_ola,
        LatticeStrategy::Incognito => search_incognito,
    };
    let complete = run(&mut search);
    Ok(search.into_search_result(complete))
}

fn check_all_policies(search: &mut LatticeSearch<'_>) -> bool {
    let lattice = search.lattice.clone();
    let mut all = lattice.iter();
    loop {
        let batch: Vec<LatticePolicy> = all.by_ref().take(CHECK_BATCH_POLICIES).collect();
        if batch.is_empty() {
            return true;
        }
        if search.must_end_search() {
            return false;
        }
        search.check(&batch);
    }
}

/// Flash \[FLA]: binary search on chains for the policies that stop losing too many records.
///
/// Policies above need a check: suppression makes neither models nor measures monotone.
fn search_flash(search: &mut LatticeSearch<'_>) -> bool {
    let mut checked: HashSet<LatticePolicy> = HashSet::new();
    let Some(starts) = policies_by_rank(search) else { return false };
    for start in starts {
        loop {
            if search.must_end_search() {
                return false;
            }
            if checked.contains(&start) || search.excludes(&start) {
                break;
            }
            let chain = cheapest_chain(search, &start, &|search, x| checked.contains(x) || search.excludes(x));
            let (mut low, mut high) = (0, chain.len());
            while low < high {
                let middle = usize::midpoint(low, high);
                let policy = &chain[middle];
                if checked.insert(policy.clone()) {
                    search.check(std::slice::from_ref(policy));
                }
                if search.losing_policies.covers(policy) { low = middle + 1 } else { high = middle }
            }
        }
    }
    true
}

/// Flash2P (\[FL2] Fig. 6).
fn search_flash_two_phases(search: &mut LatticeSearch<'_>) -> bool {
    let mut possible = Antichain::new(InheritanceDirection::Upward, search.lattice.width());
    let mut checked: HashSet<LatticePolicy> = HashSet::new();
    let Some(starts) = policies_by_rank(search) else { return false };
    for start in starts {
        if search.must_end_search() {
            return false;
        }
        if search.losing_policies.covers(&start) || possible.covers(&start) {
            continue;
        }
        let chain = cheapest_chain(search, &start, &|search, x| search.losing_policies.covers(x) || possible.covers(x));
        let (mut low, mut high) = (0, chain.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if may_be_admissible(search, &chain[middle], &mut possible, &mut checked) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
    }
    check_remaining_policies(search, &checked)
}

fn may_be_admissible(
    search: &mut LatticeSearch<'_>,
    policy: &LatticePolicy,
    possible: &mut Antichain,
    checked: &mut HashSet<LatticePolicy>,
) -> bool {
    if search.losing_policies.covers(policy) {
        return false;
    }
    if possible.covers(policy) {
        return true;
    }
    checked.insert(policy.clone());
    search.check(std::slice::from_ref(policy));
    let may = !search.losing_policies.covers(policy);
    if may {
        possible.insert(policy);
    }
    may
}

fn check_remaining_policies(search: &mut LatticeSearch<'_>, checked: &HashSet<LatticePolicy>) -> bool {
    let lattice = search.lattice.clone();
    search.check_needed(lattice.iter().filter(|policy| !checked.contains(policy)))
}

/// Chain upward from `start` of the open generalizations of least bound.
fn cheapest_chain(
    search: &LatticeSearch<'_>,
    start: &LatticePolicy,
    closed: &dyn Fn(&LatticeSearch<'_>, &LatticePolicy) -> bool,
) -> Vec<LatticePolicy> {
    let mut chain = vec![start.clone()];
    while let Some(last) = chain.last() {
        let open = search.lattice.generalizations(last).filter(|x| !closed(search, x));
        let bound = |x: &LatticePolicy| search.checker.bound(x, 0);
        let Some(next) = open.min_by(|a, b| bound(a).total_cmp(&bound(b)).then_with(|| a.cmp(b))) else { break };
        chain.push(next);
    }
    chain
}

fn policies_by_rank(search: &LatticeSearch<'_>) -> Option<impl Iterator<Item = LatticePolicy> + use<>> {
    let mut ranks: Vec<Vec<LatticePolicy>> = vec![Vec::new(); policy_rank(search.lattice.top()) as usize + 1];
    for policy in search.lattice.iter() {
        if search.must_end_search() {
            return None;
        }
        ranks[policy_rank(&policy) as usize].push(policy);
    }
    Some(ranks.into_iter().flatten())
}

/// Optimal lattice anonymization \[OLA]: bisects sublattices.
fn search_ola(search: &mut LatticeSearch<'_>) -> bool {
    let mut possible = Antichain::new(InheritanceDirection::Upward, search.lattice.width());
    let mut checked = HashSet::new();
    let mut seen: HashSet<(LatticePolicy, LatticePolicy)> = HashSet::new();
    let mut open: Vec<(LatticePolicy, LatticePolicy)> = vec![(search.lattice.bottom(), search.lattice.top().into())];
    while let Some((bottom, top)) = open.pop() {
        if search.must_end_search() {
            return false;
        }
        if search.losing_policies.covers(&top)
            || possible.covers(&bottom)
            || !seen.insert((bottom.clone(), top.clone()))
        {
            continue;
        }
        let height = policy_rank(&top) - policy_rank(&bottom);
        if height <= 1 {
            for policy in [&bottom, &top] {
                may_be_admissible(search, policy, &mut possible, &mut checked);
            }
            continue;
        }
        // Policies at half the height.
        let room: Vec<u8> = top.iter().zip(&bottom).map(|(t, b)| t - b).collect();
        for step in Lattice::new(room).iter() {
            if search.must_end_search() {
                return false;
            }
            if policy_rank(&step) != height / 2 {
                continue;
            }
            let middle: LatticePolicy = step.iter().zip(&bottom).map(|(s, b)| s + b).collect();
            if may_be_admissible(search, &middle, &mut possible, &mut checked) {
                open.push((bottom.clone(), middle));
            } else {
                open.push((middle, top.clone()));
            }
        }
    }
    check_remaining_policies(search, &checked)
}

/// Incognito \[INC]: subsets of attributes, small ones first, with all others at their top.
fn search_incognito(search: &mut LatticeSearch<'_>) -> bool {
    let top: LatticePolicy = search.lattice.top().into();
    let mut possible = Antichain::new(InheritanceDirection::Upward, top.len());
    let mut checked = HashSet::new();
    let mut subsets: Vec<u32> = (1..1u32 << top.len()).collect();
    subsets.sort_by_key(|subset| (subset.count_ones(), *subset));
    for subset in subsets {
        let attributes: Vec<usize> = (0..top.len()).filter(|&a| subset >> a & 1 == 1).collect();
        // An attribute at its top equals the smaller subset.
        let room: Vec<u8> = attributes.iter().map(|&a| top[a].saturating_sub(1)).collect();
        if attributes.iter().any(|&a| top[a] == 0) {
            continue;
        }
        let mut policies: Vec<LatticePolicy> = Lattice::new(room).iter().collect();
        policies.sort_by_key(|policy| policy_rank(policy));
        for levels in policies {
            if search.must_end_search() {
                return false;
            }
            let mut policy = top.clone();
            for (&attribute, &level) in attributes.iter().zip(&levels) {
                policy[attribute] = level;
            }
            may_be_admissible(search, &policy, &mut possible, &mut checked);
        }
    }
    check_remaining_policies(search, &checked)
}
