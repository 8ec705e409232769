//! Counts of an adjacency as a sparse symmetric matrix.

use crate::adjacency::{self, Adjacency};
use std::ops::Range;

/// Number of a node: a value of an attribute, or a coarse node.
pub type NodeNumber = u32;

/// Matrix N of records, not subjects: n(u) on the diagonal, n(u, v) elsewhere.
///
/// Memory: 16 bytes per edge, 28 per node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    nodes: Vec<u32>,
    /// Positive counts, ascending; each edge is stored at both ends.
    edges: Vec<Vec<(NodeNumber, u32)>>,
}

/// Error of an aggregation from incomplete counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum InexactError {
    #[error("the model excludes {pairs} pairs of attributes, so their dependence is unknown: raise its limit of edges")]
    LeftOut { pairs: usize },
}

pub(super) type SparseMatrixRow = Vec<(NodeNumber, i64)>;

impl NodeCounts {
    /// Creates counts from n(u) per node and n(u, v) per occurring pair, each given once.
    ///
    /// # Panics
    /// If an edge has an unknown node, or one node twice.
    pub fn new(nodes: Vec<u32>, pairs: impl IntoIterator<Item = (NodeNumber, NodeNumber, u32)>) -> Self {
        let mut edges = vec![Vec::new(); nodes.len()];
        for (u, v, count) in pairs {
            assert_ne!(u, v, "no edge leads from a node to itself");
            if count > 0 {
                edges[u as usize].push((v, count));
                edges[v as usize].push((u, count));
            }
        }
        edges.iter_mut().for_each(|row: &mut Vec<(NodeNumber, u32)>| row.sort_unstable());
        Self { nodes, edges }
    }

    /// Returns the counts of a model, and the value of each node, ascending.
    ///
    /// # Errors
    /// If the model has left out pairs.
    pub fn of_model(model: &Adjacency) -> Result<(Self, Vec<adjacency::ValueNode>), InexactError> {
        let pairs = model.left_out_pairs().len();
        if pairs > 0 {
            return Err(InexactError::LeftOut { pairs });
        }
        let (values, nodes): (Vec<adjacency::ValueNode>, Vec<u32>) =
            model.nodes().map(|(node, n)| (node, n as u32)).unzip();
        let mut numbers: Vec<Vec<NodeNumber>> = Vec::new();
        for (number, value) in (0..).zip(&values) {
            if numbers.len() <= value.attribute {
                numbers.resize(value.attribute + 1, Vec::new());
            }
            let of_attribute = &mut numbers[value.attribute];
            of_attribute.resize(value.code as usize + 1, NodeNumber::MAX);
            of_attribute[value.code as usize] = number;
        }
        let number = |value: adjacency::ValueNode| numbers[value.attribute][value.code as usize];
        let edges = model.edges().map(|(u, v, n)| (number(u), number(v), n as u32));
        Ok((Self::new(nodes, edges), values))
    }

    /// Number of nodes with records.
    pub fn nodes(&self) -> usize {
        self.nodes.iter().filter(|n| **n > 0).count()
    }

    /// Number of node pairs with records.
    pub fn edges(&self) -> usize {
        self.edges.iter().map(Vec::len).sum::<usize>() / 2
    }

    /// All node numbers, including nodes without records.
    pub fn numbers(&self) -> Range<NodeNumber> {
        0..self.nodes.len() as NodeNumber
    }

    /// Returns n(u).
    pub fn node_records(&self, u: NodeNumber) -> u32 {
        self.nodes[u as usize]
    }

    /// Returns n(u, v), or n(u) if u = v.
    pub fn pair_records(&self, u: NodeNumber, v: NodeNumber) -> u32 {
        if u == v {
            return self.node_records(u);
        }
        let row = self.neighbours(u);
        row.binary_search_by_key(&v, |(w, _)| *w).map_or(0, |at| row[at].1)
    }

    /// Returns every v with n(u, v) > 0, ascending.
    pub fn neighbours(&self, u: NodeNumber) -> &[(NodeNumber, u32)] {
        &self.edges[u as usize]
    }

    /// Computes the Galerkin product Q·N·Qᵀ; Q has one row per node of the result.
    ///
    /// # Panics
    /// If an entry is outside the range of counts.
    pub(super) fn galerkin_product(&self, q: &[SparseMatrixRow]) -> Self {
        let mut holders: Vec<SparseMatrixRow> = vec![Vec::new(); self.nodes.len()];
        for (node, row) in (0..).zip(q) {
            row.iter().for_each(|(from, sign)| holders[*from as usize].push((node, *sign)));
        }
        let (mut half, mut whole) = (SparseNodeSum::new(self.nodes.len()), SparseNodeSum::new(q.len()));
        let mut product = Self { nodes: vec![0; q.len()], edges: vec![Vec::new(); q.len()] };
        // Most nodes only get another number.
        let renamed = |node: NodeNumber| match q[node as usize][..] {
            [(from, 1)] => (holders[from as usize][..] == [(node, 1)]).then_some(from),
            _ => None,
        };
        let mut new: Vec<Option<NodeNumber>> = vec![None; self.nodes.len()];
        for (node, from) in (0..q.len() as NodeNumber).filter_map(|node| renamed(node).map(|from| (node, from))) {
            new[from as usize] = Some(node);
        }
        for (node, row) in (0..).zip(q) {
            if let Some(from) = renamed(node) {
                product.nodes[node as usize] = self.node_records(from);
                let edges = &mut product.edges[node as usize];
                edges.reserve(self.neighbours(from).len());
                for &(v, n) in self.neighbours(from) {
                    match new[v as usize] {
                        Some(w) => edges.push((w, n)),
                        None => holders[v as usize].iter().for_each(|(w, sign)| whole.add(*w, sign * i64::from(n))),
                    }
                }
                whole.drain(|w, n| edges.push((w, u32::try_from(n).expect("counts of sets of records"))));
                edges.sort_unstable();
                continue;
            }
            for &(from, sign) in row {
                half.add(from, sign * i64::from(self.node_records(from)));
                self.neighbours(from).iter().for_each(|(v, n)| half.add(*v, sign * i64::from(*n)));
            }
            half.drain(|v, n| holders[v as usize].iter().for_each(|(w, sign)| whole.add(*w, sign * n)));
            whole.drain(|w, n| {
                let n = u32::try_from(n).expect("counts of sets of records");
                if w == node {
                    product.nodes[node as usize] = n;
                } else {
                    product.edges[node as usize].push((w, n));
                }
            });
            product.edges[node as usize].sort_unstable();
        }
        product
    }
}

pub(super) struct SparseNodeSum {
    sums: Vec<i64>,
    touched: Vec<NodeNumber>,
    is_touched: Vec<bool>,
}

impl SparseNodeSum {
    pub(super) fn new(nodes: usize) -> Self {
        Self { sums: vec![0; nodes], touched: Vec::new(), is_touched: vec![false; nodes] }
    }

    pub(super) fn add(&mut self, node: NodeNumber, count: i64) {
        if !std::mem::replace(&mut self.is_touched[node as usize], true) {
            self.touched.push(node);
        }
        self.sums[node as usize] += count;
    }

    /// Visits nonzero sums in order of first addition, and empties the sum.
    pub(super) fn drain(&mut self, mut each: impl FnMut(NodeNumber, i64)) {
        for node in self.touched.drain(..) {
            self.is_touched[node as usize] = false;
            let sum = std::mem::take(&mut self.sums[node as usize]);
            if sum != 0 {
                each(node, sum);
            }
        }
    }
}
