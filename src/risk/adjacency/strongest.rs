//! The strongest inferences: what a value gives away about another.

use super::{Adjacency, ValueNode};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// `P(to|from)`, with the support of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrongInference {
    /// The value that gives the other one away.
    pub from: ValueNode,
    /// The value that is given away.
    pub to: ValueNode,
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
}

/// An inference with what decides between equals: the keys of both nodes.
#[derive(PartialEq, Eq)]
struct Ranked<K> {
    inference: StrongInference,
    keys: (K, K),
}

impl<K: Ord> Ord for Ranked<K> {
    /// Weakest first: by probability, then support, then the keys backwards.
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, two) = (&self.inference, &other.inference);
        let fraction = |n: u64, of: u64| u128::from(n) * u128::from(of);
        fraction(one.both, two.support)
            .cmp(&fraction(two.both, one.support))
            .then(one.support.cmp(&two.support))
            .then_with(|| other.keys.cmp(&self.keys))
    }
}

impl<K: Ord> PartialOrd for Ranked<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Adjacency {
    /// The `most` strongest inferences u → v with `n(u,v)` of at least `min_support` units: by falling probability, then
    /// support of u, then `key` of u and of v, which is to tell nodes apart. Time: all edges.
    ///
    /// Codes, not texts: whether a value may be shown is the caller's to decide.
    #[must_use]
    pub fn strongest<K: Ord>(
        &self,
        most: usize,
        min_support: u64,
        key: impl Fn(ValueNode) -> K,
    ) -> Vec<StrongInference> {
        let mut found: BinaryHeap<Reverse<Ranked<K>>> = BinaryHeap::new();
        for (u, v, both) in self.edges().filter(|(_, _, both)| *both >= min_support) {
            for (from, to) in [(u, v), (v, u)] {
                let inference = StrongInference { from, to, both, support: self.n(from) };
                let inference = Ranked { inference, keys: (key(from), key(to)) };
                if found.len() < most {
                    found.push(Reverse(inference));
                } else if found.peek().is_some_and(|weakest| weakest.0 < inference) {
                    found.pop();
                    found.push(Reverse(inference));
                }
            }
        }
        found.into_sorted_vec().into_iter().map(|Reverse(ranked)| ranked.inference).collect()
    }
}
