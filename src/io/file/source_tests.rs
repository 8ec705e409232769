use std::fs;

use proptest::prelude::*;

use super::*;
use crate::io::file::csv_rows::CsvRows;
use crate::io::file::file_test_helpers::{CSV, file, open, reading};
use crate::io::file::ndjson_lines::NdjsonLines;
use crate::io::file::{OutputColumn, ReleaseTarget, SinkError};
use throng_core::values::schema::Schema;

#[derive(Debug, Default, PartialEq)]
struct ObservedRecords {
    records: Vec<(i64, String)>,
    tombstones: u64,
    total: u64,
}

impl ObservedRecords {
    fn take(&mut self, batch: &RawBatch, rejected: &[(RecordPosition, RejectionReason)], outcome: ReadOutcome) {
        let mut records: Vec<(i64, String)> = rejected.iter().map(|(at, why)| (at.offset, why.to_string())).collect();
        for (row, at) in batch.coordinates().iter().enumerate() {
            records.push((at.offset, format!("{:?} {:?}", batch.token(row, 0), batch.token(row, 1))));
        }
        records.sort();
        assert_eq!(outcome.records, records.len() as u64 + outcome.tombstones);
        self.records.extend(records);
        self.tombstones += outcome.tombstones;
        self.total += outcome.records;
    }
}

/// The last size is repeated.
fn read_all(path: &Path, format: FileFormat, sizes: &[usize]) -> (ObservedRecords, SourcePosition) {
    let mut seen = ObservedRecords::default();
    let mut source = open(path, format).unwrap();
    for call in 0.. {
        let mut batch = RawBatch::new(2);
        let mut rejected = Vec::new();
        let size = sizes[call.min(sizes.len() - 1)];
        let outcome = source.read(&mut batch, size, u64::MAX, &mut rejected).unwrap();
        seen.take(&batch, &rejected, outcome);
        if outcome.end {
            break;
        }
    }
    (seen, source.position())
}

#[test]
fn ndjson_lines_are_records_rejections_and_tombstones() {
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1000));
    let text = format!("\u{feff}{{\"a\":1}}\r\n\n{long}\n null \n{{\"b\":true}}\n[]\n\n{{\"a\":2}}");
    let (_directory, path) = file(text.as_bytes());
    let (seen, position) = read_all(&path, FileFormat::Ndjson, &[100]);
    let expected = [
        (0, "Number(\"1\") Absent"),
        (1, "oversized"),
        (3, "Absent Bool(true)"),
        (4, "not_an_object"),
        (5, "Number(\"2\") Absent"),
    ];
    assert_eq!(seen.records, expected.map(|(offset, text)| (offset, text.to_owned())));
    assert_eq!((seen.tombstones, seen.total), (1, 6));
    assert_eq!(position, SourcePosition { records: 6, bytes: text.len() as u64 });
}

#[test]
fn record_limit_excludes_line_break() {
    for line_break in ["\n", "\r\n", ""] {
        for (extra, expected) in [(0, "Text"), (1, "oversized"), (2, "oversized"), (3, "oversized")] {
            let record = format!("{{\"a\":\"{}\"}}", "x".repeat(64 - 8 + extra));
            let (_directory, path) = file(format!("{record}{line_break}").as_bytes());
            let (seen, _) = read_all(&path, FileFormat::Ndjson, &[9]);
            assert!(seen.records[0].1.starts_with(expected), "{extra} {line_break:?}: {:?}", seen.records);
            let row = format!("a,b\n{},{}{line_break}", "x".repeat(32), "y".repeat(31 + extra));
            let (_directory, path) = file(row.as_bytes());
            let (seen, _) = read_all(&path, CSV, &[9]);
            let expected = if extra == 0 { "Untyped" } else { expected };
            assert!(seen.records[0].1.starts_with(expected), "{extra} {line_break:?}: {:?}", seen.records);
        }
    }
}

