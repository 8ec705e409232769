//! One level of exact aggregation.

use super::implications::{certain_implications, equivalent_nodes};
use super::node_counts::{NodeCounts, NodeNumber, SparseMatrixRow, SparseNodeSum};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Map from the nodes of a level to the next coarser one.
///
/// Nodes with equal records form a class. Its records are the disjoint union of its coarse node, if any, and its hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregationLevel {
    /// Class of each finer node.
    class: Vec<NodeNumber>,
    /// Classes that imply a class and represent their records in it.
    hosts: Vec<Vec<NodeNumber>>,
    coarse: Vec<Option<NodeNumber>>,
}

pub(super) struct CoarsenedLevel {
    pub(super) level: AggregationLevel,
    pub(super) counts: NodeCounts,
    pub(super) attributes: Vec<u32>,
}

/// `None` if no nodes can be merged. `attributes[u]` is the attribute of u.
pub(super) fn coarsen_level(counts: &NodeCounts, attributes: &[u32]) -> Option<CoarsenedLevel> {
    let members = equivalent_nodes(&certain_implications(counts));
    let mut class = vec![0; attributes.len()];
    for (number, members) in (0..).zip(&members) {
        members.iter().for_each(|node| class[*node as usize] = number);
    }
    // Members have equal counts; rows of PᵀNP are these times the number of member pairs.
    let representatives: Vec<NodeNumber> = members.iter().map(|members| members[0]).collect();
    let merges = members.len() < counts.numbers().len();
    let merged = if merges {
        Cow::Owned(counts.galerkin_product(&representatives.iter().map(|node| vec![(*node, 1)]).collect::<Vec<_>>()))
    } else {
        Cow::Borrowed(counts)
    };
    let attribute_of: Vec<u32> = representatives.iter().map(|node| attributes[*node as usize]).collect();

    let mut rest = SparseNodeSum::new(members.len());
    let hosts: Vec<Vec<NodeNumber>> =
        merged.numbers().map(|v| choose_hosts(&merged, &attribute_of, v, &mut rest)).collect();
    let (mut coarse, mut rows, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (v, hosts) in (0..).zip(&hosts) {
        let left = merged.node_records(v) - hosts.iter().map(|u| merged.node_records(*u)).sum::<u32>();
        coarse.push((left > 0).then_some(rows.len() as NodeNumber));
        if left > 0 {
            rows.push([(v, 1)].into_iter().chain(hosts.iter().map(|u| (*u, -1))).collect::<SparseMatrixRow>());
            kept.push(attribute_of[v as usize]);
        }
    }
    let absorbs = hosts.iter().any(|hosts| !hosts.is_empty());
    let drops = rows.len() < members.len();
    (merges || absorbs || drops).then(|| {
        let counts = merged.galerkin_product(&rows);
        CoarsenedLevel { level: AggregationLevel { class, hosts, coarse }, counts, attributes: kept }
    })
}

/// Returns nodes that imply v, of the attribute that covers most of v; empty if this saves no node and no edge.
fn choose_hosts(counts: &NodeCounts, attributes: &[u32], v: NodeNumber, rest: &mut SparseNodeSum) -> Vec<NodeNumber> {
    let mut by_attribute: BTreeMap<u32, (u32, Vec<NodeNumber>)> = BTreeMap::new();
    for &(u, together) in counts.neighbours(v) {
        if together == counts.node_records(u) {
            let (covered, hosts) = by_attribute.entry(attributes[u as usize]).or_default();
            *covered += together;
            hosts.push(u);
        }
    }
    // Ties go to fewer hosts, then to the first attribute.
    let best = by_attribute.into_values().reduce(|best, next| {
        let better = (next.0, best.1.len()) > (best.0, next.1.len());
        if better { next } else { best }
    });
    let Some((covered, hosts)) = best else { return Vec::new() };
    if covered == counts.node_records(v) {
        return hosts;
    }
    counts.neighbours(v).iter().for_each(|(w, n)| rest.add(*w, i64::from(*n)));
    for u in &hosts {
        rest.add(*u, -i64::from(counts.node_records(*u)));
        counts.neighbours(*u).iter().filter(|(w, _)| *w != v).for_each(|(w, n)| rest.add(*w, -i64::from(*n)));
    }
    let mut left = 0;
    rest.drain(|_, _| left += 1);
    if left + hosts.len() < counts.neighbours(v).len() { hosts } else { Vec::new() }
}

impl AggregationLevel {
    /// Returns the coarse nodes that partition the records of a finer node, ascending.
    pub fn parts(&self, finer: NodeNumber) -> Vec<NodeNumber> {
        let (mut parts, mut open) = (Vec::new(), vec![self.class[finer as usize]]);
        while let Some(class) = open.pop() {
            parts.extend(self.coarse[class as usize]);
            open.extend(&self.hosts[class as usize]);
        }
        parts.sort_unstable();
        parts
    }

    /// Number of finer nodes.
    pub fn finer_node_count(&self) -> usize {
        self.class.len()
    }

    /// Number of implications in addition to classes.
    pub fn hosted_implications(&self) -> usize {
        self.hosts.iter().map(Vec::len).sum()
    }
}
