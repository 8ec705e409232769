//! Flash [FLA] and Flash2P ([FL2] Fig. 6).
//!
//! A chain leads from a policy upward, each step to the cheapest open generalization; a binary search on it finds where
//! policies stop losing too many records. Below, everything is lost for all specialisations too. Above, policies may be
//! admissible, and only a check tells, since suppression makes neither models nor measures monotone.

use crate::anonymity::lattice::antichain::{Antichain, Inheritance};
use crate::anonymity::lattice::policy::{Policy, rank};
use crate::anonymity::lattice::search::Search;
use std::collections::HashSet;

/// One phase: every policy is checked or excluded on the way.
pub fn run(search: &mut Search<'_>) -> bool {
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

/// Two phases: first what loses too many records for any specialisation, then all that is left.
pub fn run_in_two_phases(search: &mut Search<'_>) -> bool {
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
pub fn classify(
    search: &mut Search<'_>,
    policy: &Policy,
    possible: &mut Antichain,
    checked: &mut HashSet<Policy>,
) -> bool {
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
pub fn rest(search: &mut Search<'_>, checked: &HashSet<Policy>) -> bool {
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
