//! The counts of an adjacency as a sparse symmetric matrix N: n(u) on the diagonal, n(u, v) beside it.

use crate::adjacency::{self, Adjacency};
use std::ops::Range;

/// A value of an attribute, or what stands for several, by number.
pub type NodeNumber = u32;

/// How many records have a node, and how many have two together.
///
/// In records, never in subjects: of one subject's two records the one may have u and v and the other u alone, and then
/// u does not imply v although everybody who has u has v.
///
/// Memory: 16 bytes an edge, 28 a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    nodes: Vec<u32>,
    /// Neighbours of each node with their counts above zero, ascending; every edge stands at both its ends.
    edges: Vec<Vec<(NodeNumber, u32)>>,
}

/// Why the counts of a model allow no exact aggregation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum InexactError {
    #[error(
        "the model has left out {pairs} pairs of attributes, and what is not counted cannot be known to go together: raise its limit of edges"
    )]
    LeftOut { pairs: usize },
}

/// A row of a sparse integer matrix: columns with what stands there.
pub(super) type Row = Vec<(NodeNumber, i64)>;

impl Counts {
    /// From n(u) of every node and n(u, v) of every pair that occurs together, each pair once and in either order.
    ///
    /// # Panics
    /// When an edge names a node that is not there, or a node twice.
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

    /// The counts of a model, and the value of each node, ascending.
    ///
    /// # Errors
    /// When the model's counts are not those of all its records and pairs.
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

    /// Nodes that some record has.
    pub fn nodes(&self) -> usize {
        self.nodes.iter().filter(|n| **n > 0).count()
    }

    /// Pairs of nodes that some record has together.
    pub fn edges(&self) -> usize {
        self.edges.iter().map(Vec::len).sum::<usize>() / 2
    }

    /// All numbers, those of nodes that no record has among them.
    pub fn numbers(&self) -> Range<NodeNumber> {
        0..self.nodes.len() as NodeNumber
    }

    /// n(u).
    pub fn of(&self, u: NodeNumber) -> u32 {
        self.nodes[u as usize]
    }

    /// n(u, v); n(u) where they are one.
    pub fn between(&self, u: NodeNumber, v: NodeNumber) -> u32 {
        if u == v {
            return self.of(u);
        }
        let row = self.neighbours(u);
        row.binary_search_by_key(&v, |(w, _)| *w).map_or(0, |at| row[at].1)
    }

    /// Every v with n(u, v) > 0, ascending.
    pub fn neighbours(&self, u: NodeNumber) -> &[(NodeNumber, u32)] {
        &self.edges[u as usize]
    }

    /// The Galerkin product Q·N·Qᵀ for a sparse integer matrix Q, a row for each node of the result.
    ///
    /// Time: for each row of Q the neighbours of its nodes, each with the rows of Q that hold it.
    ///
    /// # Panics
    /// When the product has an entry outside the range of counts: then Q's rows are no sets of records.
    pub(super) fn product(&self, q: &[Row]) -> Self {
        let mut holders: Vec<Row> = vec![Vec::new(); self.nodes.len()];
        for (node, row) in (0..).zip(q) {
            row.iter().for_each(|(from, sign)| holders[*from as usize].push((node, *sign)));
        }
        let (mut half, mut whole) = (Sum::new(self.nodes.len()), Sum::new(q.len()));
        let mut product = Self { nodes: vec![0; q.len()], edges: vec![Vec::new(); q.len()] };
        // Most nodes of a level only get another number: (old, new).
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
                product.nodes[node as usize] = self.of(from);
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
                half.add(from, sign * i64::from(self.of(from)));
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

/// A sparse sum over nodes.
pub(super) struct Sum {
    sums: Vec<i64>,
    touched: Vec<NodeNumber>,
    is_touched: Vec<bool>,
}

impl Sum {
    pub(super) fn new(nodes: usize) -> Self {
        Self { sums: vec![0; nodes], touched: Vec::new(), is_touched: vec![false; nodes] }
    }

    pub(super) fn add(&mut self, node: NodeNumber, count: i64) {
        if !std::mem::replace(&mut self.is_touched[node as usize], true) {
            self.touched.push(node);
        }
        self.sums[node as usize] += count;
    }

    /// Every node whose sum is not zero, in the order of first mention; empties the sum.
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
