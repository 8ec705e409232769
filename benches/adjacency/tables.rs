//! Generated or real tables as codes, in order of arrival.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use throng::generate::{
    HealthRecordStream, HealthSettings, RecordLayout, RecordStream, WearableSettings, WearableStream,
};

pub struct Table {
    pub name: &'static str,
    pub names: Vec<String>,
    pub columns: Vec<Vec<u32>>,
}

impl Table {
    fn of(name: &'static str, csv: &[u8], delimiter: u8) -> Self {
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(csv);
        let names: Vec<String> = reader.headers().expect("a header").iter().map(str::to_owned).collect();
        let mut books: Vec<HashMap<String, u32>> = vec![HashMap::new(); names.len()];
        let mut columns: Vec<Vec<u32>> = vec![Vec::new(); names.len()];
        for record in reader.records() {
            for (at, cell) in record.expect("a record").iter().enumerate() {
                let next = books[at].len() as u32;
                let code = books[at].get(cell).copied();
                columns[at].push(code.unwrap_or_else(|| {
                    books[at].insert(cell.to_owned(), next);
                    next
                }));
            }
        }
        Self { name, names, columns }
    }

    pub fn read(name: &'static str, path: &Path, delimiter: u8) -> Self {
        Self::of(name, &std::fs::read(path).expect("a readable file"), delimiter)
    }

    pub fn pairs(&self) -> usize {
        self.columns.len() * (self.columns.len() - 1) / 2
    }

    pub fn kept(self, keep: impl Fn(&str, usize) -> bool) -> Self {
        let values = |column: &[u32]| column.iter().max().map_or(0, |code| *code as usize + 1);
        let kept = self.names.into_iter().zip(self.columns).filter(|(name, column)| keep(name, values(column)));
        let (names, columns) = kept.unzip();
        Self { name: self.name, names, columns }
    }
}

pub fn batch(columns: &[Vec<u32>], rows: Range<usize>) -> Vec<Vec<u32>> {
    columns.iter().map(|column| column[rows.clone()].to_vec()).collect()
}

fn generated(name: &'static str, mut stream: impl RecordStream, rows: usize) -> Table {
    let mut csv = Vec::new();
    stream.header(&mut csv);
    for _ in 0..rows {
        stream.append(&mut csv);
        csv.push(b'\n');
    }
    Table::of(name, &csv, b',')
}

/// Generates all 25 attributes, including identifiers and the subject.
pub fn wearable(rows: usize) -> Table {
    let settings = WearableSettings { layout: RecordLayout::Csv, ..WearableSettings::default() };
    generated("wearable, 25 attributes", WearableStream::new(settings).expect("sound settings"), rows)
}

/// Generates all 107 attributes, including identifiers.
pub fn health(rows: usize) -> Table {
    let settings = HealthSettings { seed: 1, legacy: false, layout: RecordLayout::Csv };
    generated("health, 107 attributes", HealthRecordStream::new(settings), rows)
}
