//! Health table as codes.

use std::collections::BTreeMap;
use throng::generate::{HealthRecordStream as Records, HealthSettings, RecordLayout, RecordStream};
use throng_risk::counting::CountedTable;

/// Share of distinct values from which a column is an identifier.
const IDENTIFIES: f64 = 0.8;

#[derive(Clone)]
pub struct Health {
    pub name: String,
    pub columns: Vec<Vec<u32>>,
}

impl Health {
    pub fn table(&self) -> CountedTable {
        CountedTable::new(self.columns.clone(), None).expect("a table")
    }
}

/// Returns the first `width` attributes of `rows` records, without identifiers.
pub fn health(rows: usize, width: usize, legacy: bool) -> Health {
    let mut stream = Records::new(HealthSettings { seed: 1, legacy, layout: RecordLayout::Csv });
    let mut text = Vec::new();
    stream.header(&mut text);
    for _ in 0..rows {
        stream.append(&mut text);
        text.push(b'\n');
    }
    let mut reader = csv::Reader::from_reader(text.as_slice());
    let mut books: Vec<BTreeMap<Vec<u8>, u32>> = vec![BTreeMap::new(); width];
    let mut columns: Vec<Vec<u32>> = vec![Vec::with_capacity(rows); width];
    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record).expect("a record") {
        for ((book, column), cell) in books.iter_mut().zip(&mut columns).zip(&record) {
            let next = book.len() as u32;
            column.push(*book.entry(cell.to_vec()).or_insert(next));
        }
    }
    let identifies = |book: &BTreeMap<Vec<u8>, u32>| book.len() as f64 >= IDENTIFIES * rows as f64;
    let kept = columns.into_iter().zip(&books).filter(|(_, book)| !identifies(book)).map(|(column, _)| column);
    let name = format!("health{}, n = {width}", if legacy { " --legacy" } else { "" });
    Health { name, columns: kept.collect() }
}
