//! Triage: suspects against the exact answer, and exact evaluations until the quasi-identifiers are found ([POD] Fig.
//! 5.6a).

use crate::tables::{self, Table};
use std::path::PathBuf;
use std::time::Duration;
use throng_risk::adjacency::{Adjacency, AdjacencyLimits, Triage};
use throng_risk::counting::{AttributeSet, CountedTable};
use throng_risk::qid::{QidSearchRequest, QidStrategy, search};

const SETS: u64 = 2_000_000;

pub fn run() {
    if let Some(data) = std::env::var_os("THRONG_TEST_DATA").map(PathBuf::from) {
        compare(&Table::read("ADULT, 30,162 records", &data.join("adult/adult.csv"), b';'));
        let days = Table::read("LifeSnaps, 7,410 records", &data.join("lifesnaps/daily.csv"), b',');
        // Columns of many values are identifiers (docs/internals/methods.md §2).
        compare(&days.kept(|name, values| name != "id" && values < 1000));
    } else {
        println!("real tables left out: THRONG_TEST_DATA names no folder");
    }
    let person = ["user_id", "email", "device_serial", "timestamp", "position"];
    let wearable = Table { name: "wearable, 20,000 records", ..tables::wearable(20_000) };
    compare(&wearable.kept(|name, _| !person.contains(&name)));
    let health = Table { name: "health, 20,000 records, columns of up to 500 values", ..tables::health(20_000) };
    let late = |name: &str| name.rsplit('_').next().and_then(|n| n.parse::<u32>().ok()).is_some_and(|n| n % 4 != 0);
    compare(&health.kept(|name, values| values <= 500 && !late(name)));
}

fn compare(table: &Table) {
    let attributes: Vec<usize> = (0..table.columns.len()).collect();
    let mut model = Adjacency::new(&attributes, AdjacencyLimits::default()).expect("ascending attributes");
    model.add(&table.columns).expect("a batch");
    let triage = Triage::new(model.inference(), SETS);
    let columns = CountedTable::new(table.columns.clone(), None).expect("a table");
    for k in [2, 5] {
        // Rare values are masked first.
        let question = QidSearchRequest {
            k,
            strategy: QidStrategy::Border,
            threads: 2,
            budget: Some(Duration::from_secs(60)),
            memory: None,
            columns: AttributeSet::first(columns.width()),
        };
        let exact = search(&columns.masked(k), &question, &|_| ());
        let state = if exact.complete { "complete" } else { "cut short after 60 s" };
        let report = triage.compare(&exact.minimal_qids);
        let theta = report.theta.map_or("none".to_owned(), |theta| format!("{theta:.4}"));
        println!(
            "\n{}, {} attributes, k = {k}: {} minimal QIDs of any size ({state}), {} of {} pairs left out, θ = {theta}\n",
            table.name,
            columns.width(),
            exact.minimal_qids.len(),
            model.left_out_pairs().len(),
            table.pairs(),
        );
        println!(
            "| size | sets | QIDs | minimal | suspects | precision | recall |\n|---:|---:|---:|---:|---:|---:|---:|"
        );
        for line in &report.detections {
            let share = |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{share:.3}"));
            let (precision, recall) = (share(line.precision()), share(line.recall()));
            let (size, sets, qids) = (line.size, line.sets, line.qids);
            println!("| {size} | {sets} | {qids} | {} | {} | {precision} | {recall} |", line.minimal, line.suspects);
        }
        println!("\n| size | open | order | until 50 % | 90 % | 100 % |\n|---:|---:|---|---:|---:|---:|");
        for effort in &report.efforts {
            let (size, open, order) = (effort.size, effort.open, effort.order);
            println!(
                "| {size} | {open} | {order:?} | {:.0} | {:.0} | {:.0} |",
                effort.half, effort.nine_tenths, effort.all
            );
        }
    }
}
