//! Certain implications u ⇒ v: every record with u has v.

use super::node_counts::{NodeCounts, NodeNumber};
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;

/// Values of one attribute share no record, so no path is longer than the number of attributes.
pub(super) fn certain_implications(counts: &NodeCounts) -> DiGraph<(), (), NodeNumber> {
    let mut graph = DiGraph::with_capacity(counts.numbers().len(), 0);
    counts.numbers().for_each(|_| {
        graph.add_node(());
    });
    for u in counts.numbers() {
        for &(v, together) in counts.neighbours(u) {
            if together == counts.node_records(u) {
                graph.add_edge(u.into(), v.into(), ());
            }
        }
    }
    graph
}

/// Ascending strongly connected components, ordered by smallest node.
pub(super) fn equivalent_nodes(graph: &DiGraph<(), (), NodeNumber>) -> Vec<Vec<NodeNumber>> {
    let ascending = |component: Vec<petgraph::graph::NodeIndex>| {
        let mut nodes: Vec<NodeNumber> = component.into_iter().map(|index| index.index() as NodeNumber).collect();
        nodes.sort_unstable();
        nodes
    };
    let mut classes: Vec<Vec<NodeNumber>> = tarjan_scc(graph).into_iter().map(ascending).collect();
    classes.sort_unstable();
    classes
}
