//! Finds the minimal quasi-identifiers of a small table.
//!
//! A quasi-identifier is a set of columns in which some combination of values belongs to fewer than k subjects.
//!
//! `cargo run -p throng-risk --example quasi_identifiers`

use throng_risk::counting::{AttributeSet, CountedTable};
use throng_risk::qid::{QidSearchRequest, QidStrategy, search};

const NAMES: [&str; 3] = ["age group", "district", "device"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One row per subject, for six subjects.
    let rows = [[30, 1, 0], [30, 1, 1], [30, 2, 1], [40, 2, 0], [40, 1, 0], [40, 2, 1]];
    let columns = (0..NAMES.len()).map(|column| rows.iter().map(|row| row[column]).collect()).collect();
    let table = CountedTable::new(columns, None)?;
    let question = QidSearchRequest {
        k: 2,
        strategy: QidStrategy::Border,
        threads: 1,
        budget: None,
        memory: None,
        columns: AttributeSet::first(NAMES.len()),
    };
    let found = search(&table, &question, &|_| {});
    for set in found.minimal_qids {
        let names: Vec<&str> = set.iter().map(|column| NAMES[column]).collect();
        println!("quasi-identifier at k = 2: {}", names.join(", "));
    }
    for set in found.maximal_non_qids {
        let names: Vec<&str> = set.iter().map(|column| NAMES[column]).collect();
        println!("safe together: {}", names.join(", "));
    }
    Ok(())
}
