//! Tests real streams that change in the middle. A kill during the search or adoption of a plan changes no output byte.
#![cfg(feature = "failpoints")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use support::binary::{Account, Outcome, Place, Process};
use support::invariants::{GroupNames, Line, Promise, check_once, records_released, timeless};

const K: usize = 3;
const WINDOW: usize = 480;

struct Stream {
    place: Place,
    groups: Vec<(&'static str, Vec<&'static str>)>,
    people: Vec<String>,
}

fn part_of(schema: &str, attributes: &[&str]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(schema);
    let text = fs::read_to_string(path).expect("a schema of the house");
    let mut parts = text.split("[[attribute]]");
    let mut kept = parts.next().expect("a head").to_owned();
    for part in parts {
        if attributes.iter().any(|name| part.trim_start().starts_with(&format!("name = \"{name}\"\n"))) {
            write!(kept, "[[attribute]]{part}").expect("a string");
        }
    }
    kept
}

impl Stream {
    fn new(
        schema: &str,
        subject: &str,
        groups: Vec<(&'static str, Vec<&'static str>)>,
        input: &str,
        people: Vec<String>,
        batch: usize,
    ) -> Self {
        let attributes: Vec<&str> = groups.iter().flat_map(|(_, names)| names.clone()).chain([subject]).collect();
        let mut settings = format!("[plan]\nwindow_records = {WINDOW}\ninterval = \"1h\"\n");
        for (name, attributes) in &groups {
            let names: Vec<String> = attributes.iter().map(|a| format!("\"{a}\"")).collect();
            write!(settings, "[[group]]\nname = \"{name}\"\nattributes = [{}]\n", names.join(", ")).expect("a string");
        }
        let place = Place::new(&part_of(schema, &attributes), &settings);
        place.write("throng.tuning", "handover_batches = 2\nsearch_budget = \"60s\"");
        let text = fs::read_to_string(place.path("throng.toml")).expect("the configuration");
        let text = text.replace("max_records = 50", &format!("max_records = {batch}"));
        place.write("throng.toml", text.replace("log_level = \"trace\"", "log_level = \"info\""));
        place.write("in.csv", input);
        Self { place, groups, people }
    }

    fn command(&self, crash: Option<&str>) -> Command {
        let overrides = [("SOURCE__PATH", "in.csv"), ("SINK__FORMAT", "json")];
        let mut command = self.place.command(&overrides, &["--lineage", "lineage.ndjson"]);
        command.env_remove("FAILPOINTS");
        command.envs(crash.map(|crash| ("FAILPOINTS", crash)));
        command
    }

    fn run(&self, crash: &str) -> bool {
        let Output { status, stderr, .. } = self.command(Some(crash)).output().expect("it starts");
        let died = status.signal() == Some(rustix::process::Signal::ABORT.as_raw());
        assert!(died || status.success(), "{crash}: {status}, {}", String::from_utf8_lossy(&stderr));
        died
    }

    fn finish(&self) -> Outcome {
        Process::spawn(self.command(None), self.place.port).wait().expect(0)
    }

    fn outputs(&self) -> BTreeMap<String, Vec<u8>> {
        let names = self.groups.iter().map(|(name, _)| format!("out.{name}.ndjson"));
        let mut outputs: BTreeMap<String, Vec<u8>> = names.map(|name| (name.clone(), self.place.read(&name))).collect();
        let lineage = String::from_utf8(self.place.read("lineage.ndjson")).expect("text");
        outputs.insert("lineage.ndjson".to_owned(), timeless(&lineage).into_bytes());
        outputs
    }

    fn check(&self, outcome: &Outcome) {
        let Account { consumed, released, held, .. } = outcome.account();
        assert_eq!((consumed, held), (self.people.len() as u64, 0), "{}", outcome.stderr);
        let texts: Vec<Vec<String>> =
            self.groups.iter().map(|(name, _)| self.place.lines(&format!("out.{name}.ndjson"))).collect();
        let line = |entry: &String| {
            let entry: serde_json::Value = serde_json::from_str(entry).expect("an entry");
            let group = self.groups.iter().position(|(name, _)| entry["group"] == *name).expect("a group");
            let number = |value: &serde_json::Value| value.as_i64().expect("a number");
            let record = number(&entry["source"][2]);
            Line {
                batch: entry["batch"].as_u64().expect("a batch"),
                clock_ms: 0,
                group,
                text: texts[group][usize::try_from(number(&entry["line"])).expect("small")].clone(),
                subject: Some(self.people[usize::try_from(record).expect("small")].clone()),
                source: (0, 0, record),
            }
        };
        let lines: Vec<Line> = self.place.lines("lineage.ndjson").iter().map(line).collect();
        assert_eq!(lines.len(), texts.iter().map(Vec::len).sum::<usize>(), "a lineage entry a line");
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let groups = self.groups.iter().map(|(_, attributes)| GroupNames {
            all: names(attributes),
            quasi: names(attributes),
            sensitive: Vec::new(),
        });
        let promise = Promise { k: K, groups: groups.collect() };
        promise.check_all(&lines).expect("the invariant");
        check_once(&lines).expect("once");
        assert_eq!(records_released(&lines), released);
        assert!(released * 2 > consumed, "{released} of {consumed} records say little");
    }
}

