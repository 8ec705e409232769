//! Tests data sets of several Parquet files: equal reports in memory and in a temporary file.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use crate::audit::place::Place;
use crate::support::small_disk::SmallDisk;

fn roll(seed: &mut u64, sides: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*seed >> 33) % sides).min((*seed >> 17) % sides)
}

fn rows(count: usize, seed: u64) -> RecordBatch {
    let mut seed = seed;
    let mut column = |sides: u64, missing: u64| -> Vec<Option<u64>> {
        let mut cell = |_| Some(roll(&mut seed, sides)).filter(|cell| missing == 0 || cell % missing != missing - 1);
        (0..count).map(&mut cell).collect()
    };
    let text = |name: &str, cells: Vec<Option<u64>>| -> ArrayRef {
        Arc::new(cells.into_iter().map(|cell| cell.map(|cell| format!("{name}{cell}"))).collect::<StringArray>())
    };
    let person = text("p", column(700, 97));
    let whole = |cells: Vec<Option<u64>>| -> ArrayRef {
        Arc::new(cells.into_iter().map(|cell| cell.map(|cell| cell as i64)).collect::<Int64Array>())
    };
    let half = |cells: Vec<Option<u64>>| -> ArrayRef {
        Arc::new(cells.into_iter().map(|cell| cell.map(|cell| cell as f64 / 2.0)).collect::<Float64Array>())
    };
    let age = whole(column(60, 0));
    let sex = text("s", column(2, 0));
    let place = text("zip", column(300, 50));
    let steps = half(column(40, 11));
    let illness = text("icd", column(12, 5));
    let number = whole(column(1500, 0));
    RecordBatch::try_from_iter([
        ("person", person),
        ("age", age),
        ("sex", sex),
        ("place", place),
        ("steps", steps),
        ("illness", illness),
        ("number", number),
    ])
    .expect("columns of one length")
}

fn write(path: &Path, batch: &RecordBatch) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(1000)).build();
    let file = File::create(path).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
    writer.write(batch).expect("written");
    writer.close().expect("closed");
}

fn data_set() -> Place {
    let place = Place::new();
    for (name, count, seed) in [("a", 16_000, 1), ("b", 1, 2), ("c", 14_000, 3)] {
        write(&place.0.path().join("days").join(format!("{name}.parquet")), &rows(count, seed));
    }
    place
}

fn answer(mut report: Value) -> Value {
    let keys = report.as_object_mut().expect("an object");
    for key in ["seconds", "timings", "evaluated", "pruned"] {
        keys.remove(key).expect("it is there");
    }
    report
}

