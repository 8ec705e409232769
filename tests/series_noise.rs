//! Tests series with noise, in every format, over restarts, read back, recounted and refused.

use crate::evidence::{Day, Run, days, run};
use crate::support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use support::daemon::scratch;

const NOISE: &str = "[release]\nfragments = false\nmin_represented = 0\n[cohort]\nstrata = [\"sex\"]\n\
     [[series]]\nname = \"noisy\"\nsignals = [\"steps\"]\nepsilon_per_week = 8\n";

fn throng(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_throng")).args(args).output().expect("it runs")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn verified(run: &Run) -> (i32, String) {
    let (config, lineage, original) = (text(&run.config), text(&run.lineage), text(&run.original));
    let named = ["verify-release", text(&run.sink), "-c", config, "--lineage", lineage, "--original", original];
    let output = throng(&named);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}

fn rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("rows");
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

fn true_values(input: &[Day]) -> BTreeMap<&str, Vec<f64>> {
    let mut people: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for (who, day, steps, ..) in input {
        people.entry((day, who)).or_default().push(*steps as f64);
    }
    let mut by_day: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for ((day, _), steps) in people {
        by_day.entry(day).or_default().push(steps.iter().sum::<f64>() / steps.len() as f64);
    }
    by_day
}

#[test]
fn noisy_series_rows_are_accurate_and_verified() {
    let dir = scratch();
    let input = days(200, 20, 3);
    let sound = run(dir.path(), "noise", "out.ndjson", "in.csv", &input, NOISE);
    assert!(sound.said.contains("200 of 200 people and 100 % of the records"), "{}", sound.said);
    let by_day = true_values(&input);
    let released = rows(&sound.sink);
    assert_eq!(released.len(), 20);
    for row in &released {
        let values = &by_day[row["bucket"].as_str().expect("a day")];
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        // ε = 8 and seven cells per week: standard deviations of 2.07 subjects and of 2.39 ranges of 40,000 steps.
        let count = (row["n"].as_f64().expect("a count") - values.len() as f64).abs();
        let error = (row["mean"].as_f64().expect("a mean") - mean).abs();
        assert!(count < 6.0 * 2.1 && error < 6.0 * 2.4 * 40_000.0 / 160.0, "{row} against {mean}");
        assert_eq!((&row["epsilon"], &row["delta"]), (&8.into(), &1e-6.into()));
        assert!(
            row["cohort"].is_null()
                && row["sd"].is_null()
                && row["filled"].is_null()
                && row["stratum"]["sex"].is_null()
        );
    }
    let (code, said) = verified(&sound);
    assert_eq!(code, 0, "{said}");
    let usefulness = sound.evidence().expect("evidence").series_utility();
    assert_eq!((usefulness.people_represented, usefulness.records_represented), (200, input.len() as u64));
    assert!(usefulness.error_ratio.is_some_and(|ratio| ratio > 0.0));
    let same = run(dir.path(), "again", "again.ndjson", "in.csv", &input, NOISE);
    assert_eq!(
        fs::read(&sound.sink).expect("rows"),
        fs::read(&same.sink).expect("rows"),
        "the same secret and records"
    );
    let fewer = run(dir.path(), "fewer", "fewer.ndjson", "in.csv", &input[..input.len() - 1], NOISE);
    let last = |run: &Run| rows(&run.sink).pop().expect("a row");
    let changed = last(&sound)["mean"].as_f64().expect("a mean") - last(&fewer)["mean"].as_f64().expect("a mean");
    assert_ne!(last(&sound)["n"], last(&fewer)["n"]);
    assert!(changed.abs() > 1.0, "one record less gets other noise: {changed}");
}

