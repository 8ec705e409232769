//! Optimal lattice anonymization [OLA]: divide and conquer between the bottom and the top of sublattices.
//!
//! The halves find where policies stop losing too many records; what may be admissible is then checked.

use super::flash::{classify, rest};
use crate::anonymity::lattice::antichain::{Antichain, Inheritance};
use crate::anonymity::lattice::policy::{Lattice, Policy, rank};
use crate::anonymity::lattice::search::Search;
use std::collections::HashSet;

pub fn run(search: &mut Search<'_>) -> bool {
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
