//! Exact aggregation over several levels.

use super::aggregation_level::{AggregationLevel, coarsen_level};
use super::node_counts::{NodeCounts, NodeNumber, SparseMatrixRow};

/// Hierarchy of exactly aggregated nodes, finest level first.
///
/// `N_fine = P · N_coarse · Pᵀ`, with counts N and the 0/1 matrix P of [`parts`](Self::parts).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactAggregation {
    levels: Vec<AggregationLevel>,
    coarse: NodeCounts,
}

impl ExactAggregation {
    /// Aggregates until no nodes can be merged; `attributes[u]` is the attribute of u.
    ///
    /// Terminates: each level has fewer nodes, or fewer records in them. Time per level: its edges, and for each node
    /// the edges of its hosts.
    ///
    /// # Panics
    /// If there is not exactly one attribute per node.
    pub fn of(fine: &NodeCounts, attributes: &[u32]) -> Self {
        assert_eq!(fine.numbers().len(), attributes.len(), "one attribute a node");
        let mut levels = Vec::new();
        let (mut coarse, mut attributes) = (None::<NodeCounts>, attributes.to_vec());
        while let Some(next) = coarsen_level(coarse.as_ref().unwrap_or(fine), &attributes) {
            levels.push(next.level);
            (coarse, attributes) = (Some(next.counts), next.attributes);
        }
        Self { levels, coarse: coarse.unwrap_or_else(|| fine.clone()) }
    }

    /// Levels, finest first; empty if no nodes were merged.
    pub fn levels(&self) -> &[AggregationLevel] {
        &self.levels
    }

    /// Counts of the coarsest level.
    pub fn coarse(&self) -> &NodeCounts {
        &self.coarse
    }

    /// Returns the coarsest nodes that partition the records of a fine node, ascending.
    pub fn parts(&self, fine: NodeNumber) -> Vec<NodeNumber> {
        let mut parts = vec![fine];
        for level in &self.levels {
            parts = parts.iter().flat_map(|node| level.parts(*node)).collect();
        }
        parts.sort_unstable();
        parts
    }

    /// Returns for each coarsest node the fine nodes that all its records have, ascending.
    pub fn conjunctions(&self) -> Vec<Vec<NodeNumber>> {
        let mut conjunctions = vec![Vec::new(); self.coarse.numbers().len()];
        for fine in 0..self.fine_node_count() {
            self.parts(fine).into_iter().for_each(|part| conjunctions[part as usize].push(fine));
        }
        conjunctions
    }

    fn fine_node_count(&self) -> NodeNumber {
        self.levels.first().map_or(self.coarse.numbers().len(), AggregationLevel::finer_node_count) as NodeNumber
    }

    /// Returns n(u, v), or n(u) if u = v, from coarse counts.
    pub fn fine_pair_records(&self, u: NodeNumber, v: NodeNumber) -> u32 {
        let (of_u, of_v) = (self.parts(u), self.parts(v));
        of_u.iter().flat_map(|i| of_v.iter().map(|j| self.coarse.pair_records(*i, *j))).sum()
    }

    /// Recovers the fine counts: P · N · Pᵀ.
    pub fn to_fine_counts(&self) -> NodeCounts {
        let rows = (0..self.fine_node_count()).map(|fine| self.parts(fine).into_iter().map(|part| (part, 1)).collect());
        self.coarse.galerkin_product(&rows.collect::<Vec<SparseMatrixRow>>())
    }
}
