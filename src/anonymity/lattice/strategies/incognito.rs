//! Incognito [INC]: subsets of the attributes, small ones first.
//!
//! A subset's policy, with every other attribute at its top, is a generalization of all policies with the same levels
//! on the subset: what it loses, they lose. A candidate of a larger subset all of whose smaller ones may be admissible
//! is exactly one that nothing lost covers.

use super::flash::{classify, rest};
use crate::anonymity::lattice::antichain::{Antichain, Inheritance};
use crate::anonymity::lattice::policy::{Lattice, Policy, rank};
use crate::anonymity::lattice::search::Search;
use std::collections::HashSet;

pub fn run(search: &mut Search<'_>) -> bool {
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
