//! Tests groups with classes that have individual ranges, from a file to every format.

use crate::support;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rand::Rng;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use support::binary::{Outcome, Place, Process};

const SCHEMA: &str = r#"
name = "readings"
[[attribute]]
name = "person"
type = "string"
role = "subject"
[[attribute]]
name = "pulse"
type = "integer"
changes = "always"
[attribute.hierarchy]
kind = "intervals"
min = 30
max = 200
widths = [5, 10, 40]
[[attribute]]
name = "temp"
type = "float"
round = 0.1
changes = "always"
[attribute.hierarchy]
kind = "intervals"
min = 30
max = 40
widths = [0.5, 2]
[[attribute]]
name = "act"
type = "string"
changes = "always"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree]
"still" = ["sleep", "rest"]
"moving" = ["walk", "run"]
"#;

const RANGES: &str = "[[group]]\nname = \"all\"\nattributes = [\"pulse\", \"temp\", \"act\"]\ntreatment = \"ranges\"\n";
const LEVELS: &str = "[[group]]\nname = \"all\"\nattributes = [\"pulse\", \"temp\", \"act\"]\n";
const ATTRIBUTES: [&str; 3] = ["pulse", "temp", "act"];

/// Three hundred subjects in six batches. Some cells are missing, and a few pulses are outside of their domain.
fn records() -> Vec<Value> {
    let mut dice = ChaCha8Rng::seed_from_u64(7);
    let record = |n: usize| {
        let run = dice.random_range(0..4);
        let pulse = 55 + 30 * run + dice.random_range(0..25);
        let pulse = if n % 97 == 5 { json!(250) } else { json!(pulse) };
        let temp = f64::from(340 + dice.random_range(0..25) + run) / 10.0;
        let act = ["sleep", "rest", "walk", "run"][run as usize];
        let temp = if dice.random_range(0..20) == 0 { Value::Null } else { json!(temp) };
        json!({"person": format!("p{n}"), "pulse": pulse, "temp": temp, "act": act})
    };
    (0..300).map(record).collect()
}

fn place(group: &str, records: &[Value]) -> Place {
    let place = Place::new(SCHEMA, group);
    let lines = records.iter().fold(String::new(), |mut text, record| {
        writeln!(text, "{record}").expect("a string");
        text
    });
    place.write("in.ndjson", lines);
    place
}

fn run(place: &Place, overrides: &[(&str, &str)]) -> Outcome {
    Process::spawn(place.command(overrides, &["--lineage", "lineage.ndjson"]), place.port).wait()
}

fn throng(place: &Place, overrides: &[(&str, &str)], arguments: &str) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.args(arguments.split_whitespace());
    place.surround(&mut command, overrides);
    Process::spawn(command, place.port).wait()
}

fn json_of(outcome: Outcome) -> Value {
    serde_json::from_slice(&outcome.expect(0).stdout).expect("nothing but JSON")
}

fn object(line: &str) -> Map<String, Value> {
    serde_json::from_str(line).expect("an object")
}

/// Returns lower end, upper end, and whether the upper end is excluded.
fn sides(cell: &Value) -> Option<(f64, f64, bool)> {
    if let Some(number) = cell.as_f64() {
        return Some((number, number, false));
    }
    let text = cell.as_str()?;
    if let Some(rest) = text.strip_prefix('[') {
        let (low, high) = rest.split_once(',')?;
        return Some((low.parse().ok()?, high[..high.len() - 1].parse().ok()?, high.ends_with(')')));
    }
    let (low, high) = text.split_once('-')?;
    Some((low.parse().ok()?, high.parse().ok()?, false))
}

fn acts(cell: &str) -> &[&str] {
    match cell {
        "still" => &["sleep", "rest"],
        "moving" => &["walk", "run"],
        "sleep" => &["sleep"],
        "rest" => &["rest"],
        "walk" => &["walk"],
        "run" => &["run"],
        _ => &["sleep", "rest", "walk", "run"],
    }
}

fn covers(attribute: &str, cell: &Value, value: &Value) -> bool {
    if cell == "*" {
        return true;
    }
    if attribute == "act" || cell.is_null() {
        return cell == value || acts(cell.as_str().unwrap_or_default()).contains(&value.as_str().unwrap_or("-"));
    }
    let (Some((low, high, open)), Some(value)) = (sides(cell), value.as_f64()) else { return false };
    low <= value && (value < high || value <= high && !open)
}

fn within(attribute: &str, fine: &Value, wide: &Value) -> bool {
    if wide == "*" || fine == wide {
        return true;
    }
    if fine == "*" || fine.is_null() || wide.is_null() {
        return false;
    }
    if attribute == "act" {
        let (fine, wide) = (acts(fine.as_str().expect("a label")), acts(wide.as_str().expect("a label")));
        return fine.iter().all(|act| wide.contains(act));
    }
    let (fine, wide) = (sides(fine).expect("a range"), sides(wide).expect("a range"));
    wide.0 <= fine.0 && (fine.1 < wide.1 || fine.1 <= wide.1 && (fine.2 || !wide.2))
}

