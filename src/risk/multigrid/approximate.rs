//! Approximate aggregation: what almost goes together becomes one node. It may order work and proves nothing.
//!
//! No count leaves this file, only estimates: a type of their own, from which neither [`Counts`] nor
//! [`Exact`](super::Exact) can be made. Pairwise estimates miss triples whose pairs are all common.

use super::counts::{Counts, Node};
use std::collections::BTreeMap;

/// When one node is strongly connected to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Strength {
    /// u depends on v where P(v|u) = n(u, v) / n(u) ≥ τ, in [0, 1]. The measure of [POD] §5.2, where 0.95 is said to
    /// do.
    Classical { tau: f64 },
    /// n(u, v) ≥ θ·√(n(u)·n(v)), θ in [0, 1]: the measure of smoothed aggregation [VAN].
    Symmetric { theta: f64 },
}

impl Default for Strength {
    fn default() -> Self {
        Self::Classical { tau: 0.95 }
    }
}

impl Strength {
    /// How strongly u depends on v, in [0, 1]; `None` where that is too weak.
    fn of(self, of_u: f64, of_v: f64, together: f64) -> Option<f64> {
        let (strength, least) = match self {
            Self::Classical { tau } => (together / of_u, tau),
            Self::Symmetric { theta } => (together / (of_u * of_v).sqrt(), theta),
        };
        (strength >= least).then_some(strength)
    }
}

/// The hierarchy of approximately aggregated nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Approximate {
    /// For each level, the aggregate of each finer node.
    levels: Vec<Vec<Node>>,
    defects: Vec<f64>,
    estimates: Estimates,
}

/// Weighted means of counts: a matrix like that of [`Counts`], and no counts.
#[derive(Clone, Debug, PartialEq)]
struct Estimates {
    nodes: Vec<f64>,
    edges: Vec<Vec<(Node, f64)>>,
}

impl Approximate {
    /// Aggregates until nothing merges, `most_levels` times at most. `attributes[u]` is the attribute of u: an aggregate
    /// holds one value of an attribute at most.
    ///
    /// Time: for each level its edges, and the sorting of its nodes.
    ///
    /// # Panics
    /// When there is not one attribute a node.
    #[must_use]
    pub fn of(fine: &Counts, attributes: &[u32], strength: Strength, most_levels: usize) -> Self {
        assert_eq!(fine.numbers().len(), attributes.len(), "one attribute a node");
        let mut found = Self { levels: Vec::new(), defects: Vec::new(), estimates: Estimates::of(fine) };
        let mut attributes: Vec<Vec<u32>> = attributes.iter().map(|a| vec![*a]).collect();
        while found.levels.len() < most_levels {
            let aggregates = aggregates(&found.estimates, &attributes, strength);
            if aggregates.len() == attributes.len() {
                break;
            }
            found.defects.push(found.estimates.defect(&aggregates));
            let mut aggregate_of = vec![0; attributes.len()];
            for (number, members) in (0..).zip(&aggregates) {
                members.iter().for_each(|node| aggregate_of[*node as usize] = number);
            }
            found.estimates = found.estimates.aggregated(&aggregates, &aggregate_of);
            let of_members =
                |members: &Vec<Node>| members.iter().flat_map(|n| attributes[*n as usize].clone()).collect();
            attributes = aggregates.iter().map(of_members).collect();
            found.levels.push(aggregate_of);
        }
        found
    }

    /// The lumpability defect of each level, in [0, 1]: `max |P(B|i) − P(B|i′)|` over nodes i, i′ of one aggregate and
    /// aggregates B, where P(B|i) is the mean of P(b|i) over the nodes b of B but i. 0 where merged nodes infer alike.
    #[must_use]
    pub fn defects(&self) -> &[f64] {
        &self.defects
    }

    /// The coarsest aggregate of a fine node.
    #[must_use]
    pub fn aggregate(&self, fine: Node) -> Node {
        self.levels.iter().fold(fine, |node, aggregate_of| aggregate_of[node as usize])
    }

    /// Coarsest aggregates, and their edges.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let edges = self.estimates.edges.iter().map(Vec::len).sum::<usize>() / 2;
        (self.estimates.nodes.iter().filter(|n| **n > 0.0).count(), edges)
    }

    /// About n(u, v), records: the mean over all pairs of nodes that the aggregates of u and v stand for, weighted by the
    /// counts of both; of two nodes in one aggregate, the mean of n: as if the one were certain of the other.
    #[must_use]
    pub fn estimate(&self, u: Node, v: Node) -> f64 {
        self.estimates.between(self.aggregate(u), self.aggregate(v))
    }
}

impl Estimates {
    fn of(counts: &Counts) -> Self {
        let row = |u| counts.neighbours(u).iter().map(|(v, n)| (*v, f64::from(*n))).collect();
        Self {
            nodes: counts.numbers().map(|u| f64::from(counts.of(u))).collect(),
            edges: counts.numbers().map(row).collect(),
        }
    }

    fn between(&self, u: Node, v: Node) -> f64 {
        if u == v {
            return self.nodes[u as usize];
        }
        let row = &self.edges[u as usize];
        row.binary_search_by_key(&v, |(w, _)| *w).map_or(0.0, |at| row[at].1)
    }

