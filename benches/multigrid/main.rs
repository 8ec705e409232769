//! Compares the multigrid with the same work without it: equal answers, CPU time of all threads.
//!
//! `./dev bench multigrid -- PART… [rows=N] [k=K] [seconds=S]` runs the named parts: `adjacency`, `values`, `qid` and
//! `window`; by default the first three. Tables are those of `throng generate health`, independent and `--legacy`, with
//! the first 25, 50, 75 and 107 attributes, without identifiers.

mod tables;
mod window;

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tables::{Health, health};
use throng_risk::adjacency::{Adjacency, AdjacencyLimits};
use throng_risk::counting::AttributeSet;
use throng_risk::multigrid::{AttributeAggregation, CoarseAdjacency, ExactAggregation, MergePolicy, NodeCounts};
use throng_risk::qid::{
    QidBorders, QidSearchProgress, QidSearchRequest, QidStrategy, search, search_without_aggregation,
};

const WIDTHS: [usize; 4] = [25, 50, 75, 107];
const BATCH: usize = 1_000;
/// Runs per figure, the median.
const RUNS: usize = 3;
/// No pair is left out.
const LIMITS: AdjacencyLimits = AdjacencyLimits { max_edges: u64::MAX };

fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = cpu_seconds();
    let done = work();
    (done, cpu_seconds() - start)
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn less(before: f64, after: f64) -> f64 {
    if before > 0.0 { 100.0 * (1.0 - after / before) } else { 0.0 }
}

fn add_all(columns: &[Vec<u32>], mut add: impl FnMut(&[&[u32]])) {
    let rows = columns.first().map_or(0, Vec::len);
    for start in (0..rows).step_by(BATCH) {
        let batch: Vec<&[u32]> = columns.iter().map(|column| &column[start..rows.min(start + BATCH)]).collect();
        add(&batch);
    }
}

fn fine(columns: &[Vec<u32>]) -> Adjacency {
    let attributes: Vec<usize> = (0..columns.len()).collect();
    let mut model = Adjacency::new(&attributes, LIMITS).expect("attributes ascend");
    add_all(columns, |batch| model.add(batch).expect("a batch"));
    model
}

fn coarse(columns: &[Vec<u32>]) -> CoarseAdjacency {
    let attributes: Vec<usize> = (0..columns.len()).collect();
    let mut model = CoarseAdjacency::new(&attributes, LIMITS).expect("attributes ascend");
    model.coarsen(columns, MergePolicy::Determined).expect("a window");
    add_all(columns, |batch| assert!(model.add(batch).expect("a batch").is_empty()));
    model
}

fn adjacency(table: &Health) {
    let columns = &table.columns;
    let (mut without, mut with, mut finding) = (Vec::new(), Vec::new(), Vec::new());
    let (mut model, mut aggregated) = (None, None);
    for _ in 0..RUNS {
        let (made, seconds) = timed(|| fine(columns));
        (model, without) = (Some(made), [without, vec![seconds]].concat());
        let (made, seconds) = timed(|| coarse(columns));
        (aggregated, with) = (Some(made), [with, vec![seconds]].concat());
        let attributes: Vec<usize> = (0..columns.len()).collect();
        let mut empty = CoarseAdjacency::new(&attributes, LIMITS).expect("attributes ascend");
        finding.push(timed(|| empty.coarsen(columns, MergePolicy::Determined).expect("a window")).1);
    }
    let (model, aggregated) = (model.expect("made"), aggregated.expect("made"));
    assert!(aggregated.to_fine_adjacency().expect("whole") == model, "the coarse level has lost something");
    let (counted, without, with) = (aggregated.counted(), median(without), median(with));
    let (nodes, edges) = (model.node_count(), model.edge_count());
    println!(
        "| {} | {} | {} | {nodes} | {} | {edges} | {} | {:.1} / {:.1} | {without:.3} | {with:.3} | {:.3} | {:.1} |",
        table.name,
        columns.len(),
        counted.attributes().len(),
        counted.node_count(),
        counted.edge_count(),
        less(nodes as f64, counted.node_count() as f64),
        less(edges as f64, counted.edge_count() as f64),
        median(finding),
        less(without, with),
    );
}

fn values(table: &Health) {
    let model = fine(&table.columns);
    let (counts, values) = NodeCounts::of_model(&model).expect("nothing left out");
    let attributes: Vec<u32> = values.iter().map(|value| value.attribute as u32).collect();
    let (exact, seconds) = timed(|| ExactAggregation::of(&counts, &attributes));
    let (nodes, edges) = (counts.nodes() as f64, counts.edges() as f64);
    let hosted: usize = exact.levels().iter().map(throng_risk::multigrid::AggregationLevel::hosted_implications).sum();
    println!(
        "| {} | {} | {nodes} | {} | {edges} | {} | {hosted} | {:.1} / {:.1} | {seconds:.2} |",
        table.name,
        exact.levels().len(),
        exact.coarse().nodes(),
        exact.coarse().edges(),
        less(nodes, exact.coarse().nodes() as f64),
        less(edges, (exact.coarse().edges() + hosted) as f64),
    );
}