#[test]
fn ranges_of_a_small_example_have_expected_lines() {
    let record = |n: usize, pulse: u32, temp: f64, act: &str| json!({"person": format!("p{n}"), "pulse": pulse, "temp": temp, "act": act});
    let records = [
        record(1, 61, 36.1, "sleep"),
        record(2, 64, 36.1, "rest"),
        record(3, 73, 36.1, "sleep"),
        record(4, 121, 36.1, "run"),
        record(5, 134, 37.2, "run"),
        record(6, 150, 37.4, "run"),
    ];
    let place = place(RANGES, &records);
    let account = run(&place, &[]).expect(0).account();
    assert_eq!((account.released, account.suppressed), (6, 0));
    let low = r#"{"pulse":"60-74","temp":36.1,"act":"still"}"#;
    let high = r#"{"pulse":"120-154","temp":"[36,37.5)","act":"run"}"#;
    assert_eq!(place.lines("out.ndjson"), [high, high, high, low, low, low]);
}

#[test]
fn ranges_cover_crowds_and_are_minimal() {
    let records = records();
    let place = place(RANGES, &records);
    run(&place, &[]).expect(0);
    let out = place.lines("out.ndjson");
    assert!(out.len() > 280, "{} lines", out.len());
    let mut classes: BTreeMap<(u64, String), BTreeSet<usize>> = BTreeMap::new();
    for line in place.lines("lineage.ndjson") {
        let entry = object(&line);
        let number = |key: &str| entry[key].as_u64().unwrap_or_else(|| panic!("{key} in {line}"));
        let row = usize::try_from(entry["source"][2].as_u64().expect("an offset")).expect("a row");
        let printed = &out[usize::try_from(number("line")).expect("a line")];
        let cells = object(printed);
        for attribute in ATTRIBUTES {
            assert!(covers(attribute, &cells[attribute], &records[row][attribute]), "{printed} of {}", records[row]);
        }
        classes.entry((number("batch"), printed.clone())).or_default().insert(row);
    }
    for ((_, class), rows) in &classes {
        assert!(rows.len() >= 3, "{class} of {rows:?}");
    }
    for ((batch, class), rows) in &classes {
        let wide = object(class);
        for ((_, other), _) in classes.iter().filter(|((other, fine), _)| other == batch && fine != class) {
            let fine = object(other);
            let is_finer = ATTRIBUTES.iter().all(|a| within(a, &fine[*a], &wide[*a]));
            let is_in = |row: &usize| ATTRIBUTES.iter().all(|a| covers(a, &fine[*a], &records[*row][*a]));
            assert!(!is_finer || !rows.iter().any(is_in), "{other} takes somebody of {class}");
        }
    }
}

#[test]
fn ranges_are_read_back_by_evaluate_attack_and_verify_release() {
    let records = records();
    let mut losses = Vec::new();
    for group in [LEVELS, RANGES] {
        let place = place(group, &records);
        run(&place, &[]).expect(0);
        let quality = json_of(throng(
            &place,
            &[],
            "evaluate in.ndjson out.ndjson -c throng.toml --lineage lineage.ndjson --json",
        ));
        let quality = &quality["quality"];
        for attribute in quality["attributes"].as_array().expect("attributes") {
            assert_eq!(attribute["falsified"], 0, "{attribute}");
        }
        losses.push(quality["loss_of_all"].as_f64().expect("a loss"));
        let arguments = "attack out.ndjson --original in.ndjson -c throng.toml --lineage lineage.ndjson --json";
        let yields = json_of(throng(&place, &[], arguments));
        let mut yields = yields.as_array().expect("yields").iter();
        let exclusion = yields.find(|found| found["attack"] == "exclusion").expect("exclusion");
        assert_eq!(exclusion["rate"], exclusion["chance"], "nobody is struck out: {exclusion}");
        let arguments = "verify-release out.ndjson -c throng.toml --lineage lineage.ndjson --json";
        assert_eq!(json_of(throng(&place, &[], arguments))["kept"], true);
        // A bound off the grid is found.
        let spoiled = place.lines("out.ndjson").join("\n").replacen("\"pulse\":\"", "\"pulse\":\"1", 1) + "\n";
        place.write("out.ndjson", spoiled);
        assert_eq!(throng(&place, &[], "verify-release out.ndjson -c throng.toml").code, Some(4));
    }
    assert!(losses[1] < 0.9 * losses[0], "{losses:?}");
}

