//! Benchmark of the lattice search: ADULT, 1.2 million rows, and a large lattice.
//!
//! `cargo bench --bench lattice -- [adult] [ihis] [local] [mach SECONDS] [antichains] [tables]`. Times exclude reading.
//! Data are in the folder THRONG_TEST_DATA.
#![allow(missing_docs, reason = "what the macros of criterion make")]

mod antichains;
#[path = "../../tests/lattice/data.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod data;
mod ihis;
mod quality;
mod tables;

use std::time::{Duration, Instant};
use throng_core::lattice::policy_check::{PolicyChecker, PolicyTerms};
use throng_core::lattice::recoding_passes::{LocalRecodingSettings, recode_locally};
use throng_core::lattice::search::{LatticeSearchResult, LatticeStrategy};
use throng_core::lattice::search_deadline::SearchDeadline;
use throng_core::lattice::strategies::search_lattice;
use throng_core::lattice::table::LatticeTable;
use throng_core::privacy::{ClassPrivacyModel, GroundMetric, ValueRequirement};
use throng_core::quality::QualityMeasure;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let asked = |word: &str| words.iter().any(|w| w == word);
    let usual = words.is_empty();
    if usual || asked("antichains") {
        antichains::run();
    }
    if usual || asked("adult") {
        adult();
    }
    if usual || asked("ihis") {
        ihis();
    }
    if asked("local") {
        local();
    }
    if let Some(at) = words.iter().position(|word| word == "mach") {
        let seconds = words.get(at + 1).and_then(|word| word.parse().ok()).unwrap_or(10);
        mach(Duration::from_secs(seconds));
    }
    if asked("tables") {
        tables::run();
    }
}

pub fn folder(name: &str) -> Option<std::path::PathBuf> {
    let folder = data::folder().map(|folder| folder.join(name));
    if folder.is_none() {
        println!("{name}: skipped, THRONG_TEST_DATA is not set");
    }
    folder
}

fn k(k: u64) -> ClassPrivacyModel {
    ClassPrivacyModel::KAnonymity { k }
}

fn line(name: &str, table: &LatticeTable, terms: &PolicyTerms, found: &LatticeSearchResult, times: &mut [f64]) {
    times.sort_by(f64::total_cmp);
    let best = found.best.as_ref().map_or("none".to_owned(), |best| {
        format!("{:.6} at {:?}", terms.measure.shown(best.cost, best.policy.len()), best.policy)
    });
    println!(
        "{name:34} {:9.2} ms (least {:.2}, most {:.2}), {} of {} checked, {best}, {} KiB known, a materialised lattice {} KiB",
        times[times.len() / 2] * 1e3,
        times[0] * 1e3,
        times[times.len() - 1] * 1e3,
        found.checked,
        table.lattice().approximate_size(),
        found.knowledge_bytes >> 10,
        materialised(table) >> 10,
    );
}

/// Levels, a flag byte, a bound, and one pointer per neighbour.
fn materialised(table: &LatticeTable) -> u64 {
    let width = table.lattice().width() as u64;
    (table.lattice().approximate_size() as u64).saturating_mul(width + 1 + 8 + 2 * 8 * width)
}

pub fn timed(
    table: &LatticeTable,
    terms: &PolicyTerms,
    strategy: LatticeStrategy,
    rounds: usize,
) -> (LatticeSearchResult, Vec<f64>) {
    let mut times = Vec::with_capacity(rounds);
    let mut last = None;
    for round in 0..=rounds {
        let begun = Instant::now();
        let checker = PolicyChecker::new(table, terms).expect("possible terms");
        let found =
            search_lattice(&checker, strategy, SearchDeadline::without_deadline(), &|_| {}).expect("a small lattice");
        if round > 0 || rounds == 1 {
            times.push(begun.elapsed().as_secs_f64());
        }
        last = Some(found);
        if rounds == 1 {
            break;
        }
    }
    (last.expect("a round"), times)
}

fn adult() {
    let Some(folder) = folder("adult") else { return };
    let set = data::read(&folder, "adult.csv", &["occupation"]);
    let table = set.table();
    println!("\nADULT: {} records, {} distinct rows", table.records(), table.distinct_rows());
    let tree = GroundMetric::Hierarchical(set.beside[0].parents());
    let cases: [(&str, Vec<ClassPrivacyModel>, f64, QualityMeasure); 7] = [
        ("k = 5, 5 %, loss", vec![k(5)], 0.05, QualityMeasure::Loss),
        ("k = 5, 5 %, loss_geometric", vec![k(5)], 0.05, QualityMeasure::LossGeometric),
        ("k = 5, 0 %, loss", vec![k(5)], 0.0, QualityMeasure::Loss),
        ("k = 5, 5 %, nue", vec![k(5)], 0.05, QualityMeasure::Nue),
        (
            "k = 5, recursive (4, 3), 5 %",
            vec![k(5), ClassPrivacyModel::Sensitive { attribute: 0, of: ValueRequirement::Recursive { c: 4.0, l: 3 } }],
            0.05,
            QualityMeasure::LossGeometric,
        ),
        (
            "k = 5, t = 0.2 equal, 5 %",
            vec![
                k(5),
                ClassPrivacyModel::Sensitive {
                    attribute: 0,
                    of: ValueRequirement::Closeness { t: 0.2, ground: GroundMetric::Equal },
                },
            ],
            0.05,
            QualityMeasure::LossGeometric,
        ),
        (
            "k = 5, t = 0.2 hierarchical, 5 %",
            vec![
                k(5),
                ClassPrivacyModel::Sensitive { attribute: 0, of: ValueRequirement::Closeness { t: 0.2, ground: tree } },
            ],
            0.05,
            QualityMeasure::LossGeometric,
        ),
    ];
    for (name, models, limit, measure) in cases {
        let terms = PolicyTerms { models, limit, measure };
        for strategy in [LatticeStrategy::Bfs, LatticeStrategy::Flash2p] {
            let (found, mut times) = timed(&table, &terms, strategy, 15);
            line(&format!("{name}, {}", strategy.name()), &table, &terms, &found, &mut times);
        }
    }
}

