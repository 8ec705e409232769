//! Real tables from the folder in `THRONG_TEST_DATA`.

use crate::{against_reference, question, row, timed};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use throng_risk::counting::CountedTable;
use throng_risk::qid::QidStrategy;

fn read(path: &Path, delimiter: u8, without: &[&str], subject: Option<&str>) -> CountedTable {
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_path(path).expect("a readable file");
    let names: Vec<String> = reader.headers().expect("a header").iter().map(str::to_owned).collect();
    let mut books: Vec<BTreeMap<String, u32>> = vec![BTreeMap::new(); names.len()];
    let mut columns: Vec<Vec<u32>> = vec![Vec::new(); names.len()];
    for record in reader.records() {
        let record = record.expect("a record");
        for (at, cell) in record.iter().enumerate() {
            let next = books[at].len() as u32;
            columns[at].push(*books[at].entry(cell.to_owned()).or_insert(next));
        }
    }
    let place = |name: &str| names.iter().position(|n| n == name).expect("a column of that name");
    let subjects = subject.map(|name| columns[place(name)].clone());
    let left_out = |at: &usize| without.contains(&names[*at].as_str()) || Some(names[*at].as_str()) == subject;
    let kept = (0..names.len()).filter(|at| !left_out(at)).map(|at| columns[at].clone()).collect();
    CountedTable::new(kept, subjects).expect("a table")
}

pub fn run(reference: bool) {
    let Some(data) = std::env::var_os("THRONG_TEST_DATA").map(PathBuf::from) else {
        println!("| real tables left out: THRONG_TEST_DATA names no folder | | | | | | | | | | |");
        return;
    };
    let adult = read(&data.join("adult/adult.csv"), b';', &[], None);
    against_reference("ADULT 30,162 x 9", &adult, &[2, 5], reference);
    for k in [2, 5] {
        against_reference("ADULT 30,162 x 9, masked", &adult.masked(k), &[k], reference);
    }
    let days = read(&data.join("lifesnaps/daily.csv"), b',', &[], Some("id"));
    for k in [2, 5] {
        for (name, table) in [("LifeSnaps 7,410 x 61, 71 subjects", &days), ("LifeSnaps, masked", &days.masked(k))] {
            let mut ask = question(table, k, QidStrategy::Border, 2);
            ask.budget = Some(Duration::from_secs(60));
            let (found, spent) = timed(table, &ask);
            row(name, k, "border, 2 threads, 60 s", &found, spent, "");
        }
    }
}
