use arrow::array::AsArray;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

fn columns() -> Vec<String> {
    vec!["a".into(), "b".into()]
}

/// All cells of a segment, row after row; a null is `None`.
fn cells(path: &Path) -> Vec<Vec<Option<String>>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        let cell = |column: usize, row| {
            let array = batch.column(column).as_string::<i32>();
            arrow::array::Array::is_valid(array, row).then(|| array.value(row).to_owned())
        };
        rows.extend((0..batch.num_rows()).map(|row| (0..batch.num_columns()).map(|c| cell(c, row)).collect()));
    }
    rows
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_segment_holds_the_lines_of_a_commit_as_text() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out/main");
    let mut segments = Segments::open(&path, &columns(), 0).unwrap();
    assert_eq!(segments.sync().unwrap(), 0, "nothing pending makes no segment");
    segments.append(b"{\"a\":\"[20, 30[\",\"b\":1.50}\n{\"a\":\"*\"}\n").unwrap();
    segments.append(b"{\"b\":true,\"a\":null}\n").unwrap();
    assert_eq!(segments.sync().unwrap(), 1);
    let text = |t: &str| Some(t.to_owned());
    let expected = [vec![text("[20, 30["), text("1.50")], vec![text("*"), None], vec![None, text("true")]];
    assert_eq!(cells(&path.join("segment-00000000.parquet")), expected);
    assert_eq!(names(&path), ["segment-00000000.parquet"]);
}

#[test]
fn later_segments_and_torn_ones_are_removed_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("main");
    let mut segments = Segments::open(&path, &columns(), 0).unwrap();
    for value in 0..4 {
        segments.append(format!("{{\"a\":{value}}}\n").as_bytes()).unwrap();
        segments.sync().unwrap();
    }
    fs::write(path.join("segment-00000004.parquet.partial"), b"torn").unwrap();
    fs::write(path.join("notes.txt"), b"mine").unwrap();
    fs::write(path.join("segment-7.parquet"), b"mine").unwrap();
    drop(segments);
    let mut segments = Segments::open(&path, &columns(), 2).unwrap();
    let kept = ["notes.txt", "segment-00000000.parquet", "segment-00000001.parquet", "segment-7.parquet"];
    assert_eq!(names(&path), kept);
    segments.append(b"{\"a\":9}\n").unwrap();
    assert_eq!(segments.sync().unwrap(), 3);
    assert_eq!(cells(&path.join("segment-00000002.parquet")), [vec![Some("9".to_owned()), None]]);

    drop(segments);
    fs::remove_file(path.join("segment-00000001.parquet")).unwrap();
    assert!(matches!(Segments::open(&path, &columns(), 3), Err(SinkError::Missing { .. })));
    assert!(matches!(Segments::open(&path.join("none"), &columns(), 1), Err(SinkError::Missing { .. })));
}

#[test]
fn lines_of_another_shape_are_refused_without_repeating_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut segments = Segments::open(directory.path(), &columns(), 0).unwrap();
    let error = segments.append(b"{\"a\":1}\n{\"CANARY\":\"CANARY\"}\n").unwrap_err();
    assert!(matches!(error, SinkError::ForeignLine { reason: "unknown_attribute", .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("CANARY"));
    assert!(matches!(segments.sync(), Err(SinkError::Broken { .. })));
    segments.truncate_to(0).unwrap();
    segments.append(b"{\"a\":1}\n").unwrap();
    assert_eq!(segments.sync().unwrap(), 1);
}
