//! One level of exact aggregation: what goes together becomes one node, what is implied keeps only the rest of its
//! records.

use super::counts::{Counts, NodeNumber, Row, Sum};
use super::implications::{certain, equivalent};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The map from the nodes of one level to those of the next coarser one.
///
/// Every node is a set of records. A class's records are those of its coarse node, where it has one, and of its hosts,
/// all of them disjoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The class of each finer node: the nodes with the same records.
    class: Vec<NodeNumber>,
    /// For each class, the classes that imply it and that stand for their records in it.
    hosts: Vec<Vec<NodeNumber>>,
    /// For each class, the coarse node of the records that are left.
    coarse: Vec<Option<NodeNumber>>,
}

/// A level with the counts and the attributes of its coarse nodes.
pub(super) struct Coarsened {
    pub(super) level: Level,
    pub(super) counts: Counts,
    pub(super) attributes: Vec<u32>,
}

/// The next coarser level; `None` where nothing merges. `attributes[u]` is the attribute of u: two nodes of one
/// attribute share no record.
pub(super) fn coarsened(counts: &Counts, attributes: &[u32]) -> Option<Coarsened> {
    let members = equivalent(&certain(counts));
    let mut class = vec![0; attributes.len()];
    for (number, members) in (0..).zip(&members) {
        members.iter().for_each(|node| class[*node as usize] = number);
    }
    // Any member has the counts of all. Merged rows of PᵀNP are these, as often as there are pairs of members.
    let representatives: Vec<NodeNumber> = members.iter().map(|members| members[0]).collect();
    let merges = members.len() < counts.numbers().len();
    let merged = if merges {
        Cow::Owned(counts.product(&representatives.iter().map(|node| vec![(*node, 1)]).collect::<Vec<_>>()))
    } else {
        Cow::Borrowed(counts)
    };
    let attribute_of: Vec<u32> = representatives.iter().map(|node| attributes[*node as usize]).collect();

    let mut rest = Sum::new(members.len());
    let hosts: Vec<Vec<NodeNumber>> = merged.numbers().map(|v| hosts(&merged, &attribute_of, v, &mut rest)).collect();
    let (mut coarse, mut rows, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (v, hosts) in (0..).zip(&hosts) {
        let left = merged.of(v) - hosts.iter().map(|u| merged.of(*u)).sum::<u32>();
        coarse.push((left > 0).then_some(rows.len() as NodeNumber));
        if left > 0 {
            rows.push([(v, 1)].into_iter().chain(hosts.iter().map(|u| (*u, -1))).collect::<Row>());
            kept.push(attribute_of[v as usize]);
        }
    }
    let absorbs = hosts.iter().any(|hosts| !hosts.is_empty());
    let drops = rows.len() < members.len();
    (merges || absorbs || drops).then(|| {
        let counts = merged.product(&rows);
        Coarsened { level: Level { class, hosts, coarse }, counts, attributes: kept }
    })
}

/// The nodes that imply v and are to stand for their records in it: those of the attribute that covers most of v.
/// None where no node and no edge would be saved but the implications themselves, which become entries of the map.
fn hosts(counts: &Counts, attributes: &[u32], v: NodeNumber, rest: &mut Sum) -> Vec<NodeNumber> {
    let mut by_attribute: BTreeMap<u32, (u32, Vec<NodeNumber>)> = BTreeMap::new();
    for &(u, together) in counts.neighbours(v) {
        if together == counts.of(u) {
            let (covered, hosts) = by_attribute.entry(attributes[u as usize]).or_default();
            *covered += together;
            hosts.push(u);
        }
    }
    // Of equal cover the fewer hosts, of equally many the first attribute: the nearest link of a chain.
    let best = by_attribute.into_values().reduce(|best, next| {
        let better = (next.0, best.1.len()) > (best.0, next.1.len());
        if better { next } else { best }
    });
    let Some((covered, hosts)) = best else { return Vec::new() };
    if covered == counts.of(v) {
        return hosts;
    }
    counts.neighbours(v).iter().for_each(|(w, n)| rest.add(*w, i64::from(*n)));
    for u in &hosts {
        rest.add(*u, -i64::from(counts.of(*u)));
        counts.neighbours(*u).iter().filter(|(w, _)| *w != v).for_each(|(w, n)| rest.add(*w, -i64::from(*n)));
    }
    let mut left = 0;
    rest.drain(|_, _| left += 1);
    if left + hosts.len() < counts.neighbours(v).len() { hosts } else { Vec::new() }
}

impl Level {
    /// The coarse nodes whose records, all disjoint, are the finer node's; ascending.
    pub fn parts(&self, finer: NodeNumber) -> Vec<NodeNumber> {
        let (mut parts, mut open) = (Vec::new(), vec![self.class[finer as usize]]);
        while let Some(class) = open.pop() {
            parts.extend(self.coarse[class as usize]);
            open.extend(&self.hosts[class as usize]);
        }
        parts.sort_unstable();
        parts
    }

    /// Numbers of finer nodes.
    pub fn finer(&self) -> usize {
        self.class.len()
    }

    /// Entries of the map beside the one that each finer node has: implications that stand for edges.
    pub fn hosted(&self) -> usize {
        self.hosts.iter().map(Vec::len).sum()
    }
}