#[test]
fn noisy_series_rows_are_equal_in_every_format() {
    let dir = scratch();
    let input = days(200, 20, 3);
    let sinks = [("json", "out.ndjson", ""), ("csv", "out.csv", "csv"), ("parquet", "out.parquet", "parquet")];
    let evidence = sinks.map(|(name, sink, format)| {
        let run = run(dir.path(), name, sink, "in.csv", &input, NOISE);
        let (code, said) = verified(&run);
        assert_eq!(code, 0, "{format}: {said}");
        run.evidence().expect("evidence").rows
    });
    assert_eq!(evidence[0].len(), 20);
    assert!(evidence[1..].iter().all(|rows| *rows == evidence[0]));
    let header = fs::read_to_string(dir.path().join("out.csv")).expect("rows");
    assert!(header.lines().next().is_some_and(|names| names.ends_with(",epsilon,delta")));
}

#[test]
fn noisy_series_manipulated_rows_are_found() {
    let dir = scratch();
    let sound = run(dir.path(), "noise", "out.ndjson", "in.csv", &days(200, 20, 3), NOISE);
    let released = rows(&sound.sink);
    for (name, value) in [("mean", 39_000.0), ("mean", -5.0), ("n", 260.0), ("n", 4.0)] {
        let mut spoiled = released.clone();
        spoiled[7][name] = Value::from(value as i64);
        fs::write(&sound.sink, spoiled.iter().map(|row| format!("{row}\n")).collect::<String>())
            .expect("a file of ours");
        let (code, said) = verified(&sound);
        assert_eq!(code, 4, "{name} {value}: {said}");
        assert!(said.contains("out.ndjson:8: a "), "{name} {value}: {said}");
    }
}

#[test]
fn noisy_series_are_described_by_commands() {
    let dir = scratch();
    let sound = run(dir.path(), "noise", "out.ndjson", "in.csv", &days(200, 20, 3), NOISE);
    let (config, original) = (text(&sound.config), text(&sound.original));
    let said = |output: Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let check = said(throng(&["check", "-c", config]));
    assert!(check.contains("ε = 8, δ = 0.000001") && check.contains("from about"), "{check}");
    let sample = said(throng(&["check", "-c", config, "--sample", original]));
    assert!(sample.contains("times the sampling error of the mean of steps"), "{sample}");
    let attack =
        throng(&["attack", text(&sound.sink), "-c", config, "--lineage", text(&sound.lineage), "--original", original]);
    assert!(attack.status.success(), "{}", String::from_utf8_lossy(&attack.stderr));
    let attack = said(attack);
    assert!(attack.contains("with a probability of at most 99.97 %"), "{attack}");
    let named = ["evaluate", original, text(&sound.sink), "-c", config, "--lineage", text(&sound.lineage)];
    let evaluated = throng(&named);
    assert!(evaluated.status.success(), "{}", String::from_utf8_lossy(&evaluated.stderr));
    assert!(said(evaluated).contains("200 of 200"));
}

#[test]
fn noisy_series_signal_without_a_range_is_refused() {
    let dir = scratch();
    let sound = run(dir.path(), "noise", "out.ndjson", "in.csv", &days(20, 3, 3), NOISE);
    let config = fs::read_to_string(&sound.config).expect("the configuration");
    fs::write(&sound.config, config.replace("\"steps\"", "\"pulse\"")).expect("a file of ours");
    let output = throng(&["check", "-c", text(&sound.config)]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("series[0].signals") && said.contains("\"pulse\"") && said.contains("min and max"), "{said}");
}

#[test]
fn noisy_series_of_a_restarted_stream_have_the_same_rows() {
    let dir = scratch();
    let input = days(200, 20, 3);
    let state = |name: &str| format!("path = \"{}/{name}\"\n{NOISE}lateness = \"0s\"\n", dir.path().display());
    let whole = run(dir.path(), "whole", "whole.ndjson", "-", &input, &state("whole-state"));
    let mut parts = String::new();
    for (number, part) in input.chunks(input.len() / 3 + 1).enumerate() {
        let name = format!("part{number}");
        let run = run(dir.path(), &name, &format!("{name}.ndjson"), "-", part, &state("state"));
        parts += &fs::read_to_string(run.sink).expect("rows");
    }
    let whole = fs::read_to_string(whole.sink).expect("rows");
    assert_eq!(whole, parts);
    assert!(whole.lines().count() >= 18, "the last day stays open: {whole}");
}
