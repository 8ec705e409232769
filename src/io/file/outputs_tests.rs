use std::collections::BTreeMap;
use std::fs;

use arrow::array::AsArray;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

const CSV: Format = Format::Csv { separator: b';' };

fn release(path: &Path, format: Format, lines: &str) -> Result<(), SinkError> {
    let columns = ["a".to_owned(), "b".to_owned()];
    Replacement::ready(path, format)?.fill(&columns, |write| write(lines.as_bytes()))
}

fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    named.map(|(name, path)| (name, fs::read(path).unwrap_or_default())).collect()
}

#[test]
fn one_group_has_the_path_and_several_have_their_names() {
    let path = Path::new("out.ndjson");
    let paths = |names: &[&str]| output_paths(path, names);
    assert_eq!(paths(&["main"]), [Path::new("out.ndjson")]);
    assert_eq!(paths(&["who", "how"]), [Path::new("out.who.ndjson"), Path::new("out.how.ndjson")]);
}

#[test]
fn csv_begins_with_its_header() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.csv");
    let target = Target::open(&path, Visible::AtTheEnd, Access::Shared).unwrap();
    let columns = ["age".to_owned(), "a;b".to_owned(), "say \"hi\"".to_owned()];
    let mut output = Output::of_group(target, CSV, &columns).unwrap();
    output.append(b"1;2;3\n").unwrap();
    output.finish().unwrap().show().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "age;\"a;b\";\"say \"\"hi\"\"\"\n1;2;3\n");
}

#[test]
fn an_output_is_replaced_as_a_whole_or_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    for format in [Format::Ndjson, CSV, Format::Parquet] {
        fs::write(&path, "old").unwrap();
        let target = Target::open(&path, Visible::AtTheEnd, Access::Shared).unwrap();
        let mut output = Output::of_group(target, format, &["a".to_owned()]).unwrap();
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
    // A killed release leaves a file that nobody has locked.
    fs::write(directory.path().join(".out.unfinished"), "half of").unwrap();
    release(&path, Format::Ndjson, "{}\n").unwrap();
    assert_eq!(contents(directory.path()).into_iter().collect::<Vec<_>>(), [("out".to_owned(), b"{}\n".to_vec())]);
}

#[test]
fn nothing_but_a_regular_file_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine");
    fs::create_dir_all(path.join("deep")).unwrap();
    for format in [Format::Ndjson, CSV, Format::Parquet] {
        assert!(matches!(Replacement::ready(&path, format), Err(SinkError::NotRegular { .. })));
        let opened = Target::open(&path, Visible::AtTheEnd, Access::Shared);
        assert!(matches!(opened, Err(SinkError::NotRegular { .. })));
    }
    assert!(path.join("deep").is_dir());
    let opened = Target::open(Path::new("/dev/null"), Visible::AsReleased, Access::Shared);
    assert!(matches!(opened, Err(SinkError::NotRegular { .. })));
}

#[test]
fn a_growing_output_is_a_new_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let open = || Target::open(&path, Visible::AsReleased, Access::Private);
    let mut output = Output::of_lines(open().unwrap(), b"").unwrap();
    assert!(matches!(open(), Err(SinkError::Locked { .. })));
    output.append(b"one\n").unwrap();
    output.flush().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one\n");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    drop(output);
    assert!(matches!(open(), Err(SinkError::Occupied { .. })));
}

/// All cells of a file, row after row; a null is `None`.
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
fn parquet_holds_the_lines_as_text() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.parquet");
    let lines = "{\"a\":\"[20, 30[\",\"b\":1.50}\n{\"a\":\"*\"}\n{\"b\":true,\"a\":null}\n";
    release(&path, Format::Parquet, lines).unwrap();
    let text = |t: &str| Some(t.to_owned());
    assert_eq!(cells(&path), [vec![text("[20, 30["), text("1.50")], vec![text("*"), None], vec![None, text("true")]]);
    release(&path, Format::Parquet, "").unwrap();
    assert!(cells(&path).is_empty(), "a file without rows is a file");
}

#[test]
fn lines_of_another_shape_are_refused_without_repeating_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.parquet");
    let error = release(&path, Format::Parquet, "{\"a\":1}\n{\"CANARY\":\"CANARY\"}\n").unwrap_err();
    assert!(matches!(error, SinkError::ForeignLine { reason: "unknown_attribute", .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("CANARY"));
    assert!(contents(directory.path()).is_empty());
}
