//! Tests `throng anonymize`: early ends, messages and exit codes.

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SCHEMA: &str = r#"
name = "visits"
[[attribute]]
name = "person"
type = "string"
role = "subject"
[[attribute]]
name = "age"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 99
widths = [10, 50]
[[attribute]]
name = "zip"
type = "string"
[attribute.hierarchy]
kind = "prefix"
keep = [3, 1]
length = 5
[[attribute]]
name = "illness"
type = "string"
role = "sensitive"
"#;

/// Sixty subjects with two records each, and one outlier with one record.
fn visits() -> String {
    let mut rows = String::from("person,age,zip,illness\n");
    for row in 0..120 {
        let person = row / 2;
        let illness = if row == 7 { "gout" } else { ["flu", "cold"][row % 2] };
        rows += &format!("p{person},{},606{:02},{illness}\n", 20 + person % 10, person % 3);
    }
    rows + "far,93,99999,flu\n"
}

fn folder(rows: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("schema.toml", SCHEMA);
    write("config.toml", "[schema]\nfile = \"schema.toml\"\n[privacy]\nk = 3\n");
    write("in.csv", rows);
    folder
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = crate::support::binary::throng();
    command.current_dir(folder).args(["anonymize", "in.csv", "-c", "config.toml", "-o", "out.csv"]).args(args);
    command
}

fn run(folder: &Path, args: &[&str]) -> (Output, String) {
    let output = command(folder, args).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

#[test]
fn summary_counts_subjects_and_names_levels() {
    let folder = folder(&visits());
    let (output, said) = run(folder.path(), &["--report", "r.json"]);
    assert!(output.status.success(), "{said}");
    let text = std::fs::read_to_string(folder.path().join("r.json")).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    // The outlier is suppressed, and with it its subject.
    assert_eq!(report["suppressed_records"], 1);
    assert_eq!(report["people"], serde_json::json!({ "all": 61, "lost": 1 }));
    assert!(said.contains("61 people, 1 of them without a released record"), "{said}");
    // Each of thirty raw tuples has two subjects. One tuple has a single record.
    let before = report["risks_before"]["average"].as_f64().expect("a risk");
    assert!((before - (120.0 / 2.0 + 1.0) / 121.0).abs() < 1e-9, "{before}");
    assert_eq!(report["risks_before"]["highest"], 1.0);
    assert!(report["risks"]["highest"].as_f64().expect("a risk") <= 1.0 / 3.0);
    assert!(said.contains("(before: 100 %, 50.41 %)"), "{said}");
    let words = |name: &str, labels: [&str; 4]| {
        let level = report["policy"][name].as_u64().expect("a level") as usize;
        let label = format!("{} (level {level} of 3)", labels[level]);
        assert_eq!(report["levels"][name], Value::from(label.clone()));
        assert!(said.contains(&format!("{name}: {label}")), "{said}");
    };
    words("age", ["exact", "10-wide intervals", "50-wide intervals", "not shown"]);
    words("zip", ["exact", "3 of 5 characters", "1 of 5 characters", "not shown"]);
    let stars = std::fs::read_to_string(folder.path().join("out.csv")).expect("a release");
    let stars = stars.lines().filter(|line| line.ends_with(",\"*\"")).count();
    assert!(stars > 0 && said.contains(&format!("{stars} sensitive cells suppressed")), "{said}");
    assert_eq!(report["suppressed_sensitive_cells"], stars);
    assert_eq!(report["cut_short"], Value::Null);
}

#[test]
fn suppression_above_fail_above_exits_with_failure() {
    let folder = folder(&visits());
    for (share, code) in [("0.001", 1), ("0.5", 0), ("1", 0)] {
        let (output, said) = run(folder.path(), &["--fail-above", share]);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert_eq!(said.contains("0.8 % of the records were lost"), code == 1, "{said}");
        assert!(folder.path().join("out.csv").exists(), "the release is written all the same");
    }
    assert_eq!(run(folder.path(), &["--fail-above", "5"]).0.status.code(), Some(2));
}

#[test]
fn input_problems_are_noted() {
    let row = |person: &str, age: &str| format!("{person},{age},60601,flu\n");
    let head = "person,age,zip,illness\n";
    let of = |rows: Vec<String>| head.to_owned() + &rows.concat();
    let unnamed = of((0..9).map(|_| row("", "33")).collect());
    let few = of((0..9).map(|n| row(["a", "b"][n % 2], "33")).collect());
    let empty = of((0..9).map(|n| row(&n.to_string(), "")).collect());
    for (rows, words, code) in [
        (unnamed, "none of 9 records has a subject", 1),
        (few, "only 2 people were found and a class needs 3", 1),
        (empty, "attribute \"age\" had no value in any of 9 records", 0),
    ] {
        let folder = folder(&rows);
        let (output, said) = run(folder.path(), &[]);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains("note: ") && said.contains(words), "{said}");
    }
    let mut rows = visits();
    let second = rows.find("p1,").expect("a row");
    rows.insert(second, '"');
    let close = rows.find("p40,").expect("a row");
    rows.insert(close + 3, '"');
    let folder = folder(&rows);
    let (_, said) = run(folder.path(), &[]);
    assert!(said.contains("1 record(s) span") && said.contains("a quote is likely to be open"), "{said}");
}

/// The pipe opens after the signal handlers are installed; the search starts when it closes. The signal is in between.
#[test]
#[cfg(unix)]
fn signal_before_a_policy_is_found_writes_nothing() {
    let folder = folder("");
    let pipe = folder.path().join("in.csv");
    std::fs::remove_file(&pipe).expect("removed");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let child = command(folder.path(), &[]).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut writer = std::fs::OpenOptions::new().write(true).open(&pipe).expect("it reads");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
    writer.write_all(visits().as_bytes()).expect("written");
    drop(writer);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("before a policy was found; nothing was written"), "{said}");
    assert!(!folder.path().join("out.csv").exists());
}
