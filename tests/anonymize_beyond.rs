//! Tests `throng anonymize --temp`: data sets of several files, larger than memory.

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::support::small_disk::SmallDisk;

const SCHEMA: &str = r#"
name = "people"
[[attribute]]
name = "age"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 99
widths = [5, 20]
[[attribute]]
name = "place"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 999
widths = [10, 100]
[[attribute]]
name = "sex"
type = "string"
[[attribute]]
name = "illness"
type = "string"
role = "sensitive"
[[attribute]]
name = "person"
type = "string"
role = "subject"
"#;

const CONFIG: &str = r#"
[schema]
file = "schema.toml"
[privacy]
k = 4
[anonymize]
suppression_limit = 0.1
[[privacy.model]]
kind = "l_diversity"
attribute = "illness"
l = 2
diversity = "distinct"
"#;

fn roll(seed: &mut u64, sides: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*seed >> 33) % sides).min((*seed >> 17) % sides)
}

fn rows(count: usize, mut seed: u64) -> RecordBatch {
    let mut columns: [Vec<u64>; 5] = Default::default();
    for _ in 0..count {
        for (column, sides) in columns.iter_mut().zip([100, 1000, 2, 400, 40_000]) {
            column.push(roll(&mut seed, sides));
        }
    }
    let whole =
        |cells: &[u64]| -> ArrayRef { Arc::new(cells.iter().map(|&cell| Some(cell as i64)).collect::<Int64Array>()) };
    let text = |name: &str, cells: &[u64]| -> ArrayRef {
        Arc::new(cells.iter().map(|cell| Some(format!("{name}{cell}"))).collect::<StringArray>())
    };
    let [age, place, sex, illness, person] = &columns;
    RecordBatch::try_from_iter([
        ("age", whole(age)),
        ("place", whole(place)),
        ("sex", text("s", sex)),
        ("illness", text("i", illness)),
        ("person", text("p", person)),
    ])
    .expect("columns of one length")
}

fn write(path: &Path, batches: &[RecordBatch]) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let mut writer =
        ArrowWriter::try_new(File::create(path).expect("a file"), batches[0].schema(), None).expect("a writer");
    batches.iter().for_each(|batch| writer.write(batch).expect("written"));
    writer.close().expect("closed");
}

fn folder(more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("schema.toml"), SCHEMA).expect("written");
    std::fs::write(folder.path().join("config.toml"), format!("{CONFIG}{more}")).expect("written");
    folder
}

fn anonymize(folder: &Path, args: &str) -> Command {
    let mut command = crate::support::binary::throng();
    command.env("THRONG_SECRET", "one secret of all releases");
    command.current_dir(folder).args(["anonymize", "-c", "config.toml"]).args(args.split_whitespace());
    command
}

fn done(folder: &Path, args: &str) -> Output {
    let output = anonymize(folder, args).output().expect("it starts");
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn refused(folder: &Path, args: &str, code: i32, said: &[&str]) {
    let output = anonymize(folder, args).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args}: {text}");
    said.iter().for_each(|said| assert!(text.contains(said), "{args}: {text:?} without {said:?}"));
}

fn report(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("r.json")).expect("a report");
    let mut report: Value = serde_json::from_str(&text).expect("JSON");
    let object = report.as_object_mut().expect("an object");
    for key in ["seconds", "search_seconds", "history"] {
        object.remove(key).expect("it is there");
    }
    // The last digits depend on the order of the classes, which is not fixed.
    let average = object["risks"]["average"].as_f64().expect("a number");
    object["risks"]["average"] = format!("{average:.9}").into();
    report
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).expect("a release")
}

#[test]
fn several_files_and_temp_file_give_the_same_release() {
    let folder = folder("");
    let place = folder.path();
    let batches = [rows(9000, 1), rows(1, 2), rows(12_000, 3)];
    for (name, batch) in ["a", "b", "c"].into_iter().zip(&batches) {
        write(&place.join(format!("days/{name}.parquet")), std::slice::from_ref(batch));
    }
    write(&place.join("all.parquet"), &batches);
    std::fs::create_dir(place.join("temp")).expect("a folder");
    done(place, "all.parquet -o held.csv --report r.json");
    let (held, told) = (read(place, "held.csv"), report(place));
    assert!(told["suppressed_sensitive_cells"].as_u64() > Some(0), "{told}");
    for input in
        ["days", "days/*.parquet", "days/a.parquet days/b.parquet days/c.parquet", "days/a.parquet days/[bc].parquet"]
    {
        done(place, &format!("{input} -o out.csv --report r.json"));
        assert!(read(place, "out.csv") == held && report(place) == told, "{input}");
        done(place, &format!("{input} -o out.csv --report r.json --temp temp --memory 12MiB"));
        assert!(read(place, "out.csv") == held && report(place) == told, "{input} in a file");
    }
    for output in ["out.ndjson", "out.parquet"] {
        done(place, &format!("all.parquet -o {output}"));
        let held = read(place, output);
        done(place, &format!("all.parquet -o {output} --temp temp --memory 12MiB"));
        assert!(read(place, output) == held, "{output}");
    }
    let printed = |args: &str| done(place, &format!("all.parquet -o - {args}")).stdout;
    assert!(printed("--temp temp") == read(place, "out.ndjson"));
    assert_eq!(std::fs::read_dir(place.join("temp")).expect("it is there").count(), 0, "files have no name");
}

