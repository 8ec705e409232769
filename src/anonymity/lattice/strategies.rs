//! The search by one of the strategies: an order each. False, or none, when the time is up.

mod best_first;

use super::antichain::{Antichain, Inheritance};
use super::check::Checker;
use super::policy::{Lattice, Policy, rank};
use super::search::{BATCH, Found, Progress, Search, SearchError, Strategy, VISITED};
use super::until::Until;
use std::collections::HashSet;

/// Searches the lattice of `checker`'s table for as long as `until` says; `watch` is told of every improvement, and five times a
/// second.
///
/// Time and memory: policies that a strategy goes through are at most 2²² ([`VISITED`]), but for `bfs`, which keeps
/// antichains and at most 2²¹ losses of 40 bytes.
///
/// # Errors
/// When the lattice is too large for the strategy.
pub fn search(
    checker: &Checker<'_>,
    strategy: Strategy,
    until: Until<'_>,
    watch: &(dyn Fn(&Progress) + Sync),
) -> Result<Found, SearchError> {
    if strategy != Strategy::Bfs && checker.lattice().size().is_none_or(|size| size > u128::from(VISITED)) {
        return Err(SearchError::TooLarge { strategy: strategy.name(), limit: VISITED });
    }
    let mut search = Search::new(checker, until, watch);
    let run = match strategy {
        Strategy::Bfs => best_first::run,
        Strategy::Flash => flash,
        Strategy::Flash2p => flash_in_two_phases,
        Strategy::Dfs => all,
        Strategy::Ola => ola,
        Strategy::Incognito => incognito,
    };
    let complete = run(&mut search);
    Ok(search.found(complete))
}

/// Every policy, nothing left out.
fn all(search: &mut Search<'_>) -> bool {
    let lattice = search.lattice.clone();
    let mut all = lattice.iter();
    loop {
        let batch: Vec<Policy> = all.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return true;
        }
        if search.over() {
            return false;
        }
        search.check(&batch);
    }
}

/// Flash [FLA]: every policy is checked or excluded on the way.
///
/// A chain leads from a policy upward, each step to the cheapest open generalization; a binary search on it finds where
/// policies stop losing too many records. Below, everything is lost for all specialisations too. Above, policies may be
/// admissible, and only a check tells, since suppression makes neither models nor measures monotone.
fn flash(search: &mut Search<'_>) -> bool {
    let mut checked: HashSet<Policy> = HashSet::new();
    let Some(starts) = by_rank(search) else { return false };
    for start in starts {
        loop {
            if search.over() {
                return false;
            }
            if checked.contains(&start) || search.excludes(&start) {
                break;
            }
            let chain = chain(search, &start, &|search, x| checked.contains(x) || search.excludes(x));
            let (mut low, mut high) = (0, chain.len());
            while low < high {
                let middle = usize::midpoint(low, high);
                let policy = &chain[middle];
                if checked.insert(policy.clone()) {
                    search.check(std::slice::from_ref(policy));
                }
                if search.lost.covers(policy) { low = middle + 1 } else { high = middle }
            }
        }
    }
    true
}

/// Flash2P ([FL2] Fig. 6): first what loses too many records for any specialisation, then all that is left.
fn flash_in_two_phases(search: &mut Search<'_>) -> bool {
    let mut possible = Antichain::new(Inheritance::Upward, search.lattice.width());
    let mut checked: HashSet<Policy> = HashSet::new();
    let Some(starts) = by_rank(search) else { return false };
    for start in starts {
        if search.over() {
            return false;
        }
        if search.lost.covers(&start) || possible.covers(&start) {
            continue;
        }
        let chain = chain(search, &start, &|search, x| search.lost.covers(x) || possible.covers(x));
        let (mut low, mut high) = (0, chain.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if classify(search, &chain[middle], &mut possible, &mut checked) { high = middle } else { low = middle + 1 }
        }
    }
    rest(search, &checked)
}

/// Whether a policy may be admissible; what it says is learned.
fn classify(search: &mut Search<'_>, policy: &Policy, possible: &mut Antichain, checked: &mut HashSet<Policy>) -> bool {
    if search.lost.covers(policy) {
        return false;
    }
    if possible.covers(policy) {
        return true;
    }
    checked.insert(policy.clone());
    search.check(std::slice::from_ref(policy));
    let may = !search.lost.covers(policy);
    if may {
        possible.insert(policy);
    }
    may
}