#[test]
fn ranges_are_released_in_every_format() {
    for out in ["out.csv", "out.parquet"] {
        let place = place(RANGES, &records());
        let sink = [("SINK__PATH", out)];
        run(&place, &sink).expect(0);
        let arguments = format!("verify-release {out} -c throng.toml --lineage lineage.ndjson --json");
        assert_eq!(json_of(throng(&place, &sink, &arguments))["kept"], true, "{out}");
        let arguments = format!("evaluate in.ndjson {out} -c throng.toml --lineage lineage.ndjson --json");
        let quality = json_of(throng(&place, &sink, &arguments));
        assert!(
            quality["quality"]["loss"].as_f64().is_some_and(|loss| loss < 0.4),
            "{out}: {}",
            quality["quality"]["loss"]
        );
    }
}

/// Writes a Parquet file again, with another column `pulse_min`, or without it.
fn rewrite(path: &Path, column: impl Fn(&Int64Array) -> Option<ArrayRef>) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("a file")).expect("Parquet");
    let batches: Vec<RecordBatch> =
        reader.build().expect("a reader").collect::<Result<_, _>>().expect("the rows of a release");
    let changed = |batch: &RecordBatch| {
        let columns = batch
            .schema()
            .fields()
            .iter()
            .zip(batch.columns())
            .filter_map(|(field, array)| {
                let array = if field.name() == "pulse_min" {
                    column(array.as_primitive::<Int64Type>())
                } else {
                    Some(array.clone())
                };
                Some((field.name().clone(), array?, true))
            })
            .collect::<Vec<_>>();
        RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
    };
    let batches: Vec<RecordBatch> = batches.iter().map(changed).collect();
    let schema = batches.first().expect("a row").schema();
    let mut writer = ArrowWriter::try_new(File::create(path).expect("a file"), schema, None).expect("a writer");
    batches.iter().try_for_each(|batch| writer.write(batch)).expect("rows");
    writer.close().expect("a file");
}

#[test]
fn parquet_bounds_are_verified_against_the_text() {
    let place = place(RANGES, &records());
    let sink = [("SINK__PATH", "out.parquet")];
    run(&place, &sink).expect(0);
    let path = place.path("out.parquet");
    let verify = || throng(&place, &sink, "verify-release out.parquet -c throng.toml --lineage lineage.ndjson");
    let evaluate = || throng(&place, &sink, "evaluate in.ndjson out.parquet -c throng.toml --lineage lineage.ndjson");
    verify().expect(0);
    evaluate().expect(0);
    // pandas turns integers with nulls into doubles.
    rewrite(&path, |bounds| {
        Some(Arc::new(bounds.iter().map(|bound| bound.map(|bound| bound as f64)).collect::<Float64Array>()))
    });
    verify().expect(0);
    evaluate().expect(0);
    run(&place, &sink).expect(0);
    rewrite(&path, |bounds| {
        Some(Arc::new(bounds.iter().map(|bound| bound.map(|bound| bound + 1)).collect::<Int64Array>()))
    });
    let refused = verify();
    let said = String::from_utf8_lossy(&refused.stdout).into_owned() + &refused.stderr;
    assert_eq!(refused.code, Some(4), "{said}");
    assert!(said.contains("bounds of a cell"), "{said}");
    let refused = evaluate();
    assert!(refused.code != Some(0) && refused.stderr.contains("bounds of a cell"), "{}", refused.stderr);
    run(&place, &sink).expect(0);
    rewrite(&path, |_| None);
    verify().expect(0);
    evaluate().expect(0);
}

#[test]
fn ranges_are_refused_where_the_guarantee_would_be_weaker() {
    let refused = |schema: &str, more: &str, overrides: &[(&str, &str)], key: &str| {
        let place = Place::new(schema, more);
        place.write("in.ndjson", "");
        let outcome = throng(&place, overrides, "check -c throng.toml");
        assert_ne!(outcome.code, Some(0), "{more}");
        let said = String::from_utf8_lossy(&outcome.stdout).into_owned() + &outcome.stderr;
        assert!(said.contains(key), "{said}");
    };
    let two = "[[group]]\nname = \"a\"\nattributes = [\"pulse\", \"temp\"]\ntreatment = \"ranges\"\n\
        [[group]]\nname = \"b\"\nattributes = [\"act\"]\n";
    refused(SCHEMA, two, &[], "group[0].treatment");
    refused(SCHEMA, RANGES, &[("PRIVACY__MAX_HOLD_BATCHES", "2")], "group[0].treatment");
    refused(SCHEMA, RANGES, &[("TREATMENT__PRESET", "coverage")], "group[0].treatment");
    let still = SCHEMA.replacen("changes = \"always\"", "changes = \"never\"", 1);
    refused(&still, RANGES, &[("PRIVACY__MAX_DELAY", "1day")], "group[0].treatment");
    // If no attribute changes, one line per window is allowed, but not one per subject and batch.
    let still = SCHEMA.replace("changes = \"always\"", "changes = \"never\"");
    refused(&still, RANGES, &[], "group[0].treatment");
    let place = Place::new(&still, RANGES);
    place.write("in.ndjson", "");
    throng(&place, &[("PRIVACY__MAX_DELAY", "1day")], "check -c throng.toml").expect(0);
}