#[test]
fn oversized_record_is_never_kept_in_memory() {
    let (_directory, path) = file(format!("a\n{}\n{{}}\n", "x".repeat(8 << 20)).as_bytes());
    let mut lines = NdjsonLines::open(&path, &reading(FileFormat::Ndjson)).unwrap();
    let mut batch = RawBatch::new(2);
    let at = RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 };
    assert_eq!(lines.next(at, &mut batch).unwrap(), NextRecord::Rejected(RejectionReason::MalformedJson));
    assert_eq!(lines.next(at, &mut batch).unwrap(), NextRecord::Rejected(RejectionReason::Oversized));
    assert_eq!(lines.next(at, &mut batch).unwrap(), NextRecord::Record);
    assert!(lines.held_bytes() < 1024, "{}", lines.held_bytes());

    for tail in ["x", "\n", ",", "\"\""] {
        let text = format!("a,b\n1,2\n\"{}", tail.repeat(4 << 20));
        let (_directory, path) = file(text.as_bytes());
        let mut rows = CsvRows::open(&path, b',', &reading(CSV)).unwrap();
        assert_eq!(rows.next(at, &mut batch).unwrap(), NextRecord::Record);
        assert_eq!(rows.next(at, &mut batch).unwrap(), NextRecord::Rejected(RejectionReason::Oversized));
        assert_eq!(rows.next(at, &mut batch).unwrap(), NextRecord::End);
        assert!(rows.held_bytes() < 1 << 20, "{}", rows.held_bytes());
    }
    let (_directory, path) = file(format!("a,b\n{}\n3,4\n", ",".repeat(4 << 20)).as_bytes());
    let mut rows = CsvRows::open(&path, b',', &reading(CSV)).unwrap();
    assert_eq!(rows.next(at, &mut batch).unwrap(), NextRecord::Rejected(RejectionReason::Oversized));
    assert_eq!(rows.next(at, &mut batch).unwrap(), NextRecord::Record);
    assert!(rows.held_bytes() < 8 << 20, "{}", rows.held_bytes());
}

#[test]
fn csv_rows_with_inner_and_missing_line_breaks_are_read() {
    let (_directory, path) = file(b"\xef\xbb\xbfb,\"a\",c\r\n\"x\ny\",\"q\"\"\",\r\n\r\n1,2\n,,\n\xff,1,2\n5,6,7");
    let (seen, position) = read_all(&path, CSV, &[100]);
    let expected = [
        (0, "Untyped(\"q\\\"\") Untyped(\"x\\ny\")"),
        (1, "ragged_row"),
        (2, "Untyped(\"\") Untyped(\"\")"),
        (3, "not_utf8"),
        (4, "Untyped(\"6\") Untyped(\"5\")"),
    ];
    assert_eq!(seen.records, expected.map(|(offset, text)| (offset, text.to_owned())));
    assert_eq!(position.records, 5);
    let (_directory, path) = file(b"a,b\n1,2\n3,\"4\n");
    assert_eq!(read_all(&path, CSV, &[100]).0.records[1], (1, "malformed_row".to_owned()));
}

#[test]
fn empty_files_and_bad_headers_are_reported() {
    let (_directory, path) = file(b"");
    assert_eq!(read_all(&path, FileFormat::Ndjson, &[5]).0, ObservedRecords::default());
    assert!(matches!(open(&path, CSV), Err(SourceError::NoHeader { .. })));
    assert!(matches!(open(&path, FileFormat::Parquet), Err(SourceError::Parquet { .. })));
    assert!(matches!(open(&path, FileFormat::Csv { separator: b'"' }), Err(SourceError::Separator)));
    assert!(matches!(open(Path::new("-"), FileFormat::Parquet), Err(SourceError::ParquetOnStandardInput)));
    assert!(matches!(open(path.parent().unwrap(), CSV), Err(SourceError::NoFileIn { .. })));
    assert!(matches!(open(&path.join("none"), CSV), Err(SourceError::Open { .. })));
    fs::write(&path, b"a,b").unwrap();
    assert_eq!(read_all(&path, CSV, &[5]).0, ObservedRecords::default());
    fs::write(&path, b"a,\"b").unwrap();
    assert!(matches!(
        open(&path, CSV),
        Err(SourceError::UnreadableHeader { rejection: RejectionReason::MalformedRow, .. })
    ));
    fs::write(&path, b"x,y\n1,2\n").unwrap();
    let error = open(&path, CSV).unwrap_err();
    assert!(error.to_string().contains("none of the 2 columns is in the schema"), "{error}");
}