#[test]
fn audit_with_temp_file_gives_the_report_of_memory() {
    let place = data_set();
    std::fs::create_dir(place.0.path().join("temp")).expect("a folder");
    for options in [
        "--k 3 --subject person",
        "--k 5 --subject person --singletons mask --rows 20",
        "--k 4 --singletons mask --show-values --threads 1",
        "--k 3 --strategy greedy --rows 10",
    ] {
        let held = answer(place.report(&format!("days --format parquet {options}")));
        // Above the limit, cells are written to the file.
        let spilled = answer(place.report(&format!("days --format parquet {options} --memory 2MiB --temp temp")));
        assert_eq!(spilled, held, "{options}");
        assert_eq!(
            spilled["rows"].as_u64().expect("rows") + spilled["without_subject"].as_u64().expect("rows"),
            30_001
        );
    }
    place.audit("days --format parquet --k 3 --memory 2MiB").refuses(1, &["days needs more than 2MiB", "--temp"]);
    let left: Vec<_> = std::fs::read_dir(place.0.path().join("temp")).expect("it is there").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn audit_with_temp_file_applies_the_schema() {
    let place = data_set();
    place.write(
        "schema.toml",
        "name = \"days\"\n[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n\
         [[attribute]]\nname = \"age\"\ntype = \"integer\"\nround = 10\n[[attribute]]\nname = \"sex\"\ntype = \"string\"\n\
         [[attribute]]\nname = \"steps\"\ntype = \"float\"\n\
         [[attribute]]\nname = \"number\"\ntype = \"integer\"\nrole = \"insensitive\"\n",
    );
    let asked = "days/*.parquet --k 3 --schema schema.toml";
    let held = answer(place.report(asked));
    let spilled = answer(place.report(&format!("{asked} --memory 1MiB --temp .")));
    assert_eq!(spilled, held);
}

#[test]
fn audit_with_temp_file_refuses_unsupported_options() {
    let place = data_set();
    place.audit("days --format parquet --k 3 --temp nowhere").refuses(2, &["--temp", "nowhere"]);
    place.audit("days --format parquet --k 3 --temp . --link known.csv").refuses(2, &["--temp", "--link"]);
    place.write("t.ndjson", "{\"a\":1}\n");
    place.audit("t.ndjson --k 2 --temp .").refuses(2, &["--temp", "NDJSON", "--schema"]);
}

#[test]
fn audit_on_a_full_disk_names_the_remedy() {
    let place = data_set();
    let Some(_disk) = SmallDisk::mount(&place.0.path().join("small"), "64k") else { return };
    let words = "days --format parquet --k 3 --memory 2MiB --temp small";
    place.audit(words).refuses(1, &["cannot be written to small", "No space left", "--temp"]);
}

#[test]
fn audit_of_different_files_names_file_and_column() {
    let place = data_set();
    let other = RecordBatch::try_from_iter([("person", Arc::new(StringArray::from(vec!["p1"])) as ArrayRef)]);
    write(&place.0.path().join("days/d.parquet"), &other.expect("a column"));
    place.audit("days --format parquet --k 3").refuses(1, &["days/d.parquet", "days/c.parquet", "without \"age\""]);
    let texts = RecordBatch::try_from_iter([("x", Arc::new(StringArray::from(vec!["1"])) as ArrayRef)]);
    let whole = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
    write(&place.0.path().join("mixed/a.parquet"), &texts.expect("a column"));
    write(&place.0.path().join("mixed/b.parquet"), &whole.expect("a column"));
    place.audit("mixed --format parquet --k 2").refuses(1, &["mixed/b.parquet", "\"x\" is Int64, not Utf8"]);
}

#[test]
fn audit_of_damaged_parquet_names_the_row_group() {
    let place = data_set();
    let path = place.0.path().join("days/c.parquet");
    let mut bytes = std::fs::read(&path).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle - 3000..middle + 3000].fill(0xff);
    std::fs::write(&path, bytes).expect("written");
    place.audit("days --format parquet --k 3").refuses(1, &["days/c.parquet", "row group", "of 14"]);
}

#[test]
fn audit_drops_columns_with_too_many_values() {
    let place = Place::new();
    let numbers: Vec<i64> = (0..60_000).collect();
    let kinds: Vec<i64> = numbers.iter().map(|number| number % 7).collect();
    let batch = RecordBatch::try_from_iter([
        ("number", Arc::new(Int64Array::from(numbers.clone())) as ArrayRef),
        ("kind", Arc::new(Int64Array::from(kinds)) as ArrayRef),
    ]);
    write(&place.0.path().join("t.parquet"), &batch.expect("two columns"));
    let report = place.report("t.parquet --k 3 --memory 1MiB --temp .");
    assert_eq!(report["standalone_identifiers"], serde_json::json!(["number"]));
    assert_eq!((&report["rows"], &report["risk"]["smallest_class"]), (&60_000.into(), &8571.into()));
    assert!(report["notes"].to_string().contains("too many distinct values"), "{}", report["notes"]);
    // Too many values to hold, but no identifier.
    let few: Vec<i64> = numbers.iter().map(|number| number / 4).collect();
    let batch = RecordBatch::try_from_iter([("few", Arc::new(Int64Array::from(few)) as ArrayRef)]);
    write(&place.0.path().join("few.parquet"), &batch.expect("a column"));
    place.audit("few.parquet --k 3 --memory 500KiB --temp .").refuses(1, &["column \"few\"", "--columns", "--memory"]);
}