/// Checks what is neither checked nor excluded.
fn rest(search: &mut Search<'_>, checked: &HashSet<Policy>) -> bool {
    let lattice = search.lattice.clone();
    search.check_needed(lattice.iter().filter(|policy| !checked.contains(policy)))
}

/// From `start` upward, each step to the open generalization of least bound.
fn chain(search: &Search<'_>, start: &Policy, closed: &dyn Fn(&Search<'_>, &Policy) -> bool) -> Vec<Policy> {
    let mut chain = vec![start.clone()];
    while let Some(last) = chain.last() {
        let open = search.lattice.generalizations(last).filter(|x| !closed(search, x));
        let bound = |x: &Policy| search.checker.bound(x, 0);
        let Some(next) = open.min_by(|a, b| bound(a).total_cmp(&bound(b)).then_with(|| a.cmp(b))) else { break };
        chain.push(next);
    }
    chain
}

/// Every policy by rank, and lexicographically within one, as the lattice lists them. None when the time is up.
fn by_rank(search: &Search<'_>) -> Option<impl Iterator<Item = Policy> + use<>> {
    let mut ranks: Vec<Vec<Policy>> = vec![Vec::new(); rank(search.lattice.top()) as usize + 1];
    for policy in search.lattice.iter() {
        if search.over() {
            return None;
        }
        ranks[rank(&policy) as usize].push(policy);
    }
    Some(ranks.into_iter().flatten())
}

/// Optimal lattice anonymization [OLA]: divide and conquer between the bottom and the top of sublattices. The halves find where
/// policies stop losing too many records; what may be admissible is then checked.
fn ola(search: &mut Search<'_>) -> bool {
    let mut possible = Antichain::new(Inheritance::Upward, search.lattice.width());
    let mut checked = HashSet::new();
    let mut seen: HashSet<(Policy, Policy)> = HashSet::new();
    let mut open: Vec<(Policy, Policy)> = vec![(search.lattice.bottom(), search.lattice.top().into())];
    while let Some((bottom, top)) = open.pop() {
        if search.over() {
            return false;
        }
        if search.lost.covers(&top) || possible.covers(&bottom) || !seen.insert((bottom.clone(), top.clone())) {
            continue;
        }
        let height = rank(&top) - rank(&bottom);
        if height <= 1 {
            for policy in [&bottom, &top] {
                classify(search, policy, &mut possible, &mut checked);
            }
            continue;
        }
        // The policies half way up that are above the bottom and not above the top.
        let room: Vec<u8> = top.iter().zip(&bottom).map(|(t, b)| t - b).collect();
        for step in Lattice::new(room).iter() {
            if search.over() {
                return false;
            }
            if rank(&step) != height / 2 {
                continue;
            }
            let middle: Policy = step.iter().zip(&bottom).map(|(s, b)| s + b).collect();
            if classify(search, &middle, &mut possible, &mut checked) {
                open.push((bottom.clone(), middle));
            } else {
                open.push((middle, top.clone()));
            }
        }
    }
    rest(search, &checked)
}

/// Incognito [INC]: subsets of the attributes, small ones first.
///
/// A subset's policy, with every other attribute at its top, is a generalization of all policies with the same levels
/// on the subset: what it loses, they lose. A candidate of a larger subset all of whose smaller ones may be admissible
/// is exactly one that nothing lost covers.
fn incognito(search: &mut Search<'_>) -> bool {
    let top: Policy = search.lattice.top().into();
    let mut possible = Antichain::new(Inheritance::Upward, top.len());
    let mut checked = HashSet::new();
    let mut subsets: Vec<u32> = (1..1u32 << top.len()).collect();
    subsets.sort_by_key(|subset| (subset.count_ones(), *subset));
    for subset in subsets {
        let attributes: Vec<usize> = (0..top.len()).filter(|&a| subset >> a & 1 == 1).collect();
        // An attribute at its top is the subset without it, and has been seen.
        let room: Vec<u8> = attributes.iter().map(|&a| top[a].saturating_sub(1)).collect();
        if attributes.iter().any(|&a| top[a] == 0) {
            continue;
        }
        let mut policies: Vec<Policy> = Lattice::new(room).iter().collect();
        policies.sort_by_key(|policy| rank(policy));
        for levels in policies {
            if search.over() {
                return false;
            }
            let mut policy = top.clone();
            for (&attribute, &level) in attributes.iter().zip(&levels) {
                policy[attribute] = level;
            }
            classify(search, &policy, &mut possible, &mut checked);
        }
    }
    rest(search, &checked)
}