#[test]
fn separator_line_is_not_a_header() {
    for text in ["sep=;\r\na;b\r\n1;2\r\n", "\u{feff}sep=;\na;b\n1;2\n", "\"sep=;\"\na;b\n1;2"] {
        let (_directory, path) = file(text.as_bytes());
        assert_eq!(crate::io::file::separator_of(&path).unwrap(), b';', "{text:?}");
        let (seen, _) = read_all(&path, FileFormat::Csv { separator: b';' }, &[5]);
        assert_eq!(seen.records, [(0, "Untyped(\"1\") Untyped(\"2\")".to_owned())], "{text:?}");
        assert!(matches!(open(&path, CSV), Err(SourceError::OtherSeparator { named: ';', given: ',', .. })));
    }
}

#[test]
fn byte_limit_ends_read_after_at_least_one_record() {
    let (_directory, path) = file(b"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n");
    let mut source = open(&path, FileFormat::Ndjson).unwrap();
    let mut read = |max_bytes| {
        let outcome = source.read(&mut RawBatch::new(2), 100, max_bytes, &mut Vec::new()).unwrap();
        (outcome.records, outcome.bytes, outcome.end)
    };
    assert_eq!(read(0), (1, 8, false));
    assert_eq!(read(9), (2, 16, false));
    assert_eq!(read(9), (1, 8, true));
}

#[test]
fn parquet_reads_are_independent_of_call_sizes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.parquet");
    let columns = ["a", "b"].map(OutputColumn::text);
    let lines: String = (0..2500).map(|i| format!("{{\"a\":{i},\"b\":null}}\n")).collect();
    let place = ReleaseTarget::claim_target(&path, FileFormat::Parquet).unwrap();
    place.write_release::<SinkError>(&columns, |write| write(lines.as_bytes())).unwrap();
    let (whole, _) = read_all(&path, FileFormat::Parquet, &[10_000]);
    assert_eq!(whole.records[1024], (1024, "Text(\"1024\") Null".to_owned()));
    assert_eq!(whole.total, 2500);
    let (pieces, _) = read_all(&path, FileFormat::Parquet, &[1, 1022, 1, 1, 700]);
    assert_eq!(pieces, whole);
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert!(matches!(open(&path, FileFormat::Parquet), Err(SourceError::Parquet { .. })));
}

#[test]
fn unselected_records_are_counted_with_their_bytes() {
    let text =
        "{\"a\":\"x\",\"b\":\"1\"}\n{\"a\":\"long\",\"b\":\"2\"}\nnull\n{\"a\":\"x\",\"b\":\"3\"}\n{\"b\":\"4\"}\n";
    let (_directory, path) = file(text.as_bytes());
    let schema = |keys: &str| {
        let text = format!("name = \"s\"\n[[attribute]]\nname = \"a\"\ntype = \"string\"\n{keys}\n");
        Schema::parse(&text, "s.toml", Path::new("")).expect("a schema").attributes
    };
    let source = open(&path, FileFormat::Ndjson).unwrap();
    let mut source = source.selecting(&schema("only = [\"x\"]")).expect("of a file");
    let (mut batch, mut rejected) = (RawBatch::new(2), Vec::new());
    let outcome = source.read(&mut batch, 9, u64::MAX, &mut rejected).unwrap();
    assert_eq!((batch.rows(), rejected.len(), outcome.records, outcome.tombstones), (2, 0, 5, 1));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert_eq!((outcome.unselected, outcome.bytes), (2, text.len() as u64));
    assert_eq!(outcome.kept_bytes, (lines[0].len() + lines[3].len()) as u64, "no row pays for other lines");
    let by_topic = open(&path, FileFormat::Ndjson).unwrap().selecting(&schema("topics = [\"t\"]"));
    let error = by_topic.expect_err("a file has no topic").to_string();
    assert!(error.contains("\"a\" of the schema differs by topic"), "{error}");
}

