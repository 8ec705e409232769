//! Best first, then branch and bound ([PRU] "Effective pruning in large search spaces").
//!
//! [PRU] climbs from the bottom, where almost everything has to be suppressed and every check is dear. From the top
//! everything is admissible and classes are few: the first phase follows the cheapest policy downward, and has a good
//! one after a few checks of each level. The second phase proves it. It goes through the ranks from the top
//! downward, and of each rank only through what may still be better: a branch ends where its least bound is beaten
//! or where its most general policy loses too many records. Policies of one rank are incomparable, so no
//! check in a batch could have spared another.

use crate::anonymity::lattice::policy::{Policy, rank};
use crate::anonymity::lattice::search::{BATCH, Search};
use ordered_float::OrderedFloat;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

pub fn run(search: &mut Search<'_>) -> bool {
    if !descend(search) {
        return false;
    }
    prove(search)
}

/// Expansions without a better policy after which the first phase ends: more in large lattices, where the second
/// takes long to find what the first has missed.
fn patience(search: &Search<'_>) -> u64 {
    let large = (search.lattice.approximate_size().sqrt() / 16.0).min(4096.0) as u64;
    large.max(search.lattice.width() as u64)
}

/// False when the time is up.
fn descend(search: &mut Search<'_>) -> bool {
    let top: Policy = search.lattice.top().into();
    let mut seen: HashSet<Policy> = HashSet::from([top.clone()]);
    let outcome = search.check(std::slice::from_ref(&top)).remove(0);
    let mut open = BinaryHeap::new();
    open.push((Reverse(OrderedFloat(outcome.cost)), top));
    let patience = patience(search);
    let mut idle = 0;
    while let Some((_, next)) = open.pop() {
        if search.over() {
            return false;
        }
        if idle > patience {
            break;
        }
        let before = search.best.as_ref().map(|best| best.cost);
        let lattice = search.lattice.clone();
        let below: Vec<Policy> =
            lattice.specialisations(&next).filter(|x| !search.lost.covers(x) && seen.insert(x.clone())).collect();
        for batch in below.chunks(BATCH) {
            if search.over() {
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

/// False when the time is up.
fn prove(search: &mut Search<'_>) -> bool {
    let width = search.lattice.width();
    for wanted in (0..=rank(search.lattice.top())).rev() {
        let mut branch =
            Branch { wanted, least: search.lattice.bottom(), greatest: search.lattice.top().into(), found: Vec::new() };
        if !branch.grow(search, 0, 0, width) || !branch.flush(search) {
            return false;
        }
    }
    true
}

/// Policies of one rank, attribute after attribute.
struct Branch {
    wanted: u32,
    /// The levels decided so far, and the bottom behind them.
    least: Policy,
    /// The same with the top behind them.
    greatest: Policy,
    found: Vec<Policy>,
}

/// Policies gathered before they are checked.
const GATHERED: usize = 64 * BATCH;

impl Branch {
    /// False when the time is up. A branch may lead to nothing for long, so the clock is read at each of its steps.
    fn grow(&mut self, search: &mut Search<'_>, attribute: usize, sum: u32, width: usize) -> bool {
        if search.over() {
            return false;
        }
        if attribute == width {
            let settled = search.excludes(&self.least)
                || search.is_settled(&self.least)
                || search.excludes_after_those_above(&self.least);
            if !settled {
                self.found.push(self.least.clone());
            }
            return self.found.len() < GATHERED || self.flush(search);
        }
        let behind: u32 = rank(&search.lattice.top()[attribute + 1..]);
        let top = search.lattice.top()[attribute];
        for level in (0..=top).rev() {
            let now = sum + u32::from(level);
            if now > self.wanted || now + behind < self.wanted {
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

    fn flush(&mut self, search: &mut Search<'_>) -> bool {
        let found = std::mem::take(&mut self.found);
        for batch in found.chunks(BATCH) {
            if search.over() {
                return false;
            }
            let needed: Vec<Policy> = batch.iter().filter(|policy| !search.excludes(policy)).cloned().collect();
            if !needed.is_empty() {
                search.check(&needed);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::anonymity::domain::{Domain, Level};
    use crate::anonymity::lattice::check::{Checker, Terms};
    use crate::anonymity::lattice::search::Strategy;
    use crate::anonymity::lattice::strategies::search;
    use crate::anonymity::lattice::table::{Records, Table};
    use crate::anonymity::lattice::until::Until;
    use crate::anonymity::privacy::Model;
    use crate::anonymity::quality::Measure;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    /// Every look at the clock takes a second, and nothing else takes time.
    fn in_time(limit: u64) -> (bool, bool, u64) {
        let domain = |name: usize| {
            let raw = Level { cell_of: vec![0, 1], loss: vec![0.0, 0.0] };
            let all = Level { cell_of: vec![0, 0], loss: vec![1.0] };
            Domain::new(name.to_string(), vec![raw, all]).expect("a hierarchy")
        };
        let value = |row: u32, column: u32| row.wrapping_mul(2_654_435_761).rotate_left(7 * column) >> 13 & 1;
        let quasi = (0..12).map(|column| (0..60).map(|row| value(row, column)).collect()).collect();
        let table =
            Table::new((0..12).map(domain).collect(), &Records { quasi, ..Records::default() }).expect("a table");
        let terms = Terms { models: vec![Model::KAnonymity { k: 5 }], limit: 0.0, measure: Measure::Loss };
        let checker = Checker::new(&table, &terms).expect("terms");
        let looks = AtomicU64::new(0);
        let clock = || Duration::from_secs(looks.fetch_add(1, Ordering::Relaxed));
        let until = Until::timed(&clock, Some(Duration::from_secs(limit)));
        let found = search(&checker, Strategy::Bfs, until, &|_| ()).expect("any size will do");
        (found.complete, found.best.is_some(), looks.load(Ordering::Relaxed))
    }

    #[test]
    fn branches_that_lead_to_nothing_end_with_the_time() {
        let (complete, _, all) = in_time(1 << 40);
        assert!(complete && all > 1000, "{all} looks in all");
        for limit in (1..20).map(|n| n * all / 20) {
            let (complete, has_best, looked) = in_time(limit);
            assert!(!complete && has_best);
            assert!(looked < limit + 40, "{looked} looks in the time of {limit}");
        }
    }
}
