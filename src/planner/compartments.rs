//! Groups from quasi-identifiers: compartments of \[POD] §6.2, and maximal non-quasi-identifiers
//! (docs/internals/methods.md §10.2). \[POD] Def. 10: an edge joins two attributes of a quasi-identifier; compartments
//! are maximal cliques of the complement.

use petgraph::algo::maximal_cliques;
use petgraph::graph::{NodeIndex, UnGraph};
use std::collections::BTreeSet;
use throng_core::attribute_dependence::AttributeDependence;
use throng_risk::counting::AttributeSet;

/// Limit for listing up to 3^(n/3) maximal cliques.
pub const MAX_CLIQUE_ATTRIBUTES: usize = 40;

/// Returns maximal cliques of pairs without a common set of `qids`, in canonical order; a single-attribute
/// quasi-identifier stays alone. `attributes` are at most [`MAX_CLIQUE_ATTRIBUTES`].
pub fn find_compartments(attributes: &[usize], qids: &[AttributeSet]) -> Vec<Vec<usize>> {
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

/// Covers `attributes` with disjoint `alike` parts of `sets`, strongest dependence first, up to `widest`.
pub fn cover_attributes(
    attributes: &[usize],
    sets: &[Vec<usize>],
    dependence: &AttributeDependence,
    alike: &dyn Fn(usize, usize) -> bool,
    widest: usize,
) -> Vec<Vec<usize>> {
    let mut left: BTreeSet<usize> = attributes.iter().copied().collect();
    let mut groups = Vec::new();
    while let Some(&first) = left.first() {
        let mut best = vec![first];
        let mut best_worth = (0.0, 1);
        for set in sets {
            for part in split_alike_attributes(set.iter().copied().filter(|a| left.contains(a)), alike) {
                let part = narrow_to_width(part, dependence, widest);
                let worth = (dependence.group_information(&part), part.len());
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

fn split_alike_attributes(set: impl Iterator<Item = usize>, alike: &dyn Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for a in set {
        match parts.iter_mut().find(|part| alike(part[0], a)) {
            Some(part) => part.push(a),
            None => parts.push(vec![a]),
        }
    }
    parts
}

fn narrow_to_width(mut set: Vec<usize>, dependence: &AttributeDependence, widest: usize) -> Vec<usize> {
    while set.len() > widest {
        let said = |a: &usize| dependence.information_about(*a, &set);
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
    fn compartments_never_contain_two_attributes_of_a_quasi_identifier() {
        // 0 fits 2 or 3, 1 neither, 4 all.
        let found = find_compartments(&[0, 1, 2, 3, 4], &sets(&[&[0, 1], &[1, 2, 3]]));
        assert_eq!(found, [vec![0, 2, 4], vec![0, 3, 4], vec![1, 4]]);
        assert_eq!(
            find_compartments(&[0, 1, 2], &sets(&[&[1]])),
            [vec![0, 2], vec![1]],
            "a quasi-identifier by itself"
        );
        assert_eq!(find_compartments(&[0, 1], &sets(&[&[]])), [vec![0], vec![1]], "a table below k");
        assert_eq!(find_compartments(&[3, 5], &[]), [vec![3, 5]]);
    }

    fn subset() -> impl Strategy<Value = Vec<usize>> {
        proptest::collection::btree_set(0_usize..9, 1..5).prop_map(|set| set.into_iter().collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn compartments_match_definition_over_all_subsets(found in proptest::collection::vec(subset(), 0..6)) {
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
            prop_assert_eq!(find_compartments(&all, &qids), expected);
        }

        #[test]
        fn cover_is_disjoint_and_complete(
            found in proptest::collection::vec(subset(), 0..8), widest in 1_usize..6, still in 0_usize..9,
        ) {
            let all: Vec<usize> = (0..9).collect();
            let alike = |a: usize, b: usize| (a < still) == (b < still);
            let groups = cover_attributes(&all, &found, &AttributeDependence::default(), &alike, widest);
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
