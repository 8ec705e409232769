//! Reference model: ordered maps and listed sets.

use crate::adjacency::{Adjacency, AdjacencyLimits, ValueNode};
use std::collections::{BTreeMap, BTreeSet};

pub(super) type CodeRecord = Vec<u32>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReferenceAdjacency {
    pub nodes: BTreeMap<(usize, u32), u64>,
    pub edges: BTreeMap<((usize, u32), (usize, u32)), u64>,
}

impl ReferenceAdjacency {
    pub(super) fn of(attributes: &[usize], records: impl IntoIterator<Item = CodeRecord>) -> Self {
        let mut twin = Self::default();
        for record in records {
            for &a in attributes {
                *twin.nodes.entry((a, record[a])).or_default() += 1;
                for &b in attributes.iter().filter(|b| **b > a) {
                    *twin.edges.entry(((a, record[a]), (b, record[b]))).or_default() += 1;
                }
            }
        }
        twin
    }

    pub(super) fn read_model(model: &Adjacency) -> Self {
        let pair = |node: ValueNode| (node.attribute, node.code);
        Self {
            nodes: model.nodes().map(|(node, n)| (pair(node), n)).collect(),
            edges: model.edges().map(|(u, v, n)| ((pair(u), pair(v)), n)).collect(),
        }
    }

    pub(super) fn without(mut self, pairs: &[(usize, usize)]) -> Self {
        let pairs: BTreeSet<_> = pairs.iter().copied().collect();
        self.edges.retain(|(u, v), _| !pairs.contains(&(u.0, v.0)));
        self
    }

    /// Returns `M(A→B)` in units of 2^-32, by its definition.
    pub(super) fn m(&self, from: usize, to: usize) -> u64 {
        let mut partners: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (u, v) in self.edges.keys().flat_map(|(u, v)| [(u, v), (v, u)]).filter(|(u, v)| (u.0, v.0) == (from, to)) {
            partners.entry(u.1).or_default().insert(v.1);
        }
        let (mut sum, mut units) = (0_u128, 0_u128);
        for (code, partners) in partners {
            let n = u128::from(self.nodes[&(from, code)]);
            sum += (n << 32) / partners.len() as u128;
            units += n;
        }
        (sum / units.max(1)) as u64
    }
}

pub(super) fn columns(records: &[CodeRecord], width: usize) -> Vec<Vec<u32>> {
    (0..width).map(|at| records.iter().map(|record| record[at]).collect()).collect()
}

pub(super) fn empty(attributes: &[usize], max_edges: u64) -> Adjacency {
    Adjacency::new(attributes, AdjacencyLimits { max_edges }).expect("ascending attributes")
}
