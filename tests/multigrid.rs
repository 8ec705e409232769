//! Tests the multigrid on the health table ([POD] Appendix A): identical columns are counted and searched once.

use std::collections::BTreeMap;
use throng::generate::{HealthRecordStream, HealthSettings, RecordLayout, RecordStream};
use throng_risk::adjacency::{Adjacency, AdjacencyLimits};
use throng_risk::counting::{AttributeSet, CountedTable};
use throng_risk::multigrid::{
    AggregationLevel, AttributeAggregation, CoarseAdjacency, ExactAggregation, MergePolicy, NodeCounts,
};
use throng_risk::qid::{QidSearchRequest, QidStrategy, search, search_without_aggregation};

const ROWS: usize = 600;

fn legacy_health() -> Vec<Vec<u32>> {
    let settings = HealthSettings { seed: 1, legacy: true, layout: RecordLayout::Csv };
    let mut stream = HealthRecordStream::new(settings);
    let mut text = Vec::new();
    stream.header(&mut text);
    for _ in 0..ROWS {
        stream.append(&mut text);
        text.push(b'\n');
    }
    let mut reader = csv::Reader::from_reader(text.as_slice());
    let mut columns: Vec<(BTreeMap<Vec<u8>, u32>, Vec<u32>)> = vec![(BTreeMap::new(), Vec::new()); 107];
    for record in reader.byte_records() {
        for ((book, codes), cell) in columns.iter_mut().zip(&record.expect("a record")) {
            let next = book.len() as u32;
            codes.push(*book.entry(cell.to_vec()).or_insert(next));
        }
    }
    columns.into_iter().filter(|(book, _)| book.len() * 10 < ROWS * 8).map(|(_, codes)| codes).collect()
}

fn share(left: usize, of: usize) -> f64 {
    left as f64 / of as f64
}

#[test]
fn multigrid_removes_most_nodes_and_keeps_all_counts() {
    let columns = legacy_health();
    let attributes: Vec<usize> = (0..columns.len()).collect();
    let limits = AdjacencyLimits { max_edges: u64::MAX };
    let mut fine = Adjacency::new(&attributes, limits).expect("attributes");
    fine.add(&columns).expect("a batch");
    let mut coarse = CoarseAdjacency::new(&attributes, limits).expect("attributes");
    coarse.add(&columns).expect("a batch");
    coarse.coarsen(&columns, MergePolicy::Determined).expect("the window");
    assert!(coarse.to_fine_adjacency().expect("whole") == fine, "columns have lost a count");

    // Columns first, then the values of the remaining columns.
    let (counts, values) = NodeCounts::of_model(&fine).expect("all pairs");
    let of_values: Vec<u32> = values.iter().map(|value| value.attribute as u32).collect();
    let exact = ExactAggregation::of(&counts, &of_values);
    assert!(exact.to_fine_counts() == counts, "values have lost a count");
    let hosted: usize = exact.levels().iter().map(AggregationLevel::hosted_implications).sum();
    let nodes = share(exact.coarse().nodes(), counts.nodes());
    // Edges replaced by the map still exist.
    let edges = share(exact.coarse().edges() + hosted, counts.edges());
    assert!(nodes <= 0.2 && edges <= 0.2, "left are {nodes:.3} of the nodes, {edges:.3} of the edges");
    let counted = share(coarse.counted().edge_count() as usize, counts.edges());
    assert!(counted <= 0.2, "counted are {counted:.3} of the edges");
}

#[test]
fn multigrid_searches_identical_columns_once() {
    let table = CountedTable::new(legacy_health(), None).expect("a table").masked(50);
    let all = AttributeSet::first(table.width());
    let attributes = AttributeAggregation::of(&table, &all);
    assert!(attributes.kept().len() + 4 * 19 <= table.width(), "{} kept", attributes.kept().len());
    // One member of each family and the columns of the subject.
    let few: AttributeSet = attributes.kept().iter().copied().collect();
    let question = QidSearchRequest {
        k: 50,
        strategy: QidStrategy::Border,
        threads: 2,
        budget: None,
        memory: None,
        columns: few.clone(),
    };
    let apart = search_without_aggregation(&table, &question, &|_| ());
    let together = search(&table, &QidSearchRequest { columns: all, ..question }, &|_| ());
    assert!(together.complete && apart.complete);
    let within = together.minimal_qids.iter().filter(|set| set.is_subset(&few)).cloned().collect::<Vec<_>>();
    assert_eq!(within, apart.minimal_qids);
    assert_eq!(together.maximal_non_qids.len(), apart.maximal_non_qids.len());
}
