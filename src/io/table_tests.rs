use std::fs;

use proptest::prelude::*;

use super::*;
use throng_formats::DecodeLimits;

const CSV: FileFormat = FileFormat::Csv { separator: b',' };

struct TableFixture {
    folder: tempfile::TempDir,
    schema: Option<Schema>,
    columns: Option<Vec<String>>,
    skip: bool,
    max_bytes: u64,
}

impl TableFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, schema: None, columns: None, skip: false, max_bytes: 1 << 30 }
    }

    fn read(&self, content: impl AsRef<[u8]>, format: FileFormat) -> Result<LoadedTable, TableReadError> {
        let path = self.folder.path().join("input");
        fs::write(&path, content).expect("a file");
        let request = TableRequest {
            path: &path,
            more: &[],
            format,
            schema: self.schema.as_ref(),
            selects: true,
            columns: self.columns.as_deref(),
            limits: DecodeLimits::default(),
            max_columns: 8,
            max_bytes: self.max_bytes,
            max_records: None,
            skip_unreadable: self.skip,
        };
        read(&request, &mut |_| {})
    }
}

/// `-` for missing values, `_` for absent ones.
fn texts(table: &LoadedTable) -> Vec<(String, Vec<String>)> {
    let text = |column: &TableColumn, code: u32| match column.dictionary.text(code) {
        Some(text) => text.to_owned(),
        None if code == ABSENT => "_".to_owned(),
        None => "-".to_owned(),
    };
    let cells = |column: &TableColumn| column.codes.iter().map(|&code| text(column, code)).collect();
    table.columns.iter().map(|column| (column.name.clone(), cells(column))).collect()
}

fn assert_error_contains(result: Result<LoadedTable, TableReadError>, what: &str) {
    let message = result.expect_err("an error").to_string();
    assert!(message.contains(what), "{what:?} is not in {message:?}");
}

#[test]
fn csv_header_and_json_keys_become_columns() {
    let given = TableFixture::new();
    let table = given.read("a,b\n1,x\n,y\n1.0,x\n", CSV).unwrap();
    let column = |name: &str, cells: &[&str]| (name.to_owned(), cells.iter().map(|c| (*c).to_owned()).collect());
    assert_eq!(texts(&table), [column("a", &["1", "-", "1.0"]), column("b", &["x", "y", "x"])]);
    assert_eq!(table.rows, 3);
    let lines = "{\"a\":1}\n{\"b\":{\"c\":\"x\"}}\nnull\n{\"a\":null,\"b\":{\"c\":\"x\"}}\n";
    let table = given.read(lines, FileFormat::Ndjson).unwrap();
    assert_eq!(texts(&table), [column("a", &["1", "_", "-"]), column("b.c", &["_", "x", "x"])]);
}

#[test]
fn schema_rounds_values_and_drops_unknown_columns() {
    let text = "name = \"t\"\n[[attribute]]\nname = \"weight\"\ntype = \"float\"\nround = 5\n[[attribute]]\nname = \"gone\"\ntype = \"string\"\n";
    let mut given = TableFixture::new();
    given.schema = Some(Schema::parse(text, "t.toml", Path::new("")).expect("a schema"));
    let content = "weight,other\n71,x\n72.4,y\n80,z\n";
    let table = given.read(content, CSV).unwrap();
    let cells: Vec<String> = ["70", "70", "80"].map(str::to_owned).to_vec();
    assert_eq!(texts(&table), [("weight".to_owned(), cells)]);
    assert_eq!((table.absent.as_slice(), table.unknown_cells), (["gone".to_owned()].as_slice(), 3));
    assert_error_contains(given.read("weight\nheavy\n", CSV), "record 1 of");
    given.columns = Some(vec!["wait".into()]);
    assert_error_contains(given.read(content, CSV), "no attribute \"wait\"");
}

