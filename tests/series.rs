//! Tests series: cohort rows in every format, recounted here, and from topic to topic over kills.

mod jobs;
#[cfg(feature = "failpoints")]
mod topics;

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use support::daemon::{Dice, scratch};

const SCHEMA: &str = r#"
name = "days"
[[attribute]]
name = "who"
type = "string"
role = "subject"
[[attribute]]
name = "day"
type = "date"
role = "time"
changes = "always"
[[attribute]]
name = "steps"
type = "integer"
unit = "{steps}"
changes = "always"
[attribute.hierarchy]
kind = "bounds"
min = 0
max = 40000
levels = [[1000, 5000, 10000], [5000]]
[[attribute]]
name = "sex"
type = "string"
changes = "never"
"#;

const SERIES: &str =
    "[release]\nfragments = false\n[cohort]\nstrata = [\"sex\"]\n[[series]]\nname = \"daily\"\nlateness = \"1d\"\n";

/// Subject, day, steps, sex. Some days are missing.
fn days(people: u64, days: u64, seed: u64) -> Vec<(String, String, u64, &'static str)> {
    let mut dice = Dice::new(seed);
    let mut all = Vec::new();
    for day in 0..days {
        for person in 0..people {
            if dice.roll(8) == 0 {
                continue;
            }
            let date = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).expect("a date") + chrono::Days::new(day);
            let sex = if person % 2 == 0 { "female" } else { "male" };
            all.push((format!("p{person:03}"), date.to_string(), 3_000 + person * 40 + dice.roll(4_000), sex));
        }
    }
    all
}

fn write_csv(path: &Path, rows: &[(String, String, u64, &str)]) {
    let line = |(who, day, steps, sex): &(String, String, u64, &str)| format!("{who},{day},{steps},{sex}\n");
    fs::write(path, "who,day,steps,sex\n".to_owned() + &rows.iter().map(line).collect::<String>()).expect("the input");
}

fn run(dir: &Path, name: &str, sink: &str, more: &str) -> String {
    run_on(dir, name, (&format!("{}/in.csv", dir.display()), Stdio::null()), sink, more)
}

fn pipe(dir: &Path, name: &str, input: &[(String, String, u64, &str)], sink: &str, more: &str) -> String {
    write_csv(&dir.join("piped.csv"), input);
    let input = fs::File::open(dir.join("piped.csv")).expect("the input");
    run_on(dir, name, ("-", input.into()), sink, more)
}

