use std::collections::BTreeMap;
use std::fs;

use arrow::array::AsArray;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

const CSV: FileFormat = FileFormat::Csv { separator: b';' };

fn release(path: &Path, format: FileFormat, lines: &str) -> Result<(), SinkError> {
    let columns = ["a", "b"].map(OutputColumn::text);
    ReleaseTarget::claim_target(path, format)?.write_release(&columns, |write| write(lines.as_bytes()))
}

fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    named.map(|(name, path)| (name, fs::read(path).unwrap_or_default())).collect()
}

#[test]
fn output_paths_of_several_groups_contain_their_names() {
    let path = Path::new("out.ndjson");
    let paths = |names: &[&str]| output_paths(path, names);
    assert_eq!(paths(&["main"]), [Path::new("out.ndjson")]);
    assert_eq!(paths(&["who", "how"]), [Path::new("out.who.ndjson"), Path::new("out.how.ndjson")]);
}

#[test]
fn csv_output_starts_with_header() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.csv");
    let target = OutputTarget::open(&path, OutputVisibility::AtEnd, OutputFileMode::Shared).unwrap();
    let columns = ["age", "a;b", "say \"hi\""].map(OutputColumn::text);
    let mut output = OutputWriter::of_columns(target, CSV, &columns).unwrap();
    output.append(b"1;2;3\n").unwrap();
    output.finish().unwrap().make_visible().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "age;\"a;b\";\"say \"\"hi\"\"\"\n1;2;3\n");
}

#[test]
fn output_replacement_is_atomic() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    for format in [FileFormat::Ndjson, CSV, FileFormat::Parquet] {
        fs::write(&path, "old").unwrap();
        let target = OutputTarget::open(&path, OutputVisibility::AtEnd, OutputFileMode::Shared).unwrap();
        let mut output = OutputWriter::of_columns(target, format, &[OutputColumn::text("a")]).unwrap();
        output.append(b"{\"a\":1}\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert!(matches!(release(&path, format, ""), Err(SinkError::Locked { .. })), "two write one file");
        drop(output);
        let found = contents(directory.path());
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [("out".to_owned(), b"old".to_vec())], "{format:?}");
        release(&path, format, "{\"a\":1}\n").unwrap();
        assert_ne!(fs::read(&path).unwrap(), b"old");
        assert_eq!(contents(directory.path()).len(), 1, "nothing unfinished stays");
    }
    // A killed release leaves an unlocked temporary file.
    fs::write(directory.path().join(".out.unfinished"), "half of").unwrap();
    release(&path, FileFormat::Ndjson, "{}\n").unwrap();
    assert_eq!(contents(directory.path()).into_iter().collect::<Vec<_>>(), [("out".to_owned(), b"{}\n".to_vec())]);
}

#[test]
fn replacement_of_irregular_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine");
    fs::create_dir_all(path.join("deep")).unwrap();
    for format in [FileFormat::Ndjson, CSV, FileFormat::Parquet] {
        assert!(matches!(ReleaseTarget::claim_target(&path, format), Err(SinkError::NotRegular { .. })));
        let opened = OutputTarget::open(&path, OutputVisibility::AtEnd, OutputFileMode::Shared);
        assert!(matches!(opened, Err(SinkError::NotRegular { .. })));
    }
    assert!(path.join("deep").is_dir());
    let opened = OutputTarget::open(Path::new("/dev/null"), OutputVisibility::AsReleased, OutputFileMode::Shared);
    assert!(matches!(opened, Err(SinkError::NotRegular { .. })));
}

#[test]
fn appended_output_requires_new_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let open = || OutputTarget::open(&path, OutputVisibility::AsReleased, OutputFileMode::Private);
    let mut output = OutputWriter::of_lines(open().unwrap(), b"").unwrap();
    assert!(matches!(open(), Err(SinkError::Locked { .. })));
    output.append(b"one\n").unwrap();
    output.flush().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one\n");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    drop(output);
    assert!(matches!(open(), Err(SinkError::NotEmpty { .. })));
}

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

#[test]
fn parquet_output_stores_lines_as_text() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.parquet");
    let lines = "{\"a\":\"[20, 30[\",\"b\":1.50}\n{\"a\":\"*\"}\n{\"b\":true,\"a\":null}\n";
    release(&path, FileFormat::Parquet, lines).unwrap();
    let text = |t: &str| Some(t.to_owned());
    assert_eq!(cells(&path), [vec![text("[20, 30["), text("1.50")], vec![text("*"), None], vec![None, text("true")]]);
    release(&path, FileFormat::Parquet, "").unwrap();
    assert!(cells(&path).is_empty(), "a file without rows is a file");
}

#[test]
fn unexpected_lines_are_refused_without_quoting_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.parquet");
    let error = release(&path, FileFormat::Parquet, "{\"a\":1}\n{\"CANARY\":\"CANARY\"}\n").unwrap_err();
    assert!(matches!(error, SinkError::UnexpectedLine { reason: "unknown_attribute", .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("CANARY"));
    assert!(contents(directory.path()).is_empty());
}