    /// PᵀNP, where P has n(i) / Σ n for the members i of an aggregate; on the diagonal the mean of n(i) by the same
    /// weights. So n(C, D) ≤ n(C) as among counts, and P(D|C) stays a share.
    fn aggregated(&self, aggregates: &[Vec<Node>], aggregate_of: &[Node]) -> Self {
        let totals: Vec<f64> =
            aggregates.iter().map(|members| members.iter().map(|i| self.nodes[*i as usize]).sum()).collect();
        let weight = |node: Node| {
            let total: f64 = totals[aggregate_of[node as usize] as usize];
            if total > 0.0 { self.nodes[node as usize] / total } else { 0.0 }
        };
        let mut coarse = Self { nodes: Vec::new(), edges: Vec::new() };
        for (number, members) in (0..).zip(aggregates) {
            let mut row: BTreeMap<Node, f64> = BTreeMap::new();
            for &i in members {
                for (j, n) in &self.edges[i as usize] {
                    *row.entry(aggregate_of[*j as usize]).or_default() += weight(i) * weight(*j) * n;
                }
            }
            row.remove(&number);
            coarse.nodes.push(members.iter().map(|i| weight(*i) * self.nodes[*i as usize]).sum());
            coarse.edges.push(row.into_iter().collect());
        }
        coarse
    }

    fn defect(&self, aggregates: &[Vec<Node>]) -> f64 {
        let mut aggregate_of = vec![0; self.nodes.len()];
        for (number, members) in aggregates.iter().enumerate() {
            members.iter().for_each(|node| aggregate_of[*node as usize] = number);
        }
        let mut defect = 0.0_f64;
        for (number, members) in aggregates.iter().enumerate().filter(|(_, members)| members.len() > 1) {
            // For each aggregate the least and the most that a member infers of it, and how many infer anything.
            let mut reach: BTreeMap<usize, (f64, f64, usize)> = BTreeMap::new();
            for &i in members {
                let mut inferred: BTreeMap<usize, f64> = BTreeMap::new();
                for (j, n) in &self.edges[i as usize] {
                    *inferred.entry(aggregate_of[*j as usize]).or_default() += n / self.nodes[i as usize];
                }
                for (block, sum) in inferred {
                    let mean = sum / (aggregates[block].len() - usize::from(block == number)) as f64;
                    let (least, most, times) = reach.entry(block).or_insert((mean, mean, 0));
                    (*least, *most, *times) = (least.min(mean), most.max(mean), *times + 1);
                }
            }
            for (least, most, times) in reach.into_values() {
                let least = if times < members.len() { 0.0 } else { least };
                defect = defect.max(most - least);
            }
        }
        defect
    }
}

/// Greedy aggregation in two passes, nodes of many records first. A node whose strong neighbours are all free gathers
/// them; then what is left joins the aggregate that it depends on most, or stays alone.
fn aggregates(estimates: &Estimates, attributes: &[Vec<u32>], strength: Strength) -> Vec<Vec<Node>> {
    let of = |node: Node| estimates.nodes[node as usize];
    let depends = |u: Node, v: Node, n: f64| strength.of(of(u), of(v), n);
    let mut order: Vec<Node> = (0..estimates.nodes.len() as Node).collect();
    order.sort_by(|a, b| of(*b).total_cmp(&of(*a)).then(a.cmp(b)));

    let mut home: Vec<Option<usize>> = vec![None; order.len()];
    let mut aggregates: Vec<Vec<Node>> = Vec::new();
    let mut held: Vec<Vec<u32>> = Vec::new();
    let fits = |held: &[u32], node: Node| attributes[node as usize].iter().all(|a| !held.contains(a));
    for &seed in &order {
        let strong: Vec<Node> = estimates.edges[seed as usize]
            .iter()
            .filter(|(v, n)| depends(*v, seed, *n).is_some())
            .map(|(v, _)| *v)
            .collect();
        if home[seed as usize].is_some() || strong.is_empty() || strong.iter().any(|v| home[*v as usize].is_some()) {
            continue;
        }
        let (mut members, mut own) = (Vec::new(), Vec::new());
        for node in [seed].into_iter().chain(strong) {
            if fits(&own, node) {
                home[node as usize] = Some(aggregates.len());
                own.extend(&attributes[node as usize]);
                members.push(node);
            }
        }
        aggregates.push(members);
        held.push(own);
    }
    for &node in &order {
        if home[node as usize].is_some() {
            continue;
        }
        let joined = estimates.edges[node as usize]
            .iter()
            .filter_map(|(v, n)| Some((home[*v as usize]?, depends(node, *v, *n)?)))
            .filter(|(at, _)| fits(&held[*at], node))
            .reduce(|best, next| if next.1 > best.1 { next } else { best });
        let at = joined.map_or(aggregates.len(), |(at, _)| at);
        if at == aggregates.len() {
            aggregates.push(Vec::new());
            held.push(Vec::new());
        }
        home[node as usize] = Some(at);
        aggregates[at].push(node);
        held[at].extend(&attributes[node as usize]);
    }
    aggregates.iter_mut().for_each(|members| members.sort_unstable());
    aggregates.sort_unstable();
    aggregates
}
