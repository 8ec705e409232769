//! Compares Find-QID with its reference: same process, same table, equal answers, CPU time.
//!
//! `./dev bench find_qid -- CASE_WORDS…` runs the named cases: `dense`, `correlated`, `sparse`, `threads`, `real`
//! (needs `THRONG_TEST_DATA`), `small`, `growth`, `tweets` (3 GiB of memory). Without a name it runs all except the
//! last two. `alone` skips the reference.

mod growth;
mod real;
mod tables;

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};
use throng_risk::counting::{AttributeSet, CountedTable};
use throng_risk::qid::{QidBorders, QidSearchRequest, QidStrategy, search};

#[derive(Clone, Copy)]
struct Spent {
    wall: f64,
    cpu: f64,
}

fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn question(table: &CountedTable, k: u32, strategy: QidStrategy, threads: usize) -> QidSearchRequest {
    QidSearchRequest { k, strategy, threads, budget: None, memory: None, columns: AttributeSet::first(table.width()) }
}

fn timed(table: &CountedTable, question: &QidSearchRequest) -> (QidBorders, Spent) {
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let found = search(table, question, &|_| ());
    (found, Spent { wall: wall.elapsed().as_secs_f64(), cpu: cpu_seconds() - cpu })
}

fn row(name: &str, k: u32, how: &str, found: &QidBorders, spent: Spent, note: &str) {
    println!(
        "| {name} | {k} | {how} | {:.3} | {:.3} | {} | {} | {} | {} | {} | {note} |",
        spent.cpu,
        spent.wall,
        found.evaluated,
        found.pruned,
        found.minimal_qids.len(),
        found.maximal_non_qids.len(),
        if found.complete { "complete" } else { "cut short" },
    );
}

fn against_reference(name: &str, table: &CountedTable, ks: &[u32], reference: bool) {
    for &k in ks {
        let (found, spent) = timed(table, &question(table, k, QidStrategy::Border, 1));
        row(name, k, "border", &found, spent, "");
        if reference {
            let (expected, whole) = timed(table, &question(table, k, QidStrategy::Exhaustive, 1));
            assert_eq!(found.minimal_qids, expected.minimal_qids);
            assert_eq!(found.maximal_non_qids, expected.maximal_non_qids);
            row(name, k, "exhaustive", &expected, whole, &format!("{:.1} times the CPU", whole.cpu / spent.cpu));
        }
    }
}

fn threads(table: &CountedTable) {
    let ask = |threads| timed(table, &question(table, 5, QidStrategy::Border, threads));
    let (one, first) = ask(1);
    let (two, second) = ask(2);
    assert_eq!((one.minimal_qids, one.maximal_non_qids), (two.minimal_qids.clone(), two.maximal_non_qids.clone()));
    row(
        "dense 1 M x 30",
        5,
        "border, 2 threads",
        &two,
        second,
        &format!("{:.2} times as fast as 1", first.wall / second.wall),
    );
}

/// Twenty million rows with the cardinalities of the tweets of [POD] §7.4.
fn tweets() {
    let table = tables::tweets(20_000_000, 1);
    for k in [2, 5] {
        let mut ask = question(&table, k, QidStrategy::Border, 2);
        let (found, spent) = timed(&table, &ask);
        row("tweets 20 M x 11", k, "border, 2 threads", &found, spent, "");
        // Excludes columns that are identifiers alone.
        ask.columns =
            ask.columns.iter().filter(|c| !found.minimal_qids.contains(&AttributeSet::from_iter([*c]))).collect();
        let (found, spent) = timed(&table, &ask);
        row("tweets, no single-column QIDs", k, "border, 2 threads", &found, spent, "");
    }
    let spent = Instant::now();
    let masked = table.masked(2);
    println!("masked in {:.1} s", spent.elapsed().as_secs_f64());
    let mut ask = question(&masked, 2, QidStrategy::Border, 2);
    ask.budget = Some(Duration::from_secs(120));
    let (found, spent) = timed(&masked, &ask);
    row("tweets 20 M x 11, masked", 2, "border, 2 threads, 120 s", &found, spent, "");
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let reference = !asked.iter().any(|a| a == "alone");
    let named = |case: &str| asked.iter().any(|a| a == case);
    let wanted = |case: &str| asked.iter().all(|a| a == "alone") || named(case);
    println!("| table | k | how | CPU, s | wall, s | counted | decided without | minimal | maximal | | |");
    println!("|---|---:|---|---:|---:|---:|---:|---:|---:|---|---|");
    if wanted("small") {
        against_reference("dense 50,000 x 16", &tables::dense(50_000, 16, 1), &[2, 5], reference);
        against_reference("correlated 50,000 x 20", &tables::correlated(50_000, 20, 1), &[2, 5], reference);
        against_reference("sparse 50,000 x 10", &tables::sparse(50_000, 10, 1), &[2, 5], reference);
    }
    if wanted("real") {
        real::run(reference);
    }
    if wanted("threads") {
        threads(&tables::dense(1_000_000, 30, 1));
    }
    if wanted("sparse") {
        against_reference("sparse 1 M x 16", &tables::sparse(1_000_000, 16, 1), &[2, 5, 20], false);
    }
    for k in [5, 2, 20] {
        if wanted("dense") || named(&format!("dense-{k}")) {
            against_reference("dense 1 M x 30", &tables::dense(1_000_000, 30, 1), &[k], reference);
        }
    }
    if wanted("correlated") {
        against_reference("correlated 1 M x 40", &tables::correlated(1_000_000, 40, 1), &[5], reference);
    }
    if named("growth") {
        growth::run();
    }
    if named("tweets") {
        tweets();
    }
}
