//! Threats 5, 6, 7 and 8: a unique value appears only in the source, under any failure.

use crate::support;

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use support::binary::{Place, Process, series};
use support::canaries::{Canaries, hex};
use support::kafka::{Record, TestCluster, unique};
use support::schemas::schema;

const SCHEMA: &str = schema!("canaries"; person,
    more "[[attribute]]\nname = \"email\"\ntype = \"string\"\nrole = \"identifier\"\n",
    hundred "age", text "city", more r#"
[[attribute]]
name = "zip"
type = "string"
[attribute.hierarchy]
kind = "prefix"
keep = [3, 1]
[[attribute]]
name = "weight"
type = "float"
[[attribute]]
name = "day"
type = "date"
role = "time"
[[attribute]]
name = "well"
type = "boolean"
[[attribute]]
name = "spot"
type = "coordinates"
[[attribute]]
name = "note"
type = "string"
pointer = "/meta/note"
"#, sensitive "illness");

const GROUPS: &str = r#"
[[group]]
name = "body"
attributes = ["age", "weight", "well", "day"]
[[group]]
name = "place"
attributes = ["city", "zip", "spot", "note", "illness"]
"#;

fn crowd() -> Vec<Vec<u8>> {
    (0..12)
        .map(|i| {
            format!(
                r#"{{"person":"p{i}","age":30,"city":"Zug","zip":"60617","weight":70.5,"well":true,"meta":{{"note":"n"}},"illness":"flu"}}"#
            )
            .into_bytes()
        })
        .collect()
}

fn canary_records(canaries: &Canaries) -> Vec<Vec<u8>> {
    let (t, n) = (|| canaries.text(), || canaries.number());
    let mut records: Vec<Vec<u8>> = Vec::new();
    for round in 0..4 {
        records.push(
            format!(
                r#"{{"person":"{}","email":"{}@example.org","age":{},"city":"{}","zip":"{}","weight":{},"day":"20{}0-01-01","well":false,"spot":"47.{},8.5","meta":{{"note":"{}","{}":"{}"}},"illness":"{}","{}":"{}"}}"#,
                t(), t(), n(), t(), t(), n(), round + 2, n(), t(), t(), t(), t(), t(), t()
            )
            .into_bytes(),
        );
    }
    let of_crowd = |field: &str| format!(r#"{{"person":"p1","age":30,{field},"weight":70.5}}"#).into_bytes();
    for field in ["city", "zip", "illness", "email", "stranger"] {
        records.push(of_crowd(&format!(r#""{field}":"{}""#, t())));
        records.push(of_crowd(&format!(r#""{field}":{{"{}":[{}]}}"#, t(), n())));
        records.push(of_crowd(&format!(r#""{field}":{}"#, n())));
    }
    for field in ["age", "weight", "day", "well", "spot"] {
        let number = if field == "age" { "weight" } else { "age" };
        records.push(format!(r#"{{"person":"p1","{field}":"{}","{number}":{}}}"#, t(), n()).into_bytes());
        records.push(format!(r#"{{"person":"p1","{field}":["{}"]}}"#, t()).into_bytes());
        records.push(format!(r#"{{"person":"p1","{field}":{{"{}":"{}"}}}}"#, t(), t()).into_bytes());
    }
    records.push(format!(r#"{{"person":"{}","age":1e999}}"#, t()).into_bytes());
    records.push(format!(r#"{{"person":"{}","city":"{}{}"}}"#, t(), t(), "x".repeat(2000)).into_bytes());
    for broken in [
        format!(r#"{{"city":"{}"#, t()),
        format!(r#"{{"city":{}}}"#, t()),
        format!(r#"{{"city":"a"}} {}"#, t()),
        format!(r#"{{"city":"a","city":"{}"}}"#, t()),
        format!(r#"{{"{0}":1,"{0}":2}}"#, t()),
        format!(r#"{{"meta":{{"note":"{}","note":"{}"}}}}"#, t(), t()),
        format!(r#"["{}"]"#, t()),
        format!(r#""{}""#, t()),
        n(),
        t(),
        format!(r#"{{"city":"\ud800{}"}}"#, t()),
        format!(r#"{{"x":{}"{}"{}}}"#, "[".repeat(60), t(), "]".repeat(60)),
        format!(r#"{{"city":{}"{}"{}}}"#, "[".repeat(60), t(), "]".repeat(60)),
        format!(r#"{{"city":"{}","pad":"{}"}}"#, t(), "x".repeat(5000)),
    ] {
        records.push(broken.into_bytes());
    }
    let mut torn = format!(r#"{{"city":"{}"#, t()).into_bytes();
    torn.extend([0xff, 0xfe]);
    torn.extend(format!(r#"{}"}}"#, t()).bytes());
    records.push(torn);
    records
}

fn pages(process: &Process) -> Vec<(&'static str, String)> {
    ["/", "/metrics", "/status.json", "/series.json", "/plan", "/readyz", "/healthz", "/no-such-page"]
        .into_iter()
        .map(|page| (page, process.get(page).expect("an answer").1))
        .collect()
}

fn everything_below(place: &Place, canaries: &Canaries, names: &[&str]) {
    for name in names {
        for (path, content) in place.files(name) {
            canaries.absent_from(&path.display().to_string(), &content);
            canaries.absent_from("a file name", path.display().to_string());
        }
    }
}

#[test]
fn canary_search_finds_every_encoding() {
    let canaries = Canaries::default();
    let (text, number) = (canaries.text(), canaries.number());
    let hidden = hex(text.as_bytes()).to_uppercase();
    assert_eq!(canaries.found_in(format!("ab{}cd", text.to_uppercase()).as_bytes()), std::slice::from_ref(&text));
    assert_eq!(canaries.found_in(format!("9{number}9").as_bytes()), [number]);
    assert_eq!(canaries.found_in(hidden.as_bytes()).len(), 1);
    assert!(canaries.found_in(&text.as_bytes()[1..]).is_empty());
}

#[test]
fn threat_06_file_job_exposes_no_canary() {
    for (format, hold) in [("text", "0"), ("json", "2")] {
        let canaries = Canaries::default();
        let place = Place::new(SCHEMA, GROUPS);
        let mut process = place.start(&[
            ("SOURCE__PATH", "-"),
            ("SOURCE__MAX_RECORD_BYTES", "4096"),
            ("TELEMETRY__LOG_FORMAT", format),
            ("PRIVACY__MAX_HOLD_BATCHES", hold),
            ("BATCH__MAX_WAIT", "50ms"),
            // No subject reaches its limit per batch.
            ("BATCH__MAX_RECORDS", "150"),
        ]);
        let mut records = crowd();
        records.extend(canary_records(&canaries));
        records.extend(crowd());
        let source: Vec<u8> = records.iter().flat_map(|r| [&r[..], b"\n"].concat()).collect();
        assert_eq!(canaries.found_in(&source).len(), canaries.count(), "every canary is in the source");
        process.feed(&source);
        process.until("all are consumed", |s| s["totals"]["consumed"] == records.len());
        for (page, body) in pages(&process) {
            canaries.absent_from(page, body);
        }
        let outcome = process.wait().expect(0);
        let account = outcome.account();
        assert_eq!(account.consumed, records.len() as u64);
        assert!(account.released >= 12 && account.dead_lettered >= 20, "{account:?}");
        canaries.absent_from("standard output", &outcome.stdout);
        canaries.absent_from("standard error", &outcome.stderr);
        everything_below(&place, &canaries, &["out.body.ndjson", "out.place.ndjson", "dead.ndjson", "state"]);
        assert!(place.lines("out.place.ndjson").iter().any(|l| l.contains("\"city\":\"Zug\"")));
        assert_eq!(place.lines("dead.ndjson").len() as u64, account.dead_lettered);
        for line in place.lines("dead.ndjson") {
            let letter: serde_json::Value = serde_json::from_str(&line).expect("a letter");
            let known = ["topic", "partition", "offset", "stage", "reason", "attribute", "batch"];
            assert!(letter.as_object().expect("an object").keys().all(|k| known.contains(&k.as_str())), "{line}");
        }
    }
}

#[test]
fn threat_06_refusals_expose_no_canary() {
    let canaries = Canaries::default();
    let t = || canaries.text();
    let refused = |name: &str, content: Vec<u8>, overrides: &[(&str, &str)], code: i32, says: &str| {
        let place = Place::new(SCHEMA, GROUPS);
        place.write(name, &content);
        let overrides = [&[("SOURCE__PATH", name)], overrides].concat();
        let outcome = place.run(&overrides).expect(code);
        assert!(outcome.stderr.contains(says), "{says:?} is not in {}", outcome.stderr);
        canaries.absent_from("standard error", &outcome.stderr);
        everything_below(&place, &canaries, &["state"]);
    };
    let header = format!("age,{0},{0}\n1,2,3\n", t());
    refused("in.csv", header.into_bytes(), &[], 1, "columns 2 and 3 have the same header");
    let header = format!("age,{}\n1,2\n", t());
    refused("in.csv", header.into_bytes(), &[("SCHEMA__UNKNOWN", "refuse")], 1, "column 2 of 2 is not in the schema");
    let rows = format!("{},{}\n{},{}\n", t(), t(), t(), t());
    refused("in.csv", rows.into_bytes(), &[], 1, "none of the 2 columns is in the schema");
    let mut torn = t().into_bytes();
    torn.push(0xff);
    refused("in.csv", torn, &[], 1, "not UTF-8");
    refused("in.csv", format!("\"{}", t()).into_bytes(), &[], 1, "header row");
    refused("in.parquet", format!("PAR1{}PAR1", t()).into_bytes(), &[], 1, "Parquet");

    for replaced in [t(), format!("{}\n{}\n", t().repeat(200), t())] {
        let place = Place::new(SCHEMA, GROUPS);
        let source: Vec<u8> = crowd().iter().flat_map(|r| [&r[..], b"\n"].concat()).collect();
        place.write("in.ndjson", &source);
        place.run(&[]).expect(0);
        place.write("in.ndjson", replaced);
        let outcome = place.run(&[]).expect(1);
        canaries.absent_from("standard error", &outcome.stderr);
    }
}

#[test]
fn threat_06_csv_input_exposes_no_canary() {
    let canaries = Canaries::default();
    let t = || canaries.text();
    let place = Place::new(SCHEMA, "");
    let mut rows = "person,email,age,city,zip,weight,day,well,spot,note,illness\n".to_owned();
    for i in 0..6 {
        writeln!(rows, "p{i},,30,Zug,60617,70.5,,true,,n,flu").expect("a string");
    }
    for wrong in ["age", "weight", "day", "well", "spot", "none"] {
        let cell = |name: &str, usual: String| if name == wrong { t() } else { usual };
        writeln!(
            rows,
            "{},{}@example.org,{},{},{},{},{},{},{},{},{}",
            t(),
            t(),
            cell("age", "30".into()),
            t(),
            t(),
            cell("weight", canaries.number()),
            cell("day", String::new()),
            cell("well", String::new()),
            cell("spot", String::new()),
            t(),
            t()
        )
        .expect("a string");
    }
    writeln!(rows, "{},too,few\n\"{}\"x,1,2,3,4,5,6,7,8,9,10\n{}{}", t(), t(), t(), ",".repeat(12)).expect("a string");
    place.write("in.csv", &rows);
    let outcome = place.run(&[("SOURCE__PATH", "in.csv"), ("SINK__PATH", "out.csv")]).expect(0);
    let account = outcome.account();
    assert!(account.released >= 6 && account.dead_lettered >= 7, "{account:?} {}", outcome.stderr);
    canaries.absent_from("standard error", &outcome.stderr);
    everything_below(&place, &canaries, &["out.csv", "dead.ndjson", "state"]);
}

#[test]
fn threat_06_full_disk_exposes_no_canary() {
    let canaries = Canaries::default();
    let place = Place::new(SCHEMA, "");
    let each = canary_records(&canaries);
    let mut source = Vec::new();
    for _ in 0..200 {
        for record in crowd().iter().chain(&each) {
            source.extend(record);
            source.push(b'\n');
        }
    }
    let records = u64::try_from(200 * (12 + each.len())).expect("some");
    place.write("in.ndjson", &source);
    // A write beyond the limit fails as on a full disk; the signal is ignored.
    let mut command = Command::new("sh");
    let limited = "trap '' XFSZ; ulimit -f 64; exec \"$0\" run -c throng.toml";
    command.args(["-c", limited, env!("CARGO_BIN_EXE_throng")]);
    place.surround(&mut command, &[]);
    let outcome = Process::spawn(command, place.port).wait();
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    canaries.absent_from("standard error", &outcome.stderr);
    assert!(!place.path("out.ndjson").exists(), "a job that fails shows no output");
    everything_below(&place, &canaries, &["state"]);
    let last = outcome.stderr.lines().last().expect("a message").to_owned();
    println!("{last}");
    assert!(last.starts_with("error: "), "{last}");
    let outcome = place.run(&[]).expect(0);
    assert_eq!(outcome.account().consumed, records);
    canaries.absent_from("standard error", &outcome.stderr);
    everything_below(&place, &canaries, &["out.ndjson", "dead.ndjson", "state"]);
}

#[test]
fn threats_05_and_06_topic_job_exposes_no_canary() {
    let Some(broker) = TestCluster::shared() else { return };
    let canaries = Canaries::default();
    let (raw, clean, dead, changelog) = (unique("raw"), unique("clean"), unique("dead"), unique("changelog"));
    for topic in [&raw, &clean, &dead] {
        broker.create_topic(topic, 2, false);
    }
    broker.create_topic(&changelog, 3, true);
    let mut payloads: Vec<Option<Vec<u8>>> = crowd().into_iter().map(Some).collect();
    payloads.extend(canary_records(&canaries).into_iter().map(Some));
    payloads.extend([None, Some(Vec::new()), None]);
    payloads.extend(crowd().into_iter().map(Some));
    let records: Vec<Record> = payloads
        .into_iter()
        .enumerate()
        .map(|(i, payload)| Record {
            partition: Some(i32::try_from(i % 2).expect("small")),
            key: Some(canaries.text().into_bytes()),
            payload,
            headers: vec![(canaries.text(), Some(canaries.text().into_bytes())), ("trace".to_owned(), None)],
            timestamp: Some(1_600_000_000_000 + i64::try_from(i).expect("small")),
        })
        .collect();
    broker.produce_records(&raw, &records);
    let place = Place::new(SCHEMA, GROUPS);
    let process = place.start(&[
        ("SOURCE__KIND", "kafka"),
        ("SOURCE__BROKERS", &broker.bootstrap()),
        ("SOURCE__TOPICS", &raw),
        ("SOURCE__GROUP", &unique("group")),
        ("SOURCE__MAX_RECORD_BYTES", "4096"),
        ("SINK__KIND", "kafka"),
        ("SINK__TOPIC", &clean),
        ("SINK__DEAD_LETTER_TOPIC", &dead),
        ("SINK__CHANGELOG_TOPIC", &changelog),
        ("BATCH__MAX_WAIT", "100ms"),
        ("BATCH__MAX_AGE", "1s"),
    ]);
    let status = process.until("all are consumed", |s| s["totals"]["consumed"] == records.len());
    assert_eq!(status["totals"]["dropped"], 2, "tombstones go with their keys");
    for (page, body) in pages(&process) {
        canaries.absent_from(page, body);
    }
    process.terminate();
    let outcome = process.wait().expect(0);
    canaries.absent_from("standard error", &outcome.stderr);
    canaries.absent_from("standard output", &outcome.stdout);
    everything_below(&place, &canaries, &["state"]);

    let stored = broker.read_uncommitted(&clean);
    assert!(stored.iter().any(|s| String::from_utf8_lossy(s.payload.as_deref().unwrap_or_default()).contains("Zug")));
    let source_times: Vec<Option<i64>> = records.iter().map(|r| r.timestamp).collect();
    for record in &stored {
        assert_eq!((&record.key, record.headers.len()), (&None, 0), "no key, no header");
        assert!(!source_times.contains(&record.timestamp), "the batch's time, not the record's");
        canaries.absent_from("the output", record.payload.as_deref().unwrap_or_default());
    }
    let letters = broker.read_uncommitted(&dead);
    assert!(letters.len() >= 20, "{} letters", letters.len());
    for record in letters.iter().chain(&broker.read_uncommitted(&changelog)) {
        canaries.absent_from("a payload", record.payload.as_deref().unwrap_or_default());
        canaries.absent_from("a key", record.key.as_deref().unwrap_or_default());
        for (name, value) in &record.headers {
            canaries.absent_from("the name of a header", name);
            canaries.absent_from("a header", value.as_deref().unwrap_or_default());
        }
    }
}

#[test]
fn threat_07_input_adds_no_metric_series() {
    let canaries = Canaries::default();
    let place = Place::new(SCHEMA, GROUPS);
    let mut process = place.start(&[("SOURCE__PATH", "-"), ("BATCH__MAX_WAIT", "50ms")]);
    let crowd: Vec<u8> = crowd().iter().flat_map(|r| [&r[..], b"\n"].concat()).collect();
    process.feed(&crowd);
    process.until("the crowd is consumed", |s| s["totals"]["consumed"] == 12);
    let before = series(&process.get("/metrics").expect("metrics").1);
    let records = canary_records(&canaries);
    process.feed(records.iter().flat_map(|r| [&r[..], b"\n"].concat()).collect::<Vec<u8>>());
    process.feed(&crowd);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 24 + records.len());
    let after = series(&process.get("/metrics").expect("metrics").1);
    assert!(before.keys().eq(after.keys()), "the series are the same");
    assert_ne!(before, after, "their values are not");
    process.wait().expect(0);
}

#[test]
fn threat_08_state_is_private_and_encrypted() {
    let canaries = Canaries::default();
    let place = Place::new(SCHEMA, GROUPS);
    let records: Vec<Vec<u8>> = crowd().into_iter().chain(canary_records(&canaries)).collect();
    place.write("in.ndjson", records.iter().flat_map(|r| [&r[..], b"\n"].concat()).collect::<Vec<u8>>());
    place.run(&[]).expect(0);
    let mode = std::fs::metadata(place.path("state")).expect("a directory").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let files = place.files("state");
    let held: usize = files.iter().map(|(_, content)| content.len()).sum();
    assert!(held > 1000, "the state has something in it");
    for (path, content) in &files {
        canaries.absent_from(&path.display().to_string(), content);
        for word in ["Zug", "60617", "illness", "city"] {
            let shown = content.windows(word.len()).any(|w| w == word.as_bytes());
            assert!(!shown || word.len() < 4 && content.len() > 100_000, "{} shows {word}", path.display());
        }
    }
    assert!(!files.iter().any(|(path, _)| path.ends_with("state/secret")), "the secret is elsewhere");
    place.write("secret", "another secret that is as long as it must be");
    let outcome = place.run(&[]).expect(2);
    assert!(outcome.stderr.contains("the secret does not belong to state directory"), "{}", outcome.stderr);
}
