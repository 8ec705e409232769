//! Reads a file of records: CSV or NDJSON. Record by record gives the same rows and rejections as one pass.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use throng::io::file::{FileFormat, FileSource};
use throng_core::values::raw_batch::RawBatch;
use throng_formats::{DecodeLimits, FieldPath, UnknownCellPolicy};
use throng_fuzz::{RECORD, check_cell, codebooks, scratch};

static FILE: LazyLock<PathBuf> = LazyLock::new(|| scratch("records"));
/// Longer inputs find no more errors.
const MOST_BYTES: usize = 2048;

fn open(format: FileFormat) -> Option<FileSource> {
    let flat = !matches!(format, FileFormat::Ndjson);
    let field = |a: &std::sync::Arc<throng_core::values::schema::Attribute>| {
        if flat { FieldPath::top_level(&a.column()) } else { FieldPath::for_attribute_path(a) }
    };
    let fields: Vec<FieldPath> = RECORD.attributes.iter().map(field).collect();
    let limits = DecodeLimits { max_record_bytes: 64, max_depth: 8, max_elements: 100, max_repeated_bytes: 1 << 20 };
    FileSource::open(Path::new(&*FILE), format, &fields, limits, UnknownCellPolicy::Drop).ok()
}

fn read(source: &mut FileSource, most: usize, found: &mut Vec<String>) -> bool {
    let mut batch = RawBatch::new(RECORD.attributes.len());
    let mut rejected = Vec::new();
    let outcome = source.read(&mut batch, most, u64::MAX, &mut rejected);
    for row in 0..batch.rows() {
        let cells: Vec<_> = (0..batch.width()).map(|attribute| batch.token(row, attribute)).collect();
        found.push(format!("{:?} {cells:?}", batch.coordinates()[row]));
    }
    found.extend(rejected.iter().map(|(at, why)| format!("{at:?} {why:?}")));
    match outcome {
        Ok(outcome) => outcome.end || outcome.records == 0,
        Err(error) => {
            found.push(format!("{:?}", std::mem::discriminant(&error)));
            true
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, text)) = data.split_first() else { return };
    if text.len() > MOST_BYTES {
        return;
    }
    let format = match kind % 3 {
        0 => FileFormat::Csv { separator: b',' },
        1 => FileFormat::Csv { separator: b';' },
        _ => FileFormat::Ndjson,
    };
    std::fs::write(&*FILE, text).expect("a scratch file");
    let Some(mut source) = open(format) else { return };
    let mut at_once = Vec::new();
    while !read(&mut source, usize::MAX, &mut at_once) {}
    assert!(source.position().bytes <= text.len() as u64, "read past the end");

    let mut one_by_one = Vec::new();
    let mut source = open(format).expect("it could be opened before");
    while !read(&mut source, 1, &mut one_by_one) {}
    // One call returns rows first and rejections last.
    at_once.sort_unstable();
    one_by_one.sort_unstable();
    assert_eq!(at_once, one_by_one, "in pieces it is something else");

    let (mut books, mut fresh) = (codebooks(&RECORD), codebooks(&RECORD));
    let mut source = open(format).expect("it could be opened before");
    let (mut batch, mut rejected) = (RawBatch::new(books.len()), Vec::new());
    if source.read(&mut batch, usize::MAX, u64::MAX, &mut rejected).is_ok() {
        for row in 0..batch.rows() {
            for attribute in 0..books.len() {
                check_cell(&mut books[attribute], &mut fresh[attribute], batch.token(row, attribute));
            }
        }
    }
});