fn qid(table: &Health, k: u32, budget: Duration) {
    let masked = table.table().masked(k);
    let columns = AttributeSet::first(masked.width());
    let question =
        QidSearchRequest { k, strategy: QidStrategy::Border, threads: 1, budget: Some(budget), memory: None, columns };
    let run = |of: &dyn Fn(
        &throng_risk::counting::CountedTable,
        &QidSearchRequest,
        &dyn Fn(QidSearchProgress),
    ) -> QidBorders| { timed(|| of(&masked, &question, &|_| ())) };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let (mut fine, mut coarse) = run_both(&run);
    for turn in 0..RUNS {
        (without, with) = ([without, vec![fine.1]].concat(), [with, vec![coarse.1]].concat());
        if !fine.0.complete || !coarse.0.complete || turn + 1 == RUNS {
            break;
        }
        (fine, coarse) = run_both(&run);
    }
    if fine.0.complete && coarse.0.complete {
        assert_eq!(fine.0.minimal_qids, coarse.0.minimal_qids);
        assert_eq!(fine.0.maximal_non_qids, coarse.0.maximal_non_qids);
    }
    let end = |found: &QidBorders| if found.complete { "complete" } else { "cut short" };
    let (without, with) = (median(without), median(with));
    let kept = AttributeAggregation::of(&masked, &question.columns).kept().len();
    println!(
        "| {} | {} | {kept} | {k} | {without:.3} | {} | {with:.3} | {} | {:.1} | {} | {} | {} | {} |",
        table.name,
        masked.width(),
        end(&fine.0),
        end(&coarse.0),
        less(without, with),
        fine.0.evaluated,
        coarse.0.evaluated,
        coarse.0.minimal_qids.len(),
        coarse.0.maximal_non_qids.len(),
    );
}

type Timed = (QidBorders, f64);

fn run_both(
    run: &dyn Fn(
        &dyn Fn(&throng_risk::counting::CountedTable, &QidSearchRequest, &dyn Fn(QidSearchProgress)) -> QidBorders,
    ) -> Timed,
) -> (Timed, Timed) {
    (run(&|t, q, p| search_without_aggregation(t, q, p)), run(&|t, q, p| search(t, q, p)))
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let number = |name: &str, default: usize| {
        let given = asked.iter().find_map(|a| a.strip_prefix(name)?.strip_prefix('='));
        given.map_or(default, |n| n.parse().expect("a number"))
    };
    let parts: Vec<&str> = asked.iter().filter(|a| !a.contains('=')).map(String::as_str).collect();
    let wanted = |part: &str| parts.contains(&part) || parts.is_empty() && part != "window";
    let (rows, k) = (number("rows", 10_000), number("k", 5) as u32);
    let budget = Duration::from_secs(number("seconds", 60) as u64);
    let all = |rows: usize| [false, true].map(|legacy| WIDTHS.map(|width| health(rows, width, legacy))).concat();
    if wanted("adjacency") {
        println!(
            "| table, {rows} records | attributes | counted | nodes | counted | edges | counted | less, % | fine, CPU s | coarse, CPU s | of it finding | less, % |"
        );
        println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
        all(rows).iter().for_each(adjacency);
    }
    if wanted("values") {
        let rows = rows.min(2_000);
        println!("| table, {rows} records | levels | nodes | coarse | edges | coarse | hosted | less, % | CPU s |");
        println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
        all(rows).iter().for_each(values);
    }
    if wanted("qid") {
        println!(
            "| table, {rows} records, masked | attributes | kept | k | apart, CPU s | | coarse, CPU s | | less, % | counted apart | counted coarse | minimal | maximal |"
        );
        println!("|---|---:|---:|---:|---:|---|---:|---|---:|---:|---:|---:|---:|");
        all(rows).iter().for_each(|table| qid(table, k, budget));
    }
    if wanted("window") {
        println!(
            "| table, {rows} records | counted | attributes | pairs left out | MiB | first batch, CPU s | window filled, CPU s | a batch, CPU ms | less, % | looking, CPU s | split |"
        );
        println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
        [107, 50, 25].into_iter().for_each(|width| {
            [true, false].into_iter().for_each(|legacy| window::window(&health(rows, width, legacy)));
        });
    }
}
