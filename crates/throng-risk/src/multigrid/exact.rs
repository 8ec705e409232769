//! Exact aggregation over several levels: nothing is lost, every count comes back.

use super::counts::{Counts, NodeNumber, Row};
use super::level::{Level, coarsened};

/// The hierarchy of exactly aggregated nodes, finest level first.
///
/// With P the 0/1 matrix of [`parts`](Self::parts) (a row a fine node, a column a coarse one) and N the counts of the
/// nodes, `N_fine = P · N_coarse · Pᵀ`, entry by entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    levels: Vec<Level>,
    coarse: Counts,
}

impl Exact {
    /// Aggregates until nothing merges. `attributes[u]` is the attribute of u.
    ///
    /// It ends: a level either has fewer nodes than the one before, or its nodes have fewer records in all.
    ///
    /// Time: for each level its edges, and for each node the edges of its hosts.
    ///
    /// # Panics
    /// When there is not one attribute a node.
    pub fn of(fine: &Counts, attributes: &[u32]) -> Self {
        assert_eq!(fine.numbers().len(), attributes.len(), "one attribute a node");
        let mut levels = Vec::new();
        let (mut coarse, mut attributes) = (None::<Counts>, attributes.to_vec());
        while let Some(next) = coarsened(coarse.as_ref().unwrap_or(fine), &attributes) {
            levels.push(next.level);
            (coarse, attributes) = (Some(next.counts), next.attributes);
        }
        Self { levels, coarse: coarse.unwrap_or_else(|| fine.clone()) }
    }

    /// Finest first; none where nothing merged.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Counts of the coarsest level.
    pub fn coarse(&self) -> &Counts {
        &self.coarse
    }

    /// The coarsest nodes whose records, all disjoint, are the fine node's; ascending.
    pub fn parts(&self, fine: NodeNumber) -> Vec<NodeNumber> {
        let mut parts = vec![fine];
        for level in &self.levels {
            parts = parts.iter().flat_map(|node| level.parts(*node)).collect();
        }
        parts.sort_unstable();
        parts
    }

    /// For each coarsest node the fine nodes that all of its records have, ascending: the conjunction that it stands for.
    pub fn conjunctions(&self) -> Vec<Vec<NodeNumber>> {
        let mut conjunctions = vec![Vec::new(); self.coarse.numbers().len()];
        for fine in 0..self.fine() {
            self.parts(fine).into_iter().for_each(|part| conjunctions[part as usize].push(fine));
        }
        conjunctions
    }

    fn fine(&self) -> NodeNumber {
        self.levels.first().map_or(self.coarse.numbers().len(), Level::finer) as NodeNumber
    }

    /// n(u, v) of two fine nodes, or n(u) where they are one, from the coarse counts alone.
    pub fn between(&self, u: NodeNumber, v: NodeNumber) -> u32 {
        let (of_u, of_v) = (self.parts(u), self.parts(v));
        of_u.iter().flat_map(|i| of_v.iter().map(|j| self.coarse.between(*i, *j))).sum()
    }

    /// The fine counts again: P · N · Pᵀ.
    pub fn prolonged(&self) -> Counts {
        let rows = (0..self.fine()).map(|fine| self.parts(fine).into_iter().map(|part| (part, 1)).collect());
        self.coarse.product(&rows.collect::<Vec<Row>>())
    }
}
