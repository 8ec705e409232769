//! Exact aggregation over several levels: every count can be recovered.

use super::aggregation_level::{AggregationLevel, coarsen_level};
use super::node_counts::{NodeCounts, NodeNumber, SparseMatrixRow};

/// Hierarchy of exactly aggregated nodes, finest level first.
///
/// P is the 0/1 matrix of [`parts`](Self::parts), with one row per fine node and one column per coarse node. N are
/// the counts of the nodes. Then `N_fine = P · N_coarse · Pᵀ`, entry by entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactAggregation {
    levels: Vec<AggregationLevel>,
    coarse: NodeCounts,
}

impl ExactAggregation {
    /// Aggregates until no nodes can be merged. `attributes[u]` is the attribute of u.
    ///
    /// Terminates, since each level has fewer nodes than the one before, or its nodes have fewer records in total.
    ///
    /// Time: for each level its edges, and for each node the edges of its hosts.
    ///
    /// # Panics
    /// Panics if there is not exactly one attribute per node.
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

    /// Returns the levels, finest first; empty if no nodes were merged.
    pub fn levels(&self) -> &[AggregationLevel] {
        &self.levels
    }

    /// Returns the counts of the coarsest level.
    pub fn coarse(&self) -> &NodeCounts {
        &self.coarse
    }

    /// Returns the coarsest nodes with disjoint records that form the records of the fine node, ascending.
    pub fn parts(&self, fine: NodeNumber) -> Vec<NodeNumber> {
        let mut parts = vec![fine];
        for level in &self.levels {
            parts = parts.iter().flat_map(|node| level.parts(*node)).collect();
        }
        parts.sort_unstable();
        parts
    }

    /// Returns the conjunction of each coarsest node: the ascending fine nodes that all of its records have.
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

    /// Returns n(u, v) of two fine nodes, or n(u) if both are equal, from the coarse counts alone.
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
