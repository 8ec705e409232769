//! The graph of certain implications: u ⇒ v where every record with u has v.

use super::counts::{Counts, NodeNumber};
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;

/// An edge from u to v for each certain implication between two nodes that some record has.
///
/// The relation is transitive as it stands, and a chain in it passes through each attribute at most once: two values of
/// one attribute share no record. So no walk in it is longer than the attributes are many.
pub(super) fn certain(counts: &Counts) -> DiGraph<(), (), NodeNumber> {
    let mut graph = DiGraph::with_capacity(counts.numbers().len(), 0);
    counts.numbers().for_each(|_| {
        graph.add_node(());
    });
    for u in counts.numbers() {
        for &(v, together) in counts.neighbours(u) {
            if together == counts.of(u) {
                graph.add_edge(u.into(), v.into(), ());
            }
        }
    }
    graph
}

/// The nodes that imply each other: the strongly connected components, each ascending, in the order of their smallest
/// nodes.
pub(super) fn equivalent(graph: &DiGraph<(), (), NodeNumber>) -> Vec<Vec<NodeNumber>> {
    let ascending = |component: Vec<petgraph::graph::NodeIndex>| {
        let mut nodes: Vec<NodeNumber> = component.into_iter().map(|index| index.index() as NodeNumber).collect();
        nodes.sort_unstable();
        nodes
    };
    let mut classes: Vec<Vec<NodeNumber>> = tarjan_scc(graph).into_iter().map(ascending).collect();
    classes.sort_unstable();
    classes
}