#[test]
fn unreadable_record_fails_or_is_counted() {
    let mut given = TableFixture::new();
    let content = b"a,b\n1,2\n3\n4,\xff\n5,6\n".as_slice();
    assert_error_contains(given.read(content, CSV), "record 2 of");
    given.skip = true;
    let table = given.read(content, CSV).unwrap();
    assert_eq!(table.rows, 2);
    assert_eq!(table.unreadable, BTreeMap::from([("ragged_row", 1), ("not_utf8", 1)]));
    assert_error_contains(given.read("{1\n[]\n", FileFormat::Ndjson), "none of the 2 records");
}

#[test]
fn cell_of_wrong_type_drops_its_row() {
    let text = "name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"integer\"\n[[attribute]]\nname = \"b\"\ntype = \"string\"\n";
    let mut given = TableFixture::new();
    given.schema = Some(Schema::parse(text, "t.toml", Path::new("")).expect("a schema"));
    given.skip = true;
    let rows: String = (0..20_000).map(|i| format!("{},v{i}\n", if i % 3 == 0 { "x" } else { "1" })).collect();
    let table = given.read(format!("a,b\n{rows}"), CSV).unwrap();
    assert_eq!((table.rows, table.unreadable["wrong_type"]), (13_333, 6_667));
    let kept: Vec<String> = (0..20_000).filter(|i| i % 3 != 0).map(|i| format!("\"v{i}\"")).collect();
    assert_eq!(texts(&table)[1].1, kept);
}

#[test]
fn invalid_table_input_is_refused() {
    let mut given = TableFixture::new();
    assert_error_contains(given.read("", CSV), "is empty");
    assert_error_contains(given.read("a,b\n", CSV), "has no records");
    assert_error_contains(given.read("a,b,a\n1,2,3\n", CSV), "columns 1 and 3");
    assert_error_contains(given.read("a,anna@example.org\n1,2\n", CSV), "header of column 2");
    assert_error_contains(given.read("a;b\n1;2\n", CSV), "--separator");
    assert_error_contains(given.read("# exported\na\n1\n", CSV), "is a comment");
    assert_error_contains(given.read("My export,,\na,b,c\n1,2,3\n", CSV), "columns 2 and 3");
    assert_error_contains(given.read("My export,,\na,b,c\n1,2,3\n", CSV), "have no name");
    let header: Vec<String> = (0..10_000).map(|i| format!("c{i}")).collect();
    assert_error_contains(given.read(format!("{}\n", header.join(",")), CSV), "more than 8 columns");
    let keys: Vec<String> = (0..10_000).map(|i| format!("\"c{i}\":1")).collect();
    assert_error_contains(given.read(format!("{{{}}}\n", keys.join(",")), FileFormat::Ndjson), "more than 8 columns");
    assert_error_contains(given.read("PAR1 or so", FileFormat::Parquet), "Parquet");
    given.columns = Some(vec!["c7".into(), "c9999".into()]);
    let row = vec!["1"; 10_000].join(",");
    let table = given.read(format!("{}\n{row}\n", header.join(",")), CSV).unwrap();
    assert_eq!(texts(&table).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["c7", "c9999"]);
    given.columns = Some(vec!["a".into(), "z".into()]);
    assert_error_contains(given.read("{\"a\":1}\n", FileFormat::Ndjson), "no column \"z\"");
    assert_error_contains(given.read("a\n1\n", CSV), "no column \"z\"");
    given = TableFixture::new();
    given.max_bytes = 1 << 20;
    let rows: String = (0..60_000).map(|i| format!("{i},{i}\n")).collect();
    assert_error_contains(given.read(format!("a,b\n{rows}"), CSV), "more than 1MiB");
}

#[test]
fn parquet_columns_follow_file_schema() {
    use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray, StructArray};
    use parquet::arrow::ArrowWriter;
    let inner: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None]));
    let outer = StructArray::try_from(vec![("b", inner)]).expect("a struct");
    let columns: Vec<(&str, ArrayRef)> =
        vec![("n", Arc::new(Int32Array::from(vec![Some(7), None]))), ("s", Arc::new(outer))];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
    let table = TableFixture::new().read(&bytes, FileFormat::Parquet).unwrap();
    let column = |name: &str, cells: [&str; 2]| (name.to_owned(), cells.map(str::to_owned).to_vec());
    assert_eq!(texts(&table), [column("n", ["7", "-"]), column("s.b", ["x", "-"])]);
    assert_error_contains(
        TableFixture::new().read(&bytes[..bytes.len() / 2], FileFormat::Parquet),
        "cannot be read as Parquet",
    );
}