#[test]
fn input_larger_than_memory_is_refused_with_a_remedy() {
    let folder = folder("");
    let place = folder.path();
    write(&place.join("in.parquet"), &[rows(30_000, 1)]);
    refused(place, "in.parquet -o out.csv --memory 1MiB", 1, &["in.parquet needs more than 1MiB", "--temp"]);
    for memory in ["64KiB", "1MiB", "2MiB", "3MiB"] {
        let said: &[&str] = &["(--memory)", "are available", "raise --memory"];
        let output =
            anonymize(place, &format!("in.parquet -o out.csv --temp . --memory {memory}")).output().expect("it starts");
        if !output.status.success() {
            refused(place, &format!("in.parquet -o out.csv --temp . --memory {memory}"), 1, said);
            assert!(!place.join("out.csv").exists(), "nothing is written");
        }
    }
    refused(place, "in.parquet -o out.csv --temp . --memory 64KiB", 1, &["need"]);
    refused(place, "in.parquet -o out.csv --temp nowhere", 2, &["--temp", "nowhere"]);
    refused(place, "in.parquet - -o out.csv", 2, &["standard input cannot be combined"]);
    refused(place, "in.parquet --frontier --temp .", 2, &["--temp", "--frontier"]);
    refused(place, "in.parquet in.parquet -o out.csv", 1, &["in.parquet"]);
}

#[test]
fn options_that_need_memory_are_refused_with_temp() {
    // The input file does not exist: the error precedes reading.
    let models = folder("[[privacy.model]]\nkind = \"k_map\"\nk = 5\n");
    refused(models.path(), "in.parquet -o out.csv --temp .", 2, &["privacy.model[1].kind", "--temp"]);
    let folder = folder("");
    for (key, value) in [("transformation", "local"), ("microaggregation", "age")] {
        let variable = format!("THRONG__ANONYMIZE__{}", key.to_uppercase());
        let told = anonymize(folder.path(), "in.parquet -o out.csv --temp .").env(variable, value).output();
        let said = String::from_utf8_lossy(&told.expect("it starts").stderr).into_owned();
        assert!(said.contains(&format!("anonymize.{key}")) && said.contains("--temp"), "{said}");
    }
}

#[test]
fn full_temp_disk_is_reported_and_keeps_the_old_release() {
    let folder = folder("");
    let place = folder.path();
    write(&place.join("in.parquet"), &[rows(60_000, 1)]);
    std::fs::write(place.join("out.csv"), "an earlier release\n").expect("written");
    let Some(_disk) = SmallDisk::mount(&place.join("small"), "256k") else { return };
    refused(place, "in.parquet -o out.csv --temp small", 1, &["cannot be stored in small", "No space left", "--temp"]);
    assert_eq!(read(place, "out.csv"), b"an earlier release\n");
}

fn peak(mut command: Command) -> u64 {
    let mut process = command.stderr(Stdio::null()).spawn().expect("it starts");
    let mut peak = 0;
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
        let high = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = high.and_then(|high| high.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0) * 1024);
        if let Some(ended) = process.try_wait().expect("it is ours") {
            assert!(ended.success());
            return peak;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn temp_file_keeps_memory_below_its_limit() {
    let folder = folder("");
    let place = folder.path();
    let batches: Vec<RecordBatch> = (0..10).map(|seed| rows(60_000, seed)).collect();
    write(&place.join("in.parquet"), &batches);
    let held = peak(anonymize(place, "in.parquet -o held.csv"));
    let limit = 192 << 20;
    let spilled = peak(anonymize(place, "in.parquet -o out.csv --temp . --memory 192MiB"));
    assert!(read(place, "out.csv") == read(place, "held.csv"));
    println!("in memory {} MiB, in a file {} MiB", held >> 20, spilled >> 20);
    assert!(spilled < limit && limit < held, "in memory {held}, in a file {spilled} bytes");
}