fn drifts(outcome: &Outcome) -> usize {
    outcome.stderr.lines().filter(|line| line.contains("plan adopted") && line.contains("why=\"drift\"")).count()
}

/// The plans of a job depend only on its records.
fn killed_through_its_plans(calm: &Stream, stream: &Stream) {
    let undisturbed = calm.finish();
    calm.check(&undisturbed);
    assert!(drifts(&undisturbed) >= 1, "the stream has changed and no plan was made for it: {}", undisturbed.stderr);
    let plans = undisturbed.stderr.matches("plan adopted").count();
    for plan in 0..plans {
        assert!(stream.run(&format!("plan-adopted={plan}*off->return")), "plan {plan} of {plans}");
        assert!(stream.place.read("lineage.ndjson").is_empty(), "nothing is visible before the end");
    }
    let outcome = stream.finish();
    stream.check(&outcome);
    assert!(stream.outputs() == calm.outputs(), "the disturbed run has released something else");
}

/// The second half has older subjects in other places with newer devices.
fn wearable() -> Stream {
    const RECORDS: usize = 1800;
    let arguments = format!("generate wearable --records {RECORDS} --subjects 400 --seed 5 --shift-at 900 -o -");
    let output = crate::support::binary::throng().args(arguments.split(' ')).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records: Vec<serde_json::Value> = String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect();
    let people = records.iter().map(|r| r["user_id"].as_str().expect("a subject").to_owned()).collect();
    let groups = vec![
        ("body", vec!["age", "sex"]),
        ("device", vec!["device_model"]),
        ("home", vec!["zip"]),
        ("motion", vec!["activity", "heart_rate"]),
    ];
    let names: Vec<&str> = groups.iter().flat_map(|(_, names)| names.clone()).chain(["user_id"]).collect();
    let cell = |record: &serde_json::Value, name: &str| match &record[name] {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let row = |record| names.iter().map(|name| cell(record, name)).collect::<Vec<_>>().join(",") + "\n";
    let input = names.join(",") + "\n" + &records.iter().map(row).collect::<String>();
    Stream::new("wearable.toml", "user_id", groups, &input, people, 60)
}

/// Two rounds of the study with different subjects, in chronological order.
fn lifesnaps() -> Stream {
    let data = std::env::var_os("THRONG_TEST_DATA").expect("THRONG_TEST_DATA is set");
    let file = Path::new(&data).join("lifesnaps").join("daily.csv");
    let mut file = csv::Reader::from_path(file).expect("LifeSnaps");
    let columns = file.headers().expect("a header").clone();
    let groups = vec![
        ("goal", vec!["step_goal_label"]),
        ("person", vec!["age", "gender", "bmi"]),
        ("pulse", vec!["bpm"]),
        ("steps", vec!["steps"]),
    ];
    let names: Vec<&str> = groups.iter().flat_map(|(_, names)| names.clone()).chain(["id"]).collect();
    let of = |name: &str| columns.iter().position(|column| column == name).expect("a column");
    let places: Vec<usize> = names.iter().map(|name| of(name)).collect();
    let mut rows: Vec<csv::StringRecord> = file.records().collect::<Result<_, _>>().expect("records");
    rows.sort_by_key(|row| row[of("date")].to_owned());
    // Every third day includes both rounds.
    let rows: Vec<csv::StringRecord> = rows.into_iter().step_by(3).collect();
    let people: Vec<String> = rows.iter().map(|row| row[of("id")].to_owned()).collect();
    assert!(people.iter().collect::<BTreeSet<_>>().len() > 60 && rows.len() > 2000);
    let line = |row: &csv::StringRecord| places.iter().map(|&place| &row[place]).collect::<Vec<_>>().join(",") + "\n";
    let input = names.join(",") + "\n" + &rows.iter().map(line).collect::<String>();
    Stream::new("lifesnaps.toml", "id", groups, &input, people, 80)
}

#[test]
fn wearable_drift_with_kills_keeps_output_identical() {
    let calm = wearable();
    killed_through_its_plans(&calm, &wearable());
}

#[test]
#[ignore = "needs the data folder that THRONG_TEST_DATA names"]
fn lifesnaps_drift_with_kills_keeps_output_identical() {
    let calm = lifesnaps();
    killed_through_its_plans(&calm, &lifesnaps());
}
