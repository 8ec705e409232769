//! Benchmark of the adjacency model: adds and removes a batch in a window of 200,000 records. Processor times, best of
//! the batches.
//!
//! `./dev bench adjacency -- CASE_WORDS…` runs the named cases: `wearable`, `health`, `triage`. Real tables need
//! `THRONG_TEST_DATA`.

mod order;
mod tables;

use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Instant;
use tables::{Table, batch};
use throng_risk::adjacency::{Adjacency, AdjacencyLimits, Triage};

const WINDOW: usize = 200_000;
const BATCH: usize = 10_000;
const PASSING: usize = 5;

fn cpu() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

#[derive(Clone, Copy)]
struct Spent {
    cpu: f64,
    wall: f64,
}

impl Spent {
    const NEVER: Self = Self { cpu: f64::INFINITY, wall: f64::INFINITY };

    fn on(change: impl FnOnce()) -> Self {
        let (before, start) = (cpu(), Instant::now());
        change();
        Self { cpu: cpu() - before, wall: start.elapsed().as_secs_f64() }
    }

    fn or_less(self, other: Self) -> Self {
        Self { cpu: self.cpu.min(other.cpu), wall: self.wall.min(other.wall) }
    }
}

/// Returns the seconds for one increment of a table in the first-level cache, a lower bound for pair counting.
fn floor() -> f64 {
    let codes = |factor: u32| -> Vec<u32> { (0..BATCH as u32).map(|row| row.wrapping_mul(factor) >> 27).collect() };
    let (xs, ys) = (codes(2_654_435_761), codes(2_246_822_519));
    let mut best = f64::INFINITY;
    for _ in 0..500 {
        let mut table = vec![0_u32; 1024];
        let spent = Spent::on(|| {
            for (x, y) in xs.iter().zip(&ys) {
                table[*x as usize * 32 + *y as usize] += 1;
            }
        });
        black_box(&table);
        best = best.min(spent.cpu);
    }
    best / BATCH as f64
}

fn model(table: &Table, max_edges: u64) -> Adjacency {
    let attributes: Vec<usize> = (0..table.columns.len()).collect();
    Adjacency::new(&attributes, AdjacencyLimits { max_edges }).expect("ascending attributes")
}

fn line(what: &str, spent: Spent, increments: f64, note: &str) {
    let (cpu, wall) = (spent.cpu * 1e3, spent.wall * 1e3);
    println!("| {what} | {cpu:.1} | {wall:.1} | {:.2} | {note} |", spent.cpu * 1e9 / increments);
}

fn counting(table: &Table, max_edges: u64) {
    let mut window = model(table, max_edges);
    let columns = |from: usize| batch(&table.columns, from..from + BATCH);
    let first = Spent::on(|| window.add(&columns(0)).expect("a batch"));
    for at in 1..WINDOW / BATCH {
        window.add(&columns(at * BATCH)).expect("a batch");
    }
    let (mut came, mut left) = (Spent::NEVER, Spent::NEVER);
    for at in 0..PASSING {
        let (new, old) = (columns(WINDOW + at * BATCH), columns(at * BATCH));
        came = came.or_less(Spent::on(|| window.add(&new).expect("a batch")));
        left = left.or_less(Spent::on(|| window.subtract(&old).expect("records of the window")));
    }
    let newest = batch(&table.columns, PASSING * BATCH..WINDOW + PASSING * BATCH);
    let mut rebuilt = model(table, max_edges);
    let whole = Spent::on(|| {
        for at in 0..WINDOW / BATCH {
            rebuilt.add(&batch(&newest, at * BATCH..(at + 1) * BATCH)).expect("a batch");
        }
    });
    if window.left_out_pairs() == rebuilt.left_out_pairs() {
        assert!(window == rebuilt, "incremental is rebuilt");
    }
    let (pairs, left_out) = (table.pairs(), window.left_out_pairs().len());
    let increments = ((pairs - left_out) * BATCH) as f64;
    println!(
        "\n{}, at most {max_edges} edges: {} nodes, {} edges, {} MB, {left_out} of {pairs} pairs left out\n",
        table.name,
        window.node_count(),
        window.edge_count(),
        window.bytes() >> 20,
    );
    println!("| of {BATCH} records | CPU, ms | wall, ms | ns an increment | |\n|---|---:|---:|---:|---|");
    line("the first batch of an empty model", first, (pairs * BATCH) as f64, "");
    let floor = floor();
    let ratio = came.cpu / increments / floor;
    line("a batch comes", came, increments, &format!("{ratio:.1} times a plain histogram ({:.2} ns)", floor * 1e9));
    line("a batch leaves", left, increments, "");
    let note = format!("{:.0} times a batch", whole.cpu / came.cpu);
    line("the window is rebuilt", whole, increments * (WINDOW / BATCH) as f64, &note);
    let mut inference = None;
    line("inference", Spent::on(|| inference = Some(window.inference())), increments, "");
    line(
        "expectations",
        Spent::on(|| drop(black_box(inference.take().map(|inference| Triage::new(inference, u64::MAX))))),
        increments,
        "",
    );
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let wanted = |case: &str| asked.is_empty() || asked.iter().any(|a| a == case);
    let rows = WINDOW + PASSING * BATCH;
    if wanted("wearable") {
        let table = tables::wearable(rows);
        for max_edges in [2_000_000, u64::MAX] {
            counting(&table, max_edges);
        }
    }
    if wanted("health") {
        let table = tables::health(rows);
        for max_edges in [2_000_000, 8_000_000] {
            counting(&table, max_edges);
        }
    }
    if wanted("triage") {
        order::run();
    }
}