#[test]
fn several_files_form_one_source() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("b.csv", "a,b\n3,4\n5,6"), ("a.csv", "a,b\n1,2\n"), ("c.csv", "a,b\n")] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let mut source = open(directory.path(), CSV).unwrap();
    let mut batch = RawBatch::new(2);
    let outcome = source.read(&mut batch, 100, u64::MAX, &mut Vec::new()).unwrap();
    assert_eq!((outcome.records, outcome.end), (3, true));
    assert_eq!(batch.coordinates().iter().map(|at| at.offset).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(source.position(), SourcePosition { records: 3, bytes: 8 + 11 + 4 });
    let opened: Vec<(String, u64)> =
        source.take_opened().iter().map(|(path, n)| (path.file_name().unwrap().to_string_lossy().into(), *n)).collect();
    assert_eq!(opened, [("a.csv".to_owned(), 0), ("b.csv".to_owned(), 1), ("c.csv".to_owned(), 3)]);
    fs::write(directory.path().join("d.csv"), "a,c\n1,2\n").unwrap();
    let mut other = open(directory.path(), CSV).unwrap();
    let read = other.read(&mut RawBatch::new(2), 100, u64::MAX, &mut Vec::new());
    assert!(matches!(read, Err(SourceError::OtherColumns { .. })));
}

fn ndjson_file() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => "\\{\"a\":[0-9]{1,3}\\}".prop_map(String::into_bytes),
        1 => Just(Vec::new()),
        1 => Just(b"  ".to_vec()),
        1 => Just(b"null".to_vec()),
        1 => Just(b"{\"a\":\xff}".to_vec()),
        1 => Just(b"{\"b\":\"cut".to_vec()),
        1 => (60..200_usize).prop_map(|n| format!("{{\"a\":\"{}\"}}", "x".repeat(n)).into_bytes()),
    ];
    let line_break = prop_oneof![3 => Just("\n"), 1 => Just("\r\n")];
    (prop::collection::vec((line, line_break), 0..20), any::<bool>()).prop_map(|(lines, end)| {
        let last = lines.len();
        let mut file = Vec::new();
        for (index, (line, line_break)) in lines.into_iter().enumerate() {
            file.extend(line);
            if end || index + 1 < last {
                file.extend(line_break.as_bytes());
            }
        }
        file
    })
}

fn csv_rows() -> impl Strategy<Value = Vec<Vec<String>>> {
    let field = prop_oneof!["[a-z]{0,5}", "[a-z,\"\n\r é]{0,8}", "x{40,50}"];
    prop::collection::vec(prop::collection::vec(field, 1..4), 0..15)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn ndjson_reads_are_independent_of_call_sizes(content in ndjson_file(), sizes in prop::collection::vec(1..5_usize, 1..6)) {
        let (_directory, path) = file(&content);
        let (whole, end) = read_all(&path, FileFormat::Ndjson, &[usize::MAX]);
        prop_assert_eq!(end.bytes, content.len() as u64);
        prop_assert_eq!(read_all(&path, FileFormat::Ndjson, &sizes), (whole, end));
    }

    #[test]
    fn csv_reads_are_independent_of_call_sizes(
        rows in csv_rows(),
        sizes in prop::collection::vec(1..4_usize, 1..6),
        windows in any::<bool>(),
        end in any::<bool>(),
    ) {
        let terminator = if windows { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
        let mut writer = csv::WriterBuilder::new().flexible(true).terminator(terminator).from_writer(Vec::new());
        writer.write_record(["a", "b", "c"]).unwrap();
        for row in &rows {
            writer.write_record(row).unwrap();
        }
        let mut content = writer.into_inner().unwrap();
        if !end {
            content.truncate(content.trim_ascii_end().len());
        }
        let mut expected = Vec::new();
        let mut twin = csv::ReaderBuilder::new().flexible(true).from_reader(content.as_slice());
        for row in twin.records() {
            let row = row.unwrap();
            expected.push(if row.len() == 3 { format!("Untyped({:?}) Untyped({:?})", &row[0], &row[1]) } else { "ragged_row".to_owned() });
        }
        let (_directory, path) = file(&content);
        let (whole, end) = read_all(&path, CSV, &[usize::MAX]);
        prop_assert_eq!(end.bytes, content.len() as u64);
        prop_assert_eq!(whole.records.len(), expected.len());
        for ((_, found), expected) in whole.records.iter().zip(&expected) {
            prop_assert!(found == expected || found == "oversized", "{} instead of {}", found, expected);
        }
        prop_assert_eq!(read_all(&path, CSV, &sizes), (whole, end));
    }
}