fn run_on(dir: &Path, name: &str, (source, input): (&str, Stdio), sink: &str, more: &str) -> String {
    let place = dir.display();
    if !dir.join("days.toml").exists() {
        fs::write(dir.join("days.toml"), SCHEMA).expect("the schema");
    }
    let text = format!(
        "[source]\nkind = \"file\"\nformat = \"csv\"\npath = \"{source}\"\n\
         [sink]\nkind = \"file\"\npath = \"{place}/{sink}\"\n\
         [schema]\nfile = \"{place}/days.toml\"\n[privacy]\nk = 3\n[state]\nsecret_file = \"{place}/key\"\n{more}"
    );
    let config = dir.join(format!("{name}.toml"));
    fs::write(&config, text).expect("the configuration");
    let mut command = crate::support::binary::throng();
    let output = command.arg("run").arg("-c").arg(&config).stdin(input).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

fn rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

#[test]
fn series_rows_are_accurate_and_have_enough_subjects() {
    let dir = scratch();
    let input = days(40, 30, 1);
    write_csv(&dir.path().join("in.csv"), &input);
    let said = run(dir.path(), "series", "out.ndjson", SERIES);
    assert!(said.contains("40 of 40 people"), "{said}");
    let rows = rows(&dir.path().join("out.ndjson"));
    let mut by_day: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (_, day, steps, _) in &input {
        by_day.entry(day).or_default().push(*steps as f64);
    }
    let mut compared = 0;
    for row in &rows {
        assert!(row["n"].as_u64().expect("a number of people") >= 3, "{row}");
        assert!(row["sd"].as_f64().expect("a deviation") > 0.0, "{row}");
        if row["cohort"].is_null() && row["stratum"]["sex"].is_null() {
            let values = &by_day[row["bucket"].as_str().expect("a day")];
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let error = (row["mean"].as_f64().expect("a mean") - mean).abs();
            assert!(error < 500.0, "{row} against {mean}");
            compared += 1;
        }
    }
    assert_eq!(compared, 30, "days of the population");
}

#[test]
fn series_rows_in_csv_and_parquet_equal_ndjson() {
    let dir = scratch();
    write_csv(&dir.path().join("in.csv"), &days(30, 12, 2));
    for (name, sink) in [("one", "out.ndjson"), ("two", "out.csv"), ("three", "out.parquet")] {
        run(dir.path(), name, sink, SERIES);
    }
    let rows = rows(&dir.path().join("out.ndjson"));
    let mut reader = csv::Reader::from_path(dir.path().join("out.csv")).expect("a CSV file");
    let header: Vec<String> = reader.headers().expect("a header").iter().map(str::to_owned).collect();
    assert_eq!(
        header.join(","),
        "series,cohort,stratum_sex,bucket,every,signal,unit,n,mean,sd,q25,q50,q75,filled,bin,share"
    );
    let records: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().expect("rows");
    assert_eq!(records.len(), rows.len());
    let file = fs::File::open(dir.path().join("out.parquet")).expect("a Parquet file");
    let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let types: Vec<String> = builder.schema().fields().iter().map(|field| field.data_type().to_string()).collect();
    assert_eq!(types[7..9], ["Int64", "Float64"], "{types:?}");
    assert_eq!(types[3], "Timestamp(ms, \"UTC\")");
    let batches: Vec<_> = builder.build().expect("a reader").collect::<Result<_, _>>().expect("batches");
    let buckets: Vec<i64> = batches
        .iter()
        .flat_map(|batch: &arrow::record_batch::RecordBatch| {
            let column = batch.column_by_name("bucket").expect("a column");
            let column = column.as_any().downcast_ref::<arrow::array::TimestampMillisecondArray>().expect("times");
            column.values().to_vec()
        })
        .collect();
    let means: Vec<f64> = batches
        .iter()
        .flat_map(|batch| {
            let column = batch.column_by_name("mean").expect("a column");
            let column = column.as_any().downcast_ref::<arrow::array::Float64Array>().expect("numbers");
            column.iter().flatten().collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(means.len(), rows.len());
    for (((row, record), mean), bucket) in rows.iter().zip(&records).zip(means).zip(buckets) {
        assert_eq!(row["mean"].as_f64(), Some(mean));
        let day = chrono::DateTime::from_timestamp_millis(bucket).expect("a time").format("%Y-%m-%d").to_string();
        assert_eq!(row["bucket"].as_str(), Some(day.as_str()));
        assert_eq!(record[8].parse::<f64>().ok(), Some(mean));
        assert_eq!(&record[1], row["cohort"].as_str().unwrap_or_default());
        assert_eq!(&record[2], row["stratum"]["sex"].as_str().unwrap_or_default());
    }
}

#[test]
fn series_values_outside_the_range_are_clipped() {
    let dir = scratch();
    let mut input = days(30, 12, 7);
    for (_, _, steps, _) in &mut input {
        *steps = if *steps % 3 == 0 { 1_000_000_000_000 } else { *steps };
    }
    write_csv(&dir.path().join("in.csv"), &input);
    run(dir.path(), "beyond", "beyond.ndjson", SERIES);
    for (_, _, steps, _) in &mut input {
        *steps = (*steps).min(40_000);
    }
    write_csv(&dir.path().join("in.csv"), &input);
    run(dir.path(), "within", "within.ndjson", SERIES);
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("an output");
    assert!(!read("within.ndjson").is_empty());
    assert_eq!(read("beyond.ndjson"), read("within.ndjson"));
}

/// With a state, the next run may contain more of the last buckets.
#[test]
fn series_buckets_close_at_end_of_input_without_state() {
    let dir = scratch();
    let all = days(24, 20, 8);
    let (first, second) = all.split_at(all.iter().rposition(|(_, day, ..)| day == "2026-01-12").expect("a day") - 5);
    let series = SERIES.replace("strata = [\"sex\"]", "warm_up = \"4d\"");
    let state = format!("path = \"{}/state\"\n", dir.path().display());
    pipe(dir.path(), "alone", first, "alone.ndjson", &series);
    pipe(dir.path(), "one", first, "one.ndjson", &format!("{state}{series}"));
    pipe(dir.path(), "two", second, "two.ndjson", &format!("{state}{series}"));
    let days = |name: &str| -> Vec<String> {
        rows(&dir.path().join(name)).iter().map(|row| row["bucket"].as_str().expect("a day").to_owned()).collect()
    };
    let last = |name: &str| days(name).into_iter().max();
    assert_eq!(last("alone.ndjson").as_deref(), Some("2026-01-12"));
    assert!(last("one.ndjson").is_some_and(|day| day.as_str() < "2026-01-12"), "{:?}", last("one.ndjson"));
    assert!(days("two.ndjson").iter().any(|day| day == "2026-01-12"));
    let (one, two) = (days("one.ndjson"), days("two.ndjson"));
    assert!(two.iter().all(|day| !one.contains(day)), "a bucket left twice");
}

#[test]
fn series_dominated_sums_are_released_as_shares() {
    let dir = scratch();
    let mut input = days(40, 10, 9);
    for (at, (who, _, steps, _)) in input.iter_mut().enumerate() {
        *steps = if who == "p001" || who == "p000" { 4_900 } else { [0, 0, 1_000][at % 3] };
    }
    write_csv(&dir.path().join("in.csv"), &input);
    let said = run(dir.path(), "series", "out.ndjson", SERIES);
    assert!(said.contains("released as shares of intervals"), "{said}");
    let rows = rows(&dir.path().join("out.ndjson"));
    let mut shares: BTreeMap<(String, String), f64> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row["bin"].is_null()) {
        assert!(row["mean"].is_null() && row["sd"].is_null() && row["q25"].is_null(), "{row}");
        let n = row["n"].as_f64().expect("a number of people");
        let share = row["share"].as_f64().expect("a share");
        assert!((share + 0.005) * n >= 3.0, "fewer than a crowd: {row}");
        assert!(["0-999", "1000-4999"].contains(&row["bin"].as_str().expect("a label")), "{row}");
        let key = (row["cohort"].to_string(), row["bucket"].to_string());
        *shares.entry(key).or_default() += share;
    }
    assert!(!shares.is_empty());
    assert!(shares.values().all(|sum| (sum - 1.0).abs() < 0.011), "{shares:?}");
}

#[test]
fn series_do_not_change_fragments() {
    let dir = scratch();
    write_csv(&dir.path().join("in.csv"), &days(40, 10, 3));
    run(dir.path(), "alone", "alone.ndjson", "");
    run(dir.path(), "both", "both.ndjson", "[[series]]\nname = \"daily\"\n");
    let read = |name: &str| fs::read(dir.path().join(name)).expect("an output");
    assert_eq!(read("alone.ndjson"), read("both.all.ndjson"));
    assert!(!rows(&dir.path().join("both.daily.ndjson")).is_empty());
}

/// From the moments of all cohorts and epochs, and from the records with weight one per subject and epoch.
#[test]
fn series_moments_give_the_slope_of_the_records() {
    let dir = scratch();
    let pulse = "[[attribute]]\nname = \"pulse\"\ntype = \"float\"\nchanges = \"always\"\n";
    fs::write(dir.path().join("days.toml"), format!("{SCHEMA}{pulse}")).expect("the schema");
    let mut dice = Dice::new(11);
    let input: Vec<(String, String, f64, f64)> = days(60, 28, 10)
        .into_iter()
        .map(|(who, day, steps, _)| (who, day, steps as f64, 50.0 + steps as f64 / 500.0 + dice.roll(40) as f64 / 10.0))
        .collect();
    let line = |(who, day, steps, pulse): &(String, String, f64, f64)| format!("{who},{day},{steps},female,{pulse}\n");
    let text: String = input.iter().map(line).collect();
    fs::write(dir.path().join("in.csv"), format!("who,day,steps,sex,pulse\n{text}")).expect("the input");
    let series = "[release]\nfragments = false\n[[series]]\nname = \"model\"\nmoments = \"14d\"\n";
    let said = run(dir.path(), "model", "model.ndjson", series);
    assert!(said.contains("series: 60 of 60 people") && !said.contains(" 0 % of the records"), "{said}");
    let mut parts: BTreeMap<(String, String), [f64; 4]> = BTreeMap::new();
    for row in &rows(&dir.path().join("model.ndjson")) {
        assert_eq!(row["every"], "2w");
        let key = (row["cohort"].to_string(), row["bucket"].to_string());
        let part = parts.entry(key).or_insert([f64::NAN; 4]);
        part[0] = row["n"].as_f64().expect("a number of people");
        match (row["signal"].as_str(), row["with"].as_str()) {
            (Some("steps"), Some("steps")) => {
                (part[1], part[2]) =
                    (row["mean"].as_f64().expect("a mean"), row["covariance"].as_f64().expect("a variance"));
            }
            (Some("steps"), Some("pulse")) => part[3] = row["covariance"].as_f64().expect("a covariance"),
            pair => assert_eq!(pair, (Some("pulse"), Some("pulse"))),
        }
    }
    let total: f64 = parts.values().map(|part| part[0]).sum();
    assert!(total >= 100.0, "people in epochs: {parts:?}");
    // All cohorts have almost equal means, so within-cohort moments give the slope.
    let variance: f64 = parts.values().map(|part| part[0] * part[2]).sum();
    let slope = parts.values().map(|part| part[0] * part[3]).sum::<f64>() / variance;
    assert!((slope - 1.0 / 500.0).abs() < 0.000_05, "{slope}");
    run(dir.path(), "table", "model.csv", series);
    let mut reader = csv::Reader::from_path(dir.path().join("model.csv")).expect("a CSV file");
    let header: Vec<String> = reader.headers().expect("a header").iter().map(str::to_owned).collect();
    assert_eq!(header.join(","), "series,cohort,bucket,every,signal,unit,n,mean,filled,with,covariance");
}

/// The second signal is the first one plus the contribution of one subject.
#[test]
fn series_of_nested_signals_disclose_no_subject() {
    let dir = scratch();
    let moves = "[[attribute]]\nname = \"moves\"\ntype = \"integer\"\nchanges = \"always\"\n[attribute.hierarchy]\nkind = \"bounds\"\n\
                 min = 0\nmax = 40000\nlevels = [[1000, 5000, 10000], [5000]]\n";
    fs::write(dir.path().join("days.toml"), format!("{SCHEMA}{moves}")).expect("the schema");
    let both_of = |cyclists: &[&str], series: &str, name: &str| {
        let part = |who: &str| if cyclists.contains(&who) { 3_000 } else { 0 };
        let line = |(who, day, steps, sex): (String, String, u64, &str)| {
            format!("{who},{day},{steps},{sex},{}\n", steps + part(&who))
        };
        let text: String = days(15, 28, 12).into_iter().map(line).collect();
        fs::write(dir.path().join("in.csv"), format!("who,day,steps,sex,moves\n{text}")).expect("the input");
        run(
            dir.path(),
            name,
            &format!("{name}.ndjson"),
            &format!("[release]\nfragments = false\n[[series]]\nname = \"both\"\n{series}"),
        );
        let shown = rows(&dir.path().join(format!("{name}.ndjson")));
        let of = |signal: &str| shown.iter().filter(|row| row["signal"] == signal && !row["mean"].is_null()).count();
        (of("steps"), of("moves"))
    };
    for (name, series) in [("daily", ""), ("epochs", "moments = \"14d\"\n")] {
        let (steps, moves) = both_of(&["p007"], series, name);
        assert!(steps > 0 && moves == 0, "{name}: {steps} {moves}");
        let everybody_else = both_of(&["p001", "p003", "p005", "p007", "p009", "p011", "p013"], series, name);
        assert_eq!(everybody_else, (steps, steps), "{name}: a part of many people");
    }
}

#[test]
fn series_with_one_unreadable_record_are_released() {
    let dir = scratch();
    write_csv(&dir.path().join("in.csv"), &days(30, 10, 5));
    run(dir.path(), "sound", "sound.ndjson", SERIES);
    let text = fs::read_to_string(dir.path().join("in.csv")).expect("the input");
    fs::write(dir.path().join("in.csv"), format!("{text}p000,2026-01-05,n/a,female\n")).expect("the input");
    run(dir.path(), "one", "one.ndjson", SERIES);
    let read = |name: &str| rows(&dir.path().join(name));
    assert!(!read("one.ndjson").is_empty());
    assert_eq!(read("sound.ndjson").len(), read("one.ndjson").len());
}

#[test]
fn series_attacks_stay_below_the_promised_bounds() {
    let dir = scratch();
    let place = dir.path();
    write_csv(&place.join("in.csv"), &days(60, 50, 8));
    fs::write(place.join("days.toml"), SCHEMA).expect("the schema");
    let text = "[source]\nkind = \"file\"\npath = \"in.csv\"\n[sink]\nkind = \"file\"\npath = \"out.ndjson\"\n\
                [schema]\nfile = \"days.toml\"\n[privacy]\nk = 3\n";
    let secret = "[state]\nsecret_file = \"key\"\n";
    fs::write(place.join("series.toml"), format!("{text}{secret}{SERIES}")).expect("the configuration");
    fs::write(place.join("forgotten.toml"), format!("{text}{SERIES}")).expect("the configuration");
    let throng = |arguments: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_throng"));
        command.args(arguments.split(' ')).current_dir(place).output().expect("it runs")
    };
    let outcome = throng("run -c series.toml --lineage lineage.ndjson");
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
    let attack = "attack out.ndjson --original in.csv --lineage lineage.ndjson --json --fail-above promise -c";
    let outcome = throng(&format!("{attack} series.toml"));
    assert_eq!(outcome.status.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    let yields: Vec<Value> = serde_json::from_slice(&outcome.stdout).expect("yields");
    let of = |attack: &str| yields.iter().find(|found| found["attack"] == attack).unwrap_or(&Value::Null).clone();
    let isolation = of("series: isolation");
    assert!(
        isolation["rate"].as_f64().expect("a rate") <= 1.0 / 3.0 && isolation["trials"].as_u64() > Some(2),
        "{isolation}"
    );
    for attack in ["whose history", "averaging", "differencing", "neighbouring rows", "linear programme", "exact sum"] {
        assert!(of(&format!("series: {attack}"))["interval"].is_array(), "{attack} is missing: {yields:#?}");
    }
    assert!(of("series: averaging")["trials"].as_u64() > Some(1_000), "{yields:#?}");
    assert!(of("linkage").is_null(), "no fragments leave");
    let outcome = throng(&format!("{attack} forgotten.toml"));
    assert_eq!(outcome.status.code(), Some(2), "without the secret people are not known");
}

#[test]
fn series_configuration_errors_name_the_key() {
    let dir = scratch();
    write_csv(&dir.path().join("in.csv"), &days(10, 3, 4));
    for (series, place, what) in [
        ("name = \"daily\"\nsignals = [\"nothing\"]", "series[0].signals", "no attribute"),
        ("name = \"daily\"\nsignals = [\"sex\"]", "series[0].signals", "not a releasable number"),
        ("name = \"Daily\"", "series[0].name", "invalid series name"),
        ("name = \"daily\"\nevery = \"10s\"", "series[0].every", "out of range"),
        ("name = \"daily\"\ncycle = \"hour_of_day\"\nevery = \"7h\"", "series[0].every", "whole days"),
        ("name = \"daily\"\nmoments = \"100h\"", "series[0].moments", "not a multiple"),
        ("name = \"daily\"\nmoments = \"3d\"", "series[0].moments", "fewer than 4 buckets"),
        ("name = \"daily\"\n[[series]]\nname = \"half\"\nevery = \"12h\"", "series[1].signals", "name other signals"),
        ("name = \"daily\"\n[[series]]\nname = \"everybody\"\npooled = true", "series[1].pooled", "same pooled"),
        ("name = \"daily\"\nevery = \"1w\"\ncycle = \"day_of_week\"\nmoments = \"4w\"", "series[0].moments", "cycle"),
        ("name = \"daily\"\nmoments = \"28d\"", "series[0].signals", "2 to 16"),
        ("name = \"daily\"\n[cohort]\nstrata = [\"sex:7\"]", "cohort.strata", "no level"),
        ("name = \"daily\"\n[cohort]\nsize = 2", "cohort.size", "too small to hide its members"),
        ("name = \"daily\"\n[cohort]\ntime = \"steps\"", "cohort.time", "not a date"),
    ] {
        let place_of = dir.path().display();
        fs::write(dir.path().join("days.toml"), SCHEMA).expect("the schema");
        let text = format!(
            "[source]\nkind = \"file\"\npath = \"{place_of}/in.csv\"\n[sink]\nkind = \"file\"\npath = \"{place_of}/out.ndjson\"\n\
             [schema]\nfile = \"{place_of}/days.toml\"\n[[series]]\n{series}\n"
        );
        let config = dir.path().join("wrong.toml");
        fs::write(&config, text).expect("the configuration");
        let output = crate::support::binary::throng().arg("check").arg("-c").arg(&config).output().expect("it runs");
        let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(2), "{series}: {said}");
        assert!(said.contains(place) && said.contains(what), "{series}: {said}");
    }
}

fn configuration(dir: &Path, sink: &str, more: &str) -> String {
    let place = dir.display();
    format!(
        "[source]\nkind = \"file\"\nformat = \"csv\"\npath = \"{place}/in.csv\"\n[sink]\nkind = \"file\"\npath = \"{place}/{sink}\"\n\
         [schema]\nfile = \"{place}/days.toml\"\n[privacy]\nk = 3\n[state]\nsecret_file = \"{place}/key\"\n{more}"
    )
}

fn refused(dir: &Path, name: &str, sink: &str, more: &str) -> String {
    let config = dir.join(format!("{name}.toml"));
    fs::write(&config, configuration(dir, sink, more)).expect("the configuration");
    let output = crate::support::binary::throng().arg("run").arg("-c").arg(&config).output().expect("it runs");
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The recount of the release loses no digits.
#[test]
fn series_of_large_similar_values_are_released() {
    let dir = scratch();
    let input: Vec<(String, String, u64, &str)> = days(40, 12, 23)
        .into_iter()
        .map(|(who, day, steps, sex)| (who, day, 1_000_000_000_000 + steps % 7, sex))
        .collect();
    write_csv(&dir.path().join("in.csv"), &input);
    let (before, after) = SCHEMA.split_once("[attribute.hierarchy]").expect("the hierarchy of the steps");
    let (_, after) = after.split_once("[[attribute]]").expect("another attribute");
    let flat = format!("{before}[[attribute]]{after}");
    fs::write(dir.path().join("days.toml"), flat).expect("the schema");
    run(dir.path(), "series", "out.ndjson", SERIES);
    assert!(rows(&dir.path().join("out.ndjson")).iter().any(|row| row["cohort"].is_null()), "rows of everybody");
}

/// A hierarchy of times defines their generalization, not their valid range.
#[test]
fn series_accept_times_outside_their_hierarchy() {
    let dir = scratch();
    write_csv(&dir.path().join("in.csv"), &days(40, 20, 24));
    let hierarchy = "changes = \"always\"\n[attribute.hierarchy]\nkind = \"truncate\"\nlevels = [\"week\"]\nmin = \"2026-01-01\"\nmax = \"2026-01-07\"\n";
    let bounded = SCHEMA.replacen("changes = \"always\"\n", hierarchy, 1);
    fs::write(dir.path().join("days.toml"), bounded).expect("the schema");
    run(dir.path(), "series", "out.ndjson", SERIES);
    let buckets: std::collections::BTreeSet<String> =
        rows(&dir.path().join("out.ndjson")).iter().map(|row| row["bucket"].to_string()).collect();
    assert_eq!(buckets.len(), 20, "{buckets:?}");
}
