//! Series: rows of cohorts from file to file in every format, recounted here; and from topic to topic over kills, byte by byte.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

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
kind = "intervals"
min = 0
max = 40000
widths = [1000, 5000]
[[attribute]]
name = "sex"
type = "string"
changes = "never"
"#;

const SERIES: &str =
    "[release]\nfragments = false\n[cohort]\nstrata = [\"sex\"]\n[[series]]\nname = \"daily\"\nlateness = \"1d\"\n";

/// Days of `people` people: who, day, steps, sex. Some days are missing.
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
    let place = dir.display();
    fs::write(dir.join("days.toml"), SCHEMA).expect("the schema");
    let text = format!(
        "[source]\nkind = \"file\"\npath = \"{place}/in.csv\"\n[sink]\nkind = \"file\"\npath = \"{place}/{sink}\"\n\
         [schema]\nfile = \"{place}/days.toml\"\n[privacy]\nk = 3\n[state]\nsecret_file = \"{place}/key\"\n{more}"
    );
    let config = dir.join(format!("{name}.toml"));
    fs::write(&config, text).expect("the configuration");
    let output =
        Command::new(env!("CARGO_BIN_EXE_throng")).arg("run").arg("-c").arg(&config).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

fn rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

#[test]
fn rows_of_a_file_are_near_the_population_and_hold_enough_people() {
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
fn csv_and_parquet_hold_the_rows_of_ndjson() {
    let dir = scratch();
    write_csv(&dir.path().join("in.csv"), &days(30, 12, 2));
    for (name, sink) in [("one", "out.ndjson"), ("two", "out.csv"), ("three", "out.parquet")] {
        run(dir.path(), name, sink, SERIES);
    }
    let rows = rows(&dir.path().join("out.ndjson"));
    let mut reader = csv::Reader::from_path(dir.path().join("out.csv")).expect("a CSV file");
    let header: Vec<String> = reader.headers().expect("a header").iter().map(str::to_owned).collect();
    assert_eq!(header.join(","), "series,cohort,stratum_sex,bucket,every,signal,unit,n,mean,sd,q25,q50,q75,filled");
    let records: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().expect("rows");
    assert_eq!(records.len(), rows.len());
    let file = fs::File::open(dir.path().join("out.parquet")).expect("a Parquet file");
    let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let types: Vec<String> = builder.schema().fields().iter().map(|field| field.data_type().to_string()).collect();
    assert_eq!(types[7..9], ["UInt64", "Float64"], "{types:?}");
    let batches: Vec<_> = builder.build().expect("a reader").collect::<Result<_, _>>().expect("batches");
    let means: Vec<f64> = batches
        .iter()
        .flat_map(|batch| {
            let column = batch.column_by_name("mean").expect("a column");
            let column = column.as_any().downcast_ref::<arrow::array::Float64Array>().expect("numbers");
            column.iter().flatten().collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(means.len(), rows.len());
    for ((row, record), mean) in rows.iter().zip(&records).zip(means) {
        assert_eq!(row["mean"].as_f64(), Some(mean));
        assert_eq!(record[8].parse::<f64>().ok(), Some(mean));
        assert_eq!(&record[1], row["cohort"].as_str().unwrap_or_default());
        assert_eq!(&record[2], row["stratum"]["sex"].as_str().unwrap_or_default());
    }
}

#[test]
fn fragments_are_the_same_with_series_and_without() {
    let dir = scratch();
    write_csv(&dir.path().join("in.csv"), &days(40, 10, 3));
    run(dir.path(), "alone", "alone.ndjson", "");
    run(dir.path(), "both", "both.ndjson", "[[series]]\nname = \"daily\"\n");
    let read = |name: &str| fs::read(dir.path().join(name)).expect("an output");
    assert_eq!(read("alone.ndjson"), read("both.all.ndjson"));
    assert!(!rows(&dir.path().join("both.daily.ndjson")).is_empty());
}

/// A state ties jobs together: cohorts go on, no bucket leaves twice, and the cohort of an erased person is retired whole.
#[test]
fn jobs_with_a_state_go_on_with_their_cohorts_and_forget_people() {
    let dir = scratch();
    let all = days(40, 40, 6);
    let (first, second) = all.split_at(all.iter().position(|(_, day, ..)| day == "2026-01-21").expect("the day"));
    let with_state = |name: &str, sink: &str| {
        let state = format!("path = \"{}/state\"\n", dir.path().display());
        run(dir.path(), name, sink, &format!("{state}{SERIES}"))
    };
    write_csv(&dir.path().join("in.csv"), first);
    with_state("one", "one.ndjson");
    let config = dir.path().join("one.toml");
    let forget = |person: &str| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_throng")).args(["forget", "-c"]).arg(&config).arg(person).output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{said}");
        said
    };
    let said = forget("p004");
    // The person, who has no open bucket, and the place in a cohort.
    assert!(said.contains("2  people, open buckets and places in cohorts of series"), "{said}");
    assert!(forget("p004").contains("0  people, open buckets"), "erased twice");
    write_csv(&dir.path().join("in.csv"), second);
    with_state("two", "two.ndjson");
    let tokens = |name: &str| -> BTreeMap<String, (String, u64)> {
        let rows = rows(&dir.path().join(name));
        let cohorts = rows.iter().filter_map(|row| Some((row["cohort"].as_str()?.to_owned(), row)));
        cohorts
            .map(|(token, row)| (token, (row["stratum"]["sex"].to_string(), row["n"].as_u64().unwrap_or(0))))
            .collect()
    };
    let (before, after) = (tokens("one.ndjson"), tokens("two.ndjson"));
    let gone: Vec<_> = before.iter().filter(|(token, _)| !after.contains_key(*token)).collect();
    assert_eq!(gone.len(), 1, "{before:?} {after:?}");
    assert_eq!(gone[0].1.0, "\"female\"", "p004 is female");
    let kept = before.len() - 1;
    assert_eq!(after.len(), kept, "nobody of the retired cohort is new, so none is formed: {after:?}");
    let days: Vec<String> = rows(&dir.path().join("two.ndjson")).iter().map(|row| row["bucket"].to_string()).collect();
    assert!(days.iter().all(|day| day.as_str() > "\"2026-01-20\""), "a bucket left twice");
}

#[test]
fn wrong_series_are_refused_by_name() {
    let dir = scratch();
    write_csv(&dir.path().join("in.csv"), &days(10, 3, 4));
    for (series, place, what) in [
        ("name = \"daily\"\nsignals = [\"nothing\"]", "series[0].signals", "no attribute"),
        ("name = \"daily\"\nsignals = [\"sex\"]", "series[0].signals", "no number"),
        ("name = \"Daily\"", "series[0].name", "no name"),
        ("name = \"daily\"\nevery = \"10s\"", "series[0].every", "out of range"),
        ("name = \"daily\"\ncycle = \"hour_of_day\"\nevery = \"7h\"", "series[0].every", "whole days"),
        ("name = \"daily\"\n[cohort]\nstrata = [\"sex:7\"]", "cohort.strata", "no level"),
        ("name = \"daily\"\n[cohort]\nsize = 2", "cohort.size", "smaller than the crowd"),
        ("name = \"daily\"\n[cohort]\ntime = \"steps\"", "cohort.time", "no date"),
    ] {
        let place_of = dir.path().display();
        fs::write(dir.path().join("days.toml"), SCHEMA).expect("the schema");
        let text = format!(
            "[source]\nkind = \"file\"\npath = \"{place_of}/in.csv\"\n[sink]\nkind = \"file\"\npath = \"{place_of}/out.ndjson\"\n\
             [schema]\nfile = \"{place_of}/days.toml\"\n[[series]]\n{series}\n"
        );
        let config = dir.path().join("wrong.toml");
        fs::write(&config, text).expect("the configuration");
        let output =
            Command::new(env!("CARGO_BIN_EXE_throng")).arg("check").arg("-c").arg(&config).output().expect("it runs");
        let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(2), "{series}: {said}");
        assert!(said.contains(place) && said.contains(what), "{series}: {said}");
    }
}

