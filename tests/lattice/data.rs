//! Test data tables, loaded through the product's schema and codebooks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use throng_core::domain::Domain;
use throng_core::lattice::attribute_coding;
use throng_core::lattice::table::{LatticeTable, TableRecords};
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::DigestKey;
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_core::values::schema::Schema;

pub fn folder() -> Option<PathBuf> {
    std::env::var_os("THRONG_TEST_DATA").map(PathBuf::from)
}

pub struct DataSet {
    pub quasi: Vec<String>,
    pub domains: Vec<Domain>,
    pub beside: Vec<Domain>,
    pub records: TableRecords,
}

impl DataSet {
    pub fn table(&self) -> LatticeTable {
        LatticeTable::new(self.domains.clone(), &self.records).expect("a sound table")
    }
}

pub fn read(folder: &Path, file: &str, sensitive: &[&str]) -> DataSet {
    let text = std::fs::read_to_string(folder.join(file)).expect("the data set");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(';').collect();
    let attribute = |name: &&str| {
        let role = if sensitive.contains(name) { "sensitive" } else { "quasi" };
        format!(
            "[[attribute]]\nname = {name:?}\ntype = \"string\"\nrole = {role:?}\n\
             [attribute.hierarchy]\nkind = \"file\"\npath = \"hierarchies/{name}.csv\"\n"
        )
    };
    let schema = format!("name = \"data\"\n{}", names.iter().map(attribute).collect::<String>());
    let schema = Schema::parse(&schema, "schema", folder).expect("a sound schema");
    let book = |a| Codebook::new(Arc::clone(a), &DigestKey([1; 32]), 1 << 20).expect("room");
    let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect();
    let mut columns = vec![Vec::new(); names.len()];
    let mut batch = RawBatch::new(names.len());
    for (offset, line) in (0..).zip(lines) {
        batch.push_row(RecordPosition { topic: 0, partition: 0, offset, element: 0 });
        for (a, cell) in line.split(';').enumerate() {
            batch.set(a, RawToken::Untyped(cell));
        }
    }
    for (a, (book, column)) in books.iter_mut().zip(&mut columns).enumerate() {
        book.encode_column(&batch, a, column, &mut Vec::new());
        assert_eq!(book.uncovered(), 0, "the hierarchy of {} misses a value", names[a]);
    }
    let of = |wanted: bool| -> Vec<usize> {
        (0..names.len()).filter(|&a| sensitive.contains(&names[a]) == wanted).collect()
    };
    let (domains, beside, records) =
        attribute_coding::code_table_records(&books, &columns, &of(false), &of(true)).expect("hierarchies");
    DataSet { quasi: of(false).into_iter().map(|a| names[a].to_owned()).collect(), domains, beside, records }
}