proptest! {
    #[test]
    fn csv_and_ndjson_give_the_same_table(rows in proptest::collection::vec(proptest::collection::vec("[a-z \"\n,é]{1,4}", 3), 1..20)) {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["x", "y", "z"]).expect("a record");
        let mut lines = String::new();
        for row in &rows {
            writer.write_record(row).expect("a record");
            lines += &format!("{}\n", serde_json::json!({"x": row[0], "y": row[1], "z": row[2]}));
        }
        let given = TableFixture::new();
        let from_csv = given.read(writer.into_inner().expect("bytes"), CSV).expect("a table");
        let from_json = given.read(lines, FileFormat::Ndjson).expect("a table");
        prop_assert_eq!(texts(&from_csv), texts(&from_json));
        let column = |index: usize| rows.iter().map(|row| row[index].clone()).collect::<Vec<_>>();
        prop_assert_eq!(texts(&from_csv)[1].clone(), ("y".to_owned(), column(1)));
    }
}

#[test]
fn identifier_of_any_type_is_accepted() {
    let mut given = TableFixture::new();
    let schema = "name = \"s\"\n[[attribute]]\nname = \"note\"\ntype = \"string\"\nrole = \"identifier\"\n\
                  [[attribute]]\nname = \"number\"\ntype = \"integer\"\nrole = \"identifier\"\n\
                  [[attribute]]\nname = \"age\"\ntype = \"integer\"\n";
    given.schema = Some(Schema::parse(schema, "s.toml", std::path::Path::new("")).expect("a schema"));
    let note = "x y ".repeat(1_000);
    let table = given.read(format!("note,number,age\n{note},A-1,30\n{note}z,7,31\n"), CSV).expect("a table");
    assert_eq!((table.rows, table.columns.len()), (2, 3));
    assert_error_contains(given.read("note,number,age\nx,1,old\n", CSV), "\"age\"");
}

#[test]
fn unreadable_file_reports_first_reason() {
    let mut given = TableFixture::new();
    given.skip = true;
    assert_error_contains(
        given.read("[1,2]\n[3,4]\n", FileFormat::Ndjson),
        "first error: not an object (a record is a JSON object",
    );
}

#[test]
fn columns_that_are_not_asked_for_select_records_and_date_times() {
    let mut given = TableFixture::new();
    let schema = "name = \"s\"\n[[attribute]]\nname = \"code\"\ntype = \"string\"\nonly = [\"hr\"]\n\
                  [[attribute]]\nname = \"day\"\ntype = \"date\"\n\
                  [[attribute]]\nname = \"age\"\ntype = \"integer\"\n\
                  [[attribute]]\nname = \"sign\"\ntype = \"string\"\nonly = [\"+\"]\n";
    given.schema = Some(Schema::parse(schema, "s.toml", Path::new("")).expect("a schema"));
    let text = "code,day,age,sign\nhr,2026-01-01,30,+\nbp,2026-01-02,31,+\nhr,2026-01-03,32,-\nhr,2026-01-04,33,+\n";
    let all = given.read(text, CSV).expect("a table");
    assert_eq!((all.rows, all.columns.len()), (2, 4));
    for columns in [["age"], ["day"], ["sign"]] {
        given.columns = Some(columns.map(str::to_owned).to_vec());
        let table = given.read(text, CSV).expect("a table");
        assert_eq!((table.rows, table.columns.len()), (2, 1));
    }
    let by_topic = schema.replace("only = [\"+\"]", "topics = [\"t\"]");
    given.schema = Some(Schema::parse(&by_topic, "s.toml", Path::new("")).expect("a schema"));
    given.columns = None;
    assert_error_contains(given.read(text, CSV), "\"sign\" of the schema differs by topic");
}
