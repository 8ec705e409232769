//! The strongest inferences: what a value gives away about another.

use super::{Adjacency, Node};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// `P(to|from)`, with the support of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrongInference {
    pub from: Node,
    pub to: Node,
    /// `n(from, to)` in units.
    pub both: u64,
    /// `n(from)` in units.
    pub support: u64,
}

impl StrongInference {
    /// `P(to|from)` in (0, 1].
    #[must_use]
    pub fn probability(&self) -> f64 {
        self.both as f64 / self.support as f64
    }

    /// Weakest first: by probability, then support, then the nodes backwards.
    fn rank(&self, other: &Self) -> Ordering {
        let fraction = |n: u64, of: u64| u128::from(n) * u128::from(of);
        fraction(self.both, other.support)
            .cmp(&fraction(other.both, self.support))
            .then(self.support.cmp(&other.support))
            .then(Reverse((self.from, self.to)).cmp(&Reverse((other.from, other.to))))
    }
}

impl Ord for StrongInference {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank(other)
    }
}

impl PartialOrd for StrongInference {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Adjacency {
    /// The `most` strongest inferences u → v with `n(u,v)` of at least `min_support` units: by falling probability, then
    /// support of u, then nodes. Time: all edges.
    ///
    /// Codes, not texts: whether a value may be shown is the caller's to decide.
    #[must_use]
    pub fn strongest(&self, most: usize, min_support: u64) -> Vec<StrongInference> {
        let mut found: BinaryHeap<Reverse<StrongInference>> = BinaryHeap::new();
        for (u, v, both) in self.edges().filter(|(_, _, both)| *both >= min_support) {
            for (from, to) in [(u, v), (v, u)] {
                let inference = StrongInference { from, to, both, support: self.n(from) };
                if found.len() < most {
                    found.push(Reverse(inference));
                } else if found.peek().is_some_and(|weakest| weakest.0 < inference) {
                    found.pop();
                    found.push(Reverse(inference));
                }
            }
        }
        found.into_sorted_vec().into_iter().map(|Reverse(inference)| inference).collect()
    }
}
