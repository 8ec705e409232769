use super::*;
use crate::io::file::file_test_helpers::{open, reading};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, GzipLevel, ZstdLevel};
use parquet::data_type::{Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

fn cells(path: &Path) -> Result<Vec<String>, SourceError> {
    let mut batch = RawBatch::new(2);
    open(path, FileFormat::Parquet)?.read(&mut batch, 10_000, u64::MAX, &mut Vec::new())?;
    Ok((0..batch.rows()).map(|row| format!("{:?} {:?}", batch.token(row, 0), batch.token(row, 1))).collect())
}

fn written(path: &Path, columns: Vec<(&str, ArrayRef)>, compression: Compression) {
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let properties = WriterProperties::builder().set_compression(compression).set_dictionary_enabled(false).build();
    let file = File::create(path).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.close().expect("a footer");
}

#[test]
fn parquet_pages_of_common_codecs_are_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("in.parquet");
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
    ] {
        let a: ArrayRef = Arc::new(Int64Array::from_iter_values(0..500));
        let b: ArrayRef = Arc::new(StringArray::from_iter_values((0..500).map(|n| format!("t{n}"))));
        written(&path, vec![("a", a), ("b", b)], compression);
        let cells = cells(&path).expect("rows");
        assert_eq!((cells.len(), cells[499].as_str()), (500, "Number(\"499\") Text(\"t499\")"), "{compression:?}");
    }
}

#[test]
fn damaged_parquet_page_names_its_column() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("in.parquet");
    let numbers = || -> ArrayRef { Arc::new(Int64Array::from_iter_values((0..4000).map(|n| n * n * 7919 % 10_007))) };
    written(&path, vec![("a", numbers()), ("b", numbers())], Compression::GZIP(GzipLevel::default()));
    let builder = builder_of(File::open(&path).expect("a file")).expect("a footer");
    let (start, length) = builder.metadata().row_group(0).column(1).byte_range();
    let mut bytes = std::fs::read(&path).expect("bytes");
    let middle = (start + length / 2) as usize;
    bytes[middle..middle + 64].fill(0xff);
    std::fs::write(&path, bytes).expect("a file");
    let error = cells(&path).expect_err("a damaged page").to_string();
    assert!(error.contains("a page of column \"b\" is damaged") && error.contains("row group 1 of 1"), "{error}");
}

/// Nanoseconds of the day, then the Julian day.
fn int96(days_since_1970: i64, nanos: u64) -> Int96 {
    let mut value = Int96::new();
    let day = u32::try_from(days_since_1970 + 2_440_588).expect("a Julian day");
    value.set_data(nanos as u32, (nanos >> 32) as u32, day);
    value
}

#[test]
fn timestamps_of_96_bits_do_not_overflow() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("in.parquet");
    let schema = "message s { REQUIRED INT96 a; OPTIONAL GROUP g { REQUIRED INT96 b; } }";
    let schema = Arc::new(parquet::schema::parser::parse_message_type(schema).expect("a schema"));
    let file = File::create(&path).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    let noon = 43_200_123_000_000;
    let moments = [int96(19_783, noon), int96(2_932_896, 0), int96(-719_162, noon), int96(1 << 30, 0)];
    for levels in [None, Some(&[1_i16; 4][..])] {
        let mut column = group.next_column().expect("a column").expect("another one");
        column.typed::<Int96Type>().write_batch(&moments, levels, None).expect("values");
        column.close().expect("a column");
    }
    group.close().expect("a row group");
    writer.close().expect("a footer");
    let mut asked = reading(FileFormat::Parquet);
    asked.fields[1] = FieldPath { pointer: vec!["g".to_owned(), "b".to_owned()], elements: None };
    let mut rows = ParquetRows::open(&path, &asked).expect("rows");
    let (mut batch, at) = (RawBatch::new(2), RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 });
    while rows.next(&path, at, &mut batch).expect("a row").0 != NextRecord::End {}
    let expected = [
        "Text(\"2024-03-01T12:00:00.123\")",
        "Text(\"9999-12-31T00:00:00\")",
        "Text(\"0001-01-01T12:00:00.123\")",
        "Untyped(\"92771293593600000 ms\")",
    ];
    for (row, expected) in expected.into_iter().enumerate() {
        for column in [0, 1] {
            assert_eq!(format!("{:?}", batch.token(row, column)), expected);
        }
    }
}