fn local() {
    let Some(folder) = folder("adult") else { return };
    let set = data::read(&folder, "adult.csv", &["occupation"]);
    println!("\nADULT, loss, 5 % suppressed at most");
    let diverse = ClassPrivacyModel::Sensitive { attribute: 0, of: ValueRequirement::Recursive { c: 4.0, l: 3 } };
    for (name, models) in [("k = 5", vec![k(5)]), ("k = 5, recursive (4, 3)", vec![k(5), diverse])] {
        let terms = PolicyTerms { models, limit: 0.05, measure: QualityMeasure::Loss };
        for (most, leaves) in [(1, 0.0), (10, 0.05), (10, 0.1), (10, 0.2), (10, 1.0)] {
            let passes = LocalRecodingSettings {
                max_passes: most,
                first_pass_unreleased_share: leaves,
                strategy: LatticeStrategy::Bfs,
            };
            let mut times = Vec::new();
            let mut last = None;
            for _ in 0..15 {
                let begun = Instant::now();
                let table = LatticeTable::new(set.domains.clone(), &set.records).expect("a table");
                last = Some(
                    recode_locally(&table, &terms, passes, SearchDeadline::without_deadline(), &|_| {})
                        .expect("possible terms"),
                );
                times.push(begun.elapsed().as_secs_f64());
            }
            let recoded = last.expect("a round");
            times.sort_by(f64::total_cmp);
            println!(
                "{name:24} {most:2} passes at most, the first leaves {leaves}: loss {:.4}, precision {:.4}, {} suppressed \
                 ({} for good), {} classes, records by pass {:?}, {:.1} ms",
                recoded.overall_figures.policy_quality.measure_value(QualityMeasure::Loss),
                recoded.overall_figures.policy_quality.measure_value(QualityMeasure::Precision),
                recoded.overall_figures.suppressed,
                recoded.passes.iter().map(|pass| pass.refused).sum::<u64>(),
                recoded.overall_figures.classes,
                recoded.passes.iter().map(|pass| pass.released).collect::<Vec<_>>(),
                times[times.len() / 2] * 1e3,
            );
        }
    }
}

fn ihis() {
    let set = ihis::generated(1_200_000);
    let begun = Instant::now();
    let table = LatticeTable::new(set.0, &set.1).expect("a table");
    println!(
        "\nIHIS shape: {} records, {} distinct rows, packed in {:.2} s (not counted below)",
        table.records(),
        table.distinct_rows(),
        begun.elapsed().as_secs_f64()
    );
    for limit in [0.0, 0.05] {
        for measure in [QualityMeasure::Loss, QualityMeasure::Nue] {
            let terms = PolicyTerms { models: vec![k(5)], limit, measure };
            let (found, mut times) = timed(&table, &terms, LatticeStrategy::Bfs, 1);
            line(&format!("k = 5, {} %, {}", limit * 100.0, measure.name()), &table, &terms, &found, &mut times);
        }
    }
}

fn mach(limit: Duration) {
    let Some(folder) = folder("mach2019") else { return };
    let set = data::read(&folder, "mach2019_int.csv", &[]);
    let table = set.table();
    println!(
        "\nMACH 2019: {} records, {} distinct rows, {} attributes",
        table.records(),
        table.distinct_rows(),
        set.quasi.len()
    );
    let terms = PolicyTerms { models: vec![k(5)], limit: 0.05, measure: QualityMeasure::Loss };
    let checker = PolicyChecker::new(&table, &terms).expect("possible terms");
    let begun = Instant::now();
    let clock = || begun.elapsed();
    let found = search_lattice(&checker, LatticeStrategy::Bfs, SearchDeadline::timed(&clock, Some(limit)), &|_| {})
        .expect("any lattice");
    for progress in &found.history {
        println!(
            "  {:8.3} s  {:7} checked  {:.6}",
            progress.seconds,
            progress.checked,
            progress.best.unwrap_or(f64::NAN)
        );
    }
    println!("  {}", if found.complete { "proved" } else { "the time is up" });
    quality::write(&found.history, limit.as_secs_f64());
    line("k = 5, 5 %, loss", &table, &terms, &found, &mut [found.seconds]);
}