#[cfg(feature = "failpoints")]
mod topics {
    use super::*;
    use support::crash_points::{self, kill_at};
    use support::daemon::Stage;
    use support::kafka::{Broker, Record};

    fn configure(stage: &Stage<'_>) {
        let place = stage.dir.path().display();
        let Stage { group, raw, out, letters, commits, properties, sessions, brokers, .. } = stage;
        fs::write(stage.dir.path().join("days.toml"), SCHEMA).expect("the schema");
        let text = format!(
            "[source]\nkind = \"kafka\"\nbrokers = \"{brokers}\"\ntopics = [\"{raw}\"]\ngroup = \"{group}\"\n\
             [source.librdkafka]\n{sessions}\n\"fetch.wait.max.ms\" = \"50\"\n{properties}\n\
             [sink]\nkind = \"kafka\"\ntopic = \"{out}\"\ndead_letter_topic = \"{letters}\"\ncommits_topic = \"{commits}\"\n\
             [schema]\nfile = \"{place}/days.toml\"\n[batch]\nmax_records = 40\nmax_wait = \"1h\"\nmax_age = \"1h\"\n\
             [privacy]\nk = 3\n[plan]\ninterval = \"1h\"\n\
             [state]\npath = \"{place}/only\"\nsecret_file = \"{place}/key\"\n[telemetry]\nlisten = \"127.0.0.1:0\"\n{SERIES}"
        );
        let text = text.replace("strata = [\"sex\"]", "strata = [\"sex\"]\nwarm_up = \"5d\"");
        fs::write(stage.dir.path().join("only.toml"), text).expect("the configuration");
    }

