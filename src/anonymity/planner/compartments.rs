//! Groups from quasi-identifiers (docs/methods.md §10.2): the compartments of [POD] §6.2, and the exact ones.
//!
//! [POD] Def. 10 joins two attributes by an edge where they meet in a quasi-identifier; a compartment is a maximal clique of the
//! complement. That forbids every pair of a quasi-identifier although to break one link is enough: the maximal sets
//! that are no quasi-identifiers are larger. Both overlap; a release needs disjoint groups, so a cover is chosen of them.

use super::dependence::Dependence;
use petgraph::algo::maximal_cliques;
use petgraph::graph::{NodeIndex, UnGraph};
use std::collections::BTreeSet;
use throng_risk::counting::AttributeSet;

/// Attributes at most whose maximal cliques are listed: there are up to 3^(n/3) of them.
pub const MOST_ATTRIBUTES: usize = 40;

/// The maximal cliques of the complement of the graph whose edges join attributes of a quasi-identifier, each ascending, in
/// canonical order. An attribute that is a quasi-identifier by itself is a clique of its own.
///
/// `attributes` are at most [`MOST_ATTRIBUTES`]; `qids` are sets of them.
pub fn cliques(attributes: &[usize], qids: &[AttributeSet]) -> Vec<Vec<usize>> {
    let apart = |a: usize, b: usize| qids.iter().any(|qid| qid.contains(a) && qid.contains(b));
    let alone = |a: usize| qids.iter().any(|qid| qid.is_empty() || qid.len() == 1 && qid.contains(a));
    let mut graph: UnGraph<usize, ()> = UnGraph::new_undirected();
    let nodes: Vec<NodeIndex> = attributes.iter().map(|&a| graph.add_node(a)).collect();
    for (at, &a) in attributes.iter().enumerate() {
        for (before, &b) in attributes[..at].iter().enumerate() {
            if !apart(a, b) && !alone(a) && !alone(b) {
                graph.add_edge(nodes[before], nodes[at], ());
            }
        }
    }
    let found = maximal_cliques(&graph).into_iter();
    let mut found: Vec<Vec<usize>> = found.map(|clique| clique.into_iter().map(|node| graph[node]).collect()).collect();
    found.iter_mut().for_each(|clique| clique.sort_unstable());
    found.sort();
    found
}

/// Disjoint groups that cover `attributes`, each a part of one of `sets`: the set first whose attributes say most of each other,
/// of equals the widest, of equals the first; its attributes are taken out of the others. What no set holds stays alone.
///
/// No group is wider than `widest`: of a wider set those stay that say most of each other. `alike` attributes only meet.
pub fn cover(
    attributes: &[usize],
    sets: &[Vec<usize>],
    dependence: &Dependence,
    alike: &dyn Fn(usize, usize) -> bool,
    widest: usize,
) -> Vec<Vec<usize>> {
    let mut left: BTreeSet<usize> = attributes.iter().copied().collect();
    let mut groups = Vec::new();
    while let Some(&first) = left.first() {
        let mut best = vec![first];
        let mut best_worth = (0.0, 1);
        for set in sets {
            for part in parts(set.iter().copied().filter(|a| left.contains(a)), alike) {
                let part = narrowed(part, dependence, widest);
                let worth = (dependence.inside(&part), part.len());
                if worth.0 > best_worth.0 || worth.0 >= best_worth.0 && worth.1 > best_worth.1 {
                    (best, best_worth) = (part, worth);
                }
            }
        }
        best.iter().for_each(|a| {
            left.remove(a);
        });
        groups.push(best);
    }
    groups.sort();
    groups
}

/// The parts of a set whose attributes are alike.
fn parts(set: impl Iterator<Item = usize>, alike: &dyn Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for a in set {
        match parts.iter_mut().find(|part| alike(part[0], a)) {
            Some(part) => part.push(a),
            None => parts.push(vec![a]),
        }
    }
    parts
}

/// Without those that say least of the rest, until it is no wider than `widest`.
fn narrowed(mut set: Vec<usize>, dependence: &Dependence, widest: usize) -> Vec<usize> {
    while set.len() > widest {
        let said = |a: &usize| dependence.said_of(*a, &set);
        let least = set.iter().enumerate().min_by(|a, b| said(a.1).total_cmp(&said(b.1))).map_or(0, |(at, _)| at);
        set.remove(least);
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sets(of: &[&[usize]]) -> Vec<AttributeSet> {
        of.iter().map(|set| set.iter().copied().collect()).collect()
    }

    #[test]
    fn a_compartment_never_holds_two_attributes_of_a_quasi_identifier() {
        // {0, 1} and {1, 2, 3}: 0 may leave with 2 or with 3, 1 with none of them, 4 with all.
        let found = cliques(&[0, 1, 2, 3, 4], &sets(&[&[0, 1], &[1, 2, 3]]));
        assert_eq!(found, [vec![0, 2, 4], vec![0, 3, 4], vec![1, 4]]);
        assert_eq!(cliques(&[0, 1, 2], &sets(&[&[1]])), [vec![0, 2], vec![1]], "a quasi-identifier by itself");
        assert_eq!(cliques(&[0, 1], &sets(&[&[]])), [vec![0], vec![1]], "a table below k");
        assert_eq!(cliques(&[3, 5], &[]), [vec![3, 5]]);
    }

    fn subset() -> impl Strategy<Value = Vec<usize>> {
        proptest::collection::btree_set(0_usize..9, 1..5).prop_map(|set| set.into_iter().collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// Cliques against their definition, read over all subsets.
        #[test]
        fn cliques_are_all_largest_sets_without_a_pair_that_meets(found in proptest::collection::vec(subset(), 0..6)) {
            let qids: Vec<AttributeSet> = found.iter().map(|set| set.iter().copied().collect()).collect();
            let all: Vec<usize> = (0..9).collect();
            let free = |mask: u32| {
                let meets = |set: &Vec<usize>| set.iter().filter(|a| mask >> **a & 1 == 1).count();
                let lone = |set: &Vec<usize>| set.len() == 1 && meets(set) == 1 && mask.count_ones() > 1;
                found.iter().all(|set| meets(set) < 2 && !lone(set))
            };
            let mut expected: Vec<Vec<usize>> = (1_u32..1 << 9)
                .filter(|&mask| free(mask) && (0..9).all(|a| mask >> a & 1 == 1 || !free(mask | 1 << a)))
                .map(|mask| (0..9).filter(|a| mask >> a & 1 == 1).collect())
                .collect();
            expected.sort();
            prop_assert_eq!(cliques(&all, &qids), expected);
        }

        /// A cover is disjoint and whole, and each group is a part of a set or alone.
        #[test]
        fn a_cover_is_disjoint_and_whole(
            found in proptest::collection::vec(subset(), 0..8), widest in 1_usize..6, still in 0_usize..9,
        ) {
            let all: Vec<usize> = (0..9).collect();
            let alike = |a: usize, b: usize| (a < still) == (b < still);
            let groups = cover(&all, &found, &Dependence::default(), &alike, widest);
            let mut covered = groups.concat();
            covered.sort_unstable();
            prop_assert_eq!(covered, all);
            for group in groups {
                prop_assert!(group.len() <= widest && group.iter().all(|&a| alike(group[0], a)));
                prop_assert!(group.len() == 1 || found.iter().any(|set| group.iter().all(|a| set.contains(a))));
            }
        }
    }
}