#[test]
fn audit_of_several_files_is_one_table() {
    let place = data_set();
    let together = answer(place.report("days --format parquet --k 3 --subject person"));
    for more in ["", "--memory 2MiB --temp ."] {
        let named = "days/a.parquet days/b.parquet days/c.parquet --k 3 --subject person";
        let mut apart = answer(place.report(&format!("{named} {more}")));
        assert_eq!(apart["input"], "days/a.parquet and 2 more");
        apart["input"] = together["input"].clone();
        assert_eq!(apart, together, "{more}");
    }
    for (name, rows) in
        [("old/1.csv", "1,a\n1,a\n"), ("old/2.csv", "1,a\n"), ("2025.csv", "2,b\n"), ("2026.csv", "1,a\n")]
    {
        std::fs::create_dir_all(place.0.path().join("old")).expect("a folder");
        place.write(name, format!("age,sex\n{rows}"));
    }
    let report = place.report("old 2025.csv 2026.c* --k 2 --rows 1");
    assert_eq!((&report["rows"], &report["input"]), (&5.into(), &"old and 2 more".into()));
    assert_eq!(report["riskiest"]["records"][0]["record"], 4);
    place.write("a.ndjson", "{\"age\":1}\n{\"age\":1,\"sex\":\"a\"}\n");
    place.write("b.ndjson", "{\"sex\":\"b\"}\n");
    assert_eq!(place.report("a.ndjson b.ndjson --k 2")["rows"], 3);
}

#[test]
fn audit_of_incompatible_files_is_refused() {
    let place = data_set();
    place.write("a.csv", "x\n1\n");
    place.write("b.csv", "y\n1\n");
    place.audit("a.csv days/a.parquet --k 2").refuses(2, &["days/a.parquet", "a.csv", "--format"]);
    place.audit("a.csv - --k 2").refuses(2, &["standard input cannot be combined"]);
    place.audit("- a.csv --k 2").refuses(2, &["standard input cannot be combined"]);
    place.audit("a.csv ./a.csv --k 2").refuses(1, &["a.csv", "two names of one file"]);
    place.audit("days days/b.parquet --k 2 --format parquet").refuses(1, &["days/b.parquet", "two names of one file"]);
    place.audit("a.csv nowhere.csv --k 2").refuses(1, &["nowhere.csv"]);
    place.audit("a.csv b.csv --k 2").refuses(1, &["b.csv", "cannot use the"]);
    place.audit("a.csv b.csv --k 2 --html b.csv").refuses(2, &["b.csv"]);
}

#[test]
fn audit_checks_types_of_dropped_columns() {
    let place = Place::new();
    let rows = |from: u32, numbers: Vec<String>| {
        let kinds: Vec<i64> = (i64::from(from)..).take(numbers.len()).map(|number| number % 7).collect();
        let batch = RecordBatch::try_from_iter([
            ("number", Arc::new(StringArray::from(numbers)) as ArrayRef),
            ("kind", Arc::new(Int64Array::from(kinds)) as ArrayRef),
        ]);
        batch.expect("two columns")
    };
    write(&place.0.path().join("a.parquet"), &rows(0, (0..60_000).map(|number| number.to_string()).collect()));
    write(&place.0.path().join("b.parquet"), &rows(60_000, vec!["7".into(), "many".into(), "8".into()]));
    place.write(
        "schema.toml",
        "name = \"numbers\"\n[[attribute]]\nname = \"number\"\ntype = \"integer\"\n\
         [[attribute]]\nname = \"kind\"\ntype = \"integer\"\n",
    );
    let asked = "a.parquet b.parquet --k 3 --schema schema.toml --memory 1MiB --temp .";
    place.audit(asked).refuses(1, &["record 60002 of a.parquet and 1 more", "number"]);
    let report = place.report(&format!("{asked} --skip-unreadable"));
    assert_eq!(report["standalone_identifiers"], serde_json::json!(["number"]));
    assert_eq!((&report["rows"], &report["unreadable"]["wrong_type"]), (&60_002.into(), &1.into()));
}