    fn records(total: usize) -> Vec<Record> {
        let json = |(who, day, steps, sex): (String, String, u64, &str)| Record {
            payload: Some(
                format!("{{\"who\":\"{who}\",\"day\":\"{day}\",\"steps\":{steps},\"sex\":\"{sex}\"}}").into_bytes(),
            ),
            partition: Some(0),
            ..Record::default()
        };
        days(24, 60, 5).into_iter().take(total).map(json).collect()
    }

    fn released(stage: &Stage<'_>) -> Vec<String> {
        let stored = stage.broker.read_committed(&stage.out);
        stored.into_iter().map(|line| String::from_utf8(line.payload.unwrap_or_default()).expect("text")).collect()
    }

    #[test]
    fn kills_at_any_point_change_no_row_and_publish_no_bucket_twice() {
        let Some(broker) = Broker::shared() else { return };
        let total = 28 * 40;
        let calm = Stage::new(broker, 1).with_static_membership();
        configure(&calm);
        broker.produce_records(&calm.raw, &records(total));
        let mut daemon = calm.start("only", None);
        calm.wait_consumed(total, &mut [&mut daemon]);
        daemon.stop();
        let undisturbed = released(&calm);
        assert!(undisturbed.len() > 100, "{} rows: {}", undisturbed.len(), daemon.said());

        let stage = Stage::new(broker, 1).with_static_membership();
        configure(&stage);
        broker.produce_records(&stage.raw, &records(total));
        let mut dice = Dice::new(9);
        for point in crash_points::TOPIC {
            let crash = kill_at(point, &mut dice);
            stage.start("only", Some(&crash)).crashes(&crash);
        }
        assert!((stage.consumed() as usize) < total, "the last crash came after the end of the stream");
        let mut daemon = stage.start("only", None);
        stage.wait_consumed(total, &mut [&mut daemon]);
        daemon.stop();
        let sorted = |mut rows: Vec<String>| {
            rows.sort();
            rows
        };
        assert!(sorted(released(&stage)) == sorted(undisturbed), "the rows differ");
    }
}
